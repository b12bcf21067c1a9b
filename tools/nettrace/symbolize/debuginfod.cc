#include "tools/nettrace/symbolize/debuginfod.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/shared_library.h"
#include "tools/base/unique_fd.h"

namespace tools::symbolize {

// The functions of libdebuginfod, as its header declares them.
struct Debuginfod::Library {
  void* (*begin)() = nullptr;
  void (*end)(void* client) = nullptr;
  int (*find)(void* client, const unsigned char* build_id, int size, char** path) = nullptr;
  void (*set_progress)(void* client, int (*progress)(void* client, long, long)) = nullptr;
};

namespace {

absl::Time request_end;  // time at which IsOverdue ends the current request

// libdebuginfod calls this function about once a second, and stops if it does not return 0.
int IsOverdue(void* /*client*/, long /*done*/, long /*all*/) {
  return absl::Now() < request_end ? 0 : 1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Debuginfod>> Debuginfod::Load() {
  constexpr char kLibrary[] = "libdebuginfod.so.1";
  const char* const servers = std::getenv("DEBUGINFOD_URLS");
  if (servers == nullptr || *servers == '\0') {
    return absl::FailedPreconditionError(
        "DEBUGINFOD_URLS names no server; example: https://debuginfod.debian.net");
  }
  void* const loaded = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load ", kLibrary,
                     "; install the package libdebuginfod1, which is libdebuginfod1t64 from "
                     "Debian 13 on"));
  }
  auto library = std::make_unique<Library>();
  if (!base::FindFunction(loaded, "debuginfod_begin", &library->begin) ||
      !base::FindFunction(loaded, "debuginfod_end", &library->end) ||
      !base::FindFunction(loaded, "debuginfod_find_debuginfo", &library->find) ||
      !base::FindFunction(loaded, "debuginfod_set_progressfn", &library->set_progress)) {
    return absl::FailedPreconditionError(absl::StrCat(kLibrary, " is damaged; reinstall it"));
  }
  void* const client = library->begin();
  if (client == nullptr) return absl::ResourceExhaustedError("libdebuginfod cannot be started");
  return std::unique_ptr<Debuginfod>(new Debuginfod(std::move(library), client));
}

Debuginfod::Debuginfod(std::unique_ptr<Library> library, void* client)
    : library_(std::move(library)), client_(client), end_(absl::Now() + kMaxTotal) {
  library_->set_progress(client_, IsOverdue);
}

Debuginfod::~Debuginfod() { library_->end(client_); }

std::optional<elf::ElfFile> Debuginfod::Find(const std::string& build_id) const {
  const absl::Time now = absl::Now();
  if (build_id.empty() || now >= end_) return std::nullopt;
  request_end = std::min(now + kMaxRequest, end_);
  char* path = nullptr;
  const base::UniqueFd fd(library_->find(client_,
                                         reinterpret_cast<const unsigned char*>(build_id.data()),
                                         static_cast<int>(build_id.size()), &path));
  const std::unique_ptr<char, decltype(&std::free)> owned(path, std::free);
  if (!fd.valid() || path == nullptr) return std::nullopt;
  absl::StatusOr<elf::ElfFile> file = elf::ElfFile::Open(path);
  if (!file.ok() || !file->has_symbols() || file->build_id() != build_id) return std::nullopt;
  return *std::move(file);
}

}  // namespace tools::symbolize
