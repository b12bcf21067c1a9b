#include "tools/elf/debug_files.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace elf {
namespace {

bool Matches(const ElfFile& found, const ElfFile& original, const DebugLink& link) {
  if (!original.build_id().empty()) return found.build_id() == original.build_id();
  return IsPublic(found.fd()) && found.Checksum() == link.crc;
}

}  // namespace

DebugFiles::DebugFiles(std::vector<std::string> folders, base::PromptFiles* prompt_files)
    : folders_(std::move(folders)), prompt_files_(prompt_files) {
  folders_.emplace_back(kDebugFolder);
}

std::optional<ElfFile> DebugFiles::FindByBuildId(const std::string& build_id) const {
  if (build_id.size() < 2) return std::nullopt;
  const std::string digits = absl::BytesToHexString(build_id);
  for (const std::string& folder : folders_) {
    absl::StatusOr<ElfFile> file = ElfFile::Open(
        absl::StrCat(folder, "/.build-id/", digits.substr(0, 2), "/", digits.substr(2), ".debug"),
        prompt_files_);
    if (file.ok() && file->has_symbols() && file->build_id() == build_id) return *std::move(file);
  }
  return std::nullopt;
}

std::optional<ElfFile> DebugFiles::FindByLink(const ElfFile& file, const std::string& path) const {
  const std::optional<DebugLink> link = file.ReadDebugLink();
  if (!link) return std::nullopt;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::vector<std::string> paths = {folder + link->name, folder + ".debug/" + link->name};
  for (const std::string& each : folders_) {
    paths.push_back(absl::StrCat(each, "/", folder, link->name));
    paths.push_back(absl::StrCat(each, "/", link->name));
  }
  for (const std::string& each : paths) {
    absl::StatusOr<ElfFile> found = ElfFile::Open(each, prompt_files_);
    if (found.ok() && found->has_symbols() && Matches(*found, file, *link)) {
      return *std::move(found);
    }
  }
  return std::nullopt;
}

bool IsPublic(int fd) {
  struct stat facts = {};
  if (fstat(fd, &facts) != 0 || (facts.st_mode & S_IROTH) == 0) return false;
  std::array<char, PATH_MAX> buffer;
  const ssize_t size =
      readlink(absl::StrCat("/proc/self/fd/", fd).c_str(), buffer.data(), buffer.size());
  if (size <= 0 || buffer[0] != '/') return false;
  std::string path(buffer.data(), static_cast<std::size_t>(size));
  for (std::size_t slash = path.rfind('/'); slash != 0; slash = path.rfind('/')) {
    path.resize(slash);
    if (stat(path.c_str(), &facts) != 0 || (facts.st_mode & S_IXOTH) == 0) return false;
  }
  return true;
}

}  // namespace elf
