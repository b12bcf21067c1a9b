#include "tools/collector/config/read_settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/config/settings_parser.h"

namespace collector {
namespace {

constexpr std::size_t kMaxFiles = 256;

// By name, the path of the file that counts. Errors are those of directories that cannot be read.
std::map<std::string, std::string> FindFiles(const std::vector<std::string>& directories,
                                             SettingsErrors* errors) {
  std::map<std::string, std::string> files;
  for (const std::string& directory : directories) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), closedir);
    if (stream == nullptr) {
      if (errno == ENOENT) continue;
      errors->Add(directory, 0, 0, std::string(ErrnoStatus(errno, "it cannot be read").message()));
      continue;
    }
    while (const dirent* entry = readdir(stream.get())) {
      const std::string name = entry->d_name;
      // Editors leave others, and hidden ones.
      if (!name.ends_with(".toml") || name.starts_with('.')) continue;
      files.emplace(name, absl::StrCat(directory, "/", name));
    }
  }
  return files;
}

// Its content, which is empty if the file masks others.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  // A named pipe would wait for a writer.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return ErrnoStatus(errno, "it cannot be read");
  struct stat facts;
  if (fstat(fd.get(), &facts) != 0) return ErrnoStatus(errno, "it cannot be read");
  if (S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3)) return std::string();
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError("not a file; remove it, or link it to /dev/null");
  }
  // One byte too many tells the parser that there is more.
  std::string text(SettingsParser::kMaxText + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "it cannot be read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace

bool SessionSettings::SameAs(const SessionSettings& other) const {
  const auto compared = [](const SessionSettings& settings) {
    return std::tie(settings.name, settings.select, settings.target, settings.interval,
                    settings.ring_size, settings.queue_bytes, settings.kind, settings.files,
                    settings.pipe, settings.flight, settings.compression);
  };
  return compared(*this) == compared(other);
}

absl::StatusOr<DaemonSettings> ReadSettings(const std::vector<std::string>& directories) {
  SettingsParser parser(/*with_daemon=*/true);
  const std::map<std::string, std::string> files = FindFiles(directories, parser.errors());
  if (files.size() > kMaxFiles) {
    return absl::InvalidArgumentError(absl::StrCat(
        directories.empty() ? "" : directories[0], ": there are ", files.size(),
        " files of settings, and no more than ", kMaxFiles, " are read; put sessions together"));
  }
  for (const auto& [name, path] : files) {
    const absl::StatusOr<std::string> text = ReadText(path);
    if (text.ok()) {
      parser.Parse(*text, path);
    } else {
      parser.errors()->Add(path, 0, 0, std::string(text.status().message()));
    }
  }
  return parser.Finish();
}

absl::StatusOr<DaemonSettings> ParseSettings(std::string_view text, const std::string& name) {
  SettingsParser parser(/*with_daemon=*/true);
  parser.Parse(text, name);
  return parser.Finish();
}

absl::StatusOr<std::vector<SessionSettings>> ParseSessions(std::string_view text,
                                                           const std::string& name) {
  SettingsParser parser(/*with_daemon=*/false);
  parser.Parse(text, name);
  absl::StatusOr<DaemonSettings> settings = parser.Finish();
  if (!settings.ok()) return settings.status();
  if (settings->sessions.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": there is no session; write [session.NAME] and select = [\"Provider\"] below it"));
  }
  return std::move(settings->sessions);
}

}  // namespace collector
