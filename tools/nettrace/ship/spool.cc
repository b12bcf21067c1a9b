#include "tools/nettrace/ship/spool.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/signals.h"
#include "tools/output/file_name.h"

namespace tools::ship {
namespace {

struct Closer {
  void operator()(DIR* directory) const { closedir(directory); }
  void operator()(char* text) const { free(text); }
};

bool IsTrace(std::string_view name) {
  return name.ends_with(".nettrace") || name.ends_with(".nettrace.zst");
}

// Returns the absolute path without symbolic links; "" with errno if there is no such file.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, Closer> real(realpath(path.c_str(), nullptr));
  return real ? real.get() : "";
}

// The files of a listing, by path: a file that is named twice is listed once.
using Files = std::map<std::string, SpoolFile>;

void AddFile(const std::string& path, const struct stat& facts, Spool::Listing* listing,
             Files* files) {
  if (base::ValidUtf8(path) != path) {
    listing->problems.push_back(absl::InvalidArgumentError(absl::StrCat(
        base::Printable(path), ": the name is not UTF-8, so it is left out; rename the file")));
    return;
  }
  SpoolFile& file = (*files)[path];
  file.path = path;
  file.changed = ChangeTime(facts);
  file.time = FindNameTime(path).time;
  if (file.time.empty()) {
    file.time = output::FileNames::TimeText(absl::FromUnixNanos(file.changed));
  }
}

void AddDirectory(const std::string& path, Spool::Listing* listing, Files* files) {
  const std::unique_ptr<DIR, Closer> directory(opendir(path.c_str()));
  if (!directory) {
    listing->problems.push_back(base::ErrnoStatus(errno, base::Printable(path)));
    return;
  }
  while (const dirent* const entry = readdir(directory.get())) {
    struct stat facts = {};
    if (!IsTrace(entry->d_name) ||
        fstatat(dirfd(directory.get()), entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode)) {
      continue;
    }
    AddFile(absl::StrCat(path, path == "/" ? "" : "/", entry->d_name), facts, listing, files);
  }
}

}  // namespace

std::int64_t ChangeTime(const struct stat& facts) {
  return absl::ToUnixNanos(absl::TimeFromTimespec(facts.st_mtim));
}

NameTime FindNameTime(std::string_view path) {
  constexpr std::string_view kForm =
      "dddddddd"
      "T"
      "dddddd"
      "."
      "dddddd"
      "Z";
  const auto matches = [&](std::size_t at) {
    for (std::size_t i = 0; i < kForm.size(); ++i) {
      const char c = path[at + i];
      if (kForm[i] == 'd' ? c < '0' || c > '9' : c != kForm[i]) return false;
    }
    return true;
  };
  const std::size_t name = path.rfind('/') + 1;  // 0 if there is no slash, because npos + 1 is 0
  for (std::size_t at = name; at + kForm.size() <= path.size(); ++at) {
    if (!matches(at)) continue;
    return {std::string(path.substr(at, kForm.size())),
            absl::StrCat(std::string(path.substr(0, at)), "{time}",
                         std::string(path.substr(at + kForm.size())))};
  }
  return {};
}

Spool::Listing Spool::List() const {
  Listing listing;
  Files files;
  for (const std::string& path : paths_) {
    const std::string real = RealPath(path);
    struct stat facts = {};
    if (real.empty() || stat(real.c_str(), &facts) != 0) {
      listing.problems.push_back(base::ErrnoStatus(errno, base::Printable(path)));
    } else if (S_ISDIR(facts.st_mode)) {
      AddDirectory(real, &listing, &files);
    } else if (S_ISREG(facts.st_mode)) {
      AddFile(real, facts, &listing, &files);
    } else {
      listing.problems.push_back(absl::InvalidArgumentError(
          absl::StrCat(base::Printable(path), ": not a file or directory; name one of them")));
    }
  }
  for (auto& [path, file] : files) listing.files.push_back(std::move(file));
  std::stable_sort(listing.files.begin(), listing.files.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return listing;
}

void Spool::Watch() {
  if (!changes_.valid()) changes_ = base::UniqueFd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!changes_.valid()) return;
  // A path that is watched already stays watched. A directory that was made again gets a new watch.
  for (const std::string& path : paths_) {
    inotify_add_watch(changes_.get(), path.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR);
  }
}

void Spool::Wait(absl::Duration max) {
  std::array<pollfd, 2> waits = {pollfd{cli::StopDescriptor(), POLLIN, 0},
                                 pollfd{changes_.get(), POLLIN, 0}};
  poll(waits.data(), waits.size(), static_cast<int>(absl::ToInt64Milliseconds(max)));
  alignas(inotify_event) std::array<char, 4096> events;
  while (changes_.valid() && read(changes_.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace tools::ship
