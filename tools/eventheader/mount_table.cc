#include "tools/eventheader/mount_table.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tools {
namespace {

// Decodes \ooo, the escape for blanks, tabs, line feeds and backslashes in mountinfo.
std::string Unescape(absl::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && text.size() - i > 3 && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool Contains(const std::string& folder, std::string_view path) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

std::vector<Mount> ParseMountInfo(std::string_view text) {
  std::vector<Mount> mounts;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty())) {
    // The words of a line: id parent device root point options [optional…] - type source options
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    const auto separator = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || separator - words.begin() < 6 || words.end() - separator < 2) continue;
    const std::vector<absl::string_view> options = absl::StrSplit(words[5], ',');
    mounts.push_back({Unescape(words[4]), Unescape(words[3]), std::string(*(separator + 1)),
                      std::find(options.begin(), options.end(), "ro") != options.end()});
  }
  return mounts;
}

const Mount* MountOf(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    if (Contains(mount.point, path) &&
        (found == nullptr || mount.point.size() >= found->point.size())) {
      found = &mount;
    }
  }
  return found;
}

const Mount* TracefsMount(const std::vector<Mount>& mounts) {
  const Mount* found = nullptr;
  for (const Mount& mount : mounts) {
    // Skips a mount that another mount hides.
    if (mount.type != "tracefs" || mount.root != "/" || MountOf(mounts, mount.point) != &mount) {
      continue;
    }
    if (mount.point == "/sys/kernel/tracing") return &mount;
    if (found == nullptr) found = &mount;
  }
  return found;
}

}  // namespace tools
