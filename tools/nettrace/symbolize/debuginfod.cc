#include "tools/nettrace/symbolize/debuginfod.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
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

// The current request. It is a global variable, because libdebuginfod passes no data of the caller
// to MustStop.
struct Request {
  absl::Time end;             // time at which MustStop ends the request
  long max_bytes = 0;         // maximum size of the response
  bool is_overdue = false;    // MustStop has ended the request because of `end`
  bool is_too_large = false;  // MustStop has ended the request because of its size
} request;

// During a request, libdebuginfod calls this function at least about once a second, and ends the
// request if the function does not return 0. `done` is the number of bytes that a server has sent,
// or a small number before a server has answered.
int MustStop(void* /*client*/, long done, long /*all*/) {
  request.is_overdue = absl::Now() >= request.end;
  request.is_too_large = done > request.max_bytes;
  return request.is_overdue || request.is_too_large ? 1 : 0;
}

// Returns the number in an environment variable of libdebuginfod; `otherwise` if the variable has
// no number above 0.
std::int64_t NumberFrom(const char* variable, std::int64_t otherwise) {
  const char* const text = std::getenv(variable);
  std::int64_t number = 0;
  return text != nullptr && absl::SimpleAtoi(text, &number) && number > 0 ? number : otherwise;
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
    : library_(std::move(library)),
      client_(client),
      max_request_(std::min(
          absl::Seconds(NumberFrom("DEBUGINFOD_TIMEOUT", absl::ToInt64Seconds(kMaxRequest))),
          kMaxTotal)),
      max_bytes_(NumberFrom("DEBUGINFOD_MAXSIZE", kMaxBytes)),
      end_(absl::Now() + kMaxTotal) {
  library_->set_progress(client_, MustStop);
}

Debuginfod::~Debuginfod() { library_->end(client_); }

absl::StatusOr<elf::ElfFile> Debuginfod::Find(const std::string& build_id) {
  if (build_id.empty()) return absl::NotFoundError("");
  const absl::Time now = absl::Now();
  if (overdue_ == kMaxOverdue || now >= end_) {
    return absl::DeadlineExceededError("was not asked, because earlier requests took too long");
  }
  request = {};
  request.end = std::min(now + max_request_, end_);
  request.max_bytes = max_bytes_;
  char* path = nullptr;
  const int found = library_->find(client_, reinterpret_cast<const unsigned char*>(build_id.data()),
                                   static_cast<int>(build_id.size()), &path);
  const base::UniqueFd fd(found);
  const std::unique_ptr<char, decltype(&std::free)> owned(path, std::free);
  if (request.is_too_large) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "sent more than ", max_bytes_, " bytes; set DEBUGINFOD_MAXSIZE to allow more"));
  }
  if (request.is_overdue) {
    ++overdue_;
    return absl::DeadlineExceededError(
        absl::StrCat("did not send the file within ", absl::FormatDuration(max_request_),
                     "; set DEBUGINFOD_TIMEOUT to wait for more seconds, or correct "
                     "DEBUGINFOD_URLS"));
  }
  if (!fd.valid() || path == nullptr) {
    if (found == -ENOENT) return absl::NotFoundError("");
    return absl::UnavailableError(
        absl::StrCat("cannot be used: ", std::strerror(-found), "; correct DEBUGINFOD_URLS"));
  }
  absl::StatusOr<elf::ElfFile> file = elf::ElfFile::Open(path);
  if (!file.ok() || file->build_id() != build_id) {
    return absl::DataLossError(
        absl::StrCat("sent a file that is not the one with this build id; delete ", path,
                     " before you try again"));
  }
  if (!file->has_symbols()) return absl::NotFoundError("");
  return file;
}

}  // namespace tools::symbolize
