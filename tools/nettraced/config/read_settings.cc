#include "tools/nettraced/config/read_settings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/nettraced/config/settings_parser.h"
#include "tools/output/file_name.h"

namespace nettraced {
namespace {

constexpr std::size_t kMaxFiles = 256;

bool IsFile(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 && !S_ISDIR(facts.st_mode);
}

// Returns the paths of the files to read, with the file names as keys. Each of `directories` is a
// directory or one file, which may have any name. Adds an error for each directory that cannot be
// read.
std::map<std::string, std::string> FindFiles(const std::vector<std::string>& directories,
                                             SettingsErrors* errors) {
  std::map<std::string, std::string> files;
  for (const std::string& directory : directories) {
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(opendir(directory.c_str()), closedir);
    if (stream == nullptr) {
      if (errno == ENOENT && !directory.ends_with(".toml")) continue;
      if (errno == ENOTDIR && IsFile(directory)) {
        files.emplace(directory.substr(directory.rfind('/') + 1), directory);
        continue;
      }
      errors->Add(directory, 0, 0,
                  std::string(base::ErrnoStatus(errno, "cannot be read").message()));
      continue;
    }
    while (const dirent* entry = readdir(stream.get())) {
      const std::string name = entry->d_name;
      // Ignores files that editors leave: hidden files and files with other extensions.
      if (!name.ends_with(".toml") || name.starts_with('.')) continue;
      files.emplace(name, absl::StrCat(directory, "/", name));
    }
  }
  return files;
}

// Returns the content of the file. Returns "" if `path` is a link to /dev/null, which hides a file
// of the same name in a later directory.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    return base::ErrnoStatus(errno, "cannot be read",
                             "it must exist, and the daemon's user must be able to read it");
  }
  struct stat facts;
  if (fstat(fd.get(), &facts) != 0) return base::ErrnoStatus(errno, "cannot be read");
  if (S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3)) return std::string();
  if (!S_ISREG(facts.st_mode)) {
    return absl::InvalidArgumentError(
        "not a regular file; remove it, or replace it with a link to /dev/null to disable these "
        "settings");
  }
  // Reads up to one byte more than the limit, so that the parser detects a larger file.
  return base::ReadOpenFile(fd.get(), SettingsParser::kMaxText + 1, "cannot be read");
}

// Identifies a directory by its nearest existing ancestor and the path from there. Two paths to the
// same directory give equal values, even if the directory does not exist.
struct DirectoryPlace {
  explicit DirectoryPlace(const std::string& directory) {
    std::error_code error;
    std::filesystem::path path = std::filesystem::weakly_canonical(directory, error);
    if (error) path = std::filesystem::path(directory).lexically_normal();
    if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
    struct stat facts = {};
    while (stat(path.c_str(), &facts) != 0 && path.has_relative_path()) {
      rest = path.filename() / rest;
      path = path.parent_path();
    }
    device = facts.st_dev;
    inode = facts.st_ino;
  }

  friend bool operator==(const DirectoryPlace&, const DirectoryPlace&) = default;

  dev_t device = 0;
  ino_t inode = 0;
  std::filesystem::path rest;
};

}  // namespace

SessionSettings InDirectory(SessionSettings session, const std::string& state_directory) {
  if (session.files.directory.empty()) {
    session.files.directory = absl::StrCat(state_directory, "/", session.name);
  }
  return session;
}

bool ShareFiles(const SessionSettings& a, const SessionSettings& b) {
  if (a.kind == SessionSettings::Kind::kPipe || b.kind == SessionSettings::Kind::kPipe) {
    return false;
  }
  const absl::StatusOr<output::FileNames> a_names = output::FileNames::Create(a.files.name, a.name);
  const absl::StatusOr<output::FileNames> b_names = output::FileNames::Create(b.files.name, b.name);
  if (!a_names.ok() || !b_names.ok() || !a_names->MayShareFiles(*b_names)) return false;
  return DirectoryPlace(a.files.directory) == DirectoryPlace(b.files.directory);
}

bool SessionSettings::SameAs(const SessionSettings& other) const {
  const auto compared = [](const SessionSettings& settings) {
    return std::tie(settings.name, settings.select, settings.dotnet, settings.cpu_rate,
                    settings.off_cpu, settings.target, settings.interval, settings.ring_size,
                    settings.queue_bytes, settings.kind, settings.files, settings.pipe,
                    settings.flight, settings.compression);
  };
  return compared(*this) == compared(other);
}

absl::StatusOr<DaemonSettings> ReadSettings(const std::vector<std::string>& directories,
                                            const std::string& state_directory) {
  SettingsParser parser(/*with_daemon=*/true, state_directory);
  const std::map<std::string, std::string> files = FindFiles(directories, parser.errors());
  // Uses no file at all if a directory cannot be read, because files in that directory may hide
  // files of other directories.
  RETURN_IF_ERROR(parser.errors()->ToStatus());
  if (files.size() > kMaxFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat(directories.empty() ? "" : directories[0], ": ", files.size(),
                     " settings files; at most ", kMaxFiles, " are allowed; combine some of them"));
  }
  for (const auto& [name, path] : files) {
    const absl::StatusOr<std::string> text = ReadText(path);
    if (text.ok()) {
      parser.Parse(*text, path);
    } else {
      parser.errors()->Add(path, 0, 0, std::string(text.status().message()));
    }
  }
  return parser.FinishWithoutWrongFiles();
}

absl::StatusOr<DaemonSettings> ParseSettings(std::string_view text, const std::string& name) {
  SettingsParser parser(/*with_daemon=*/true);
  parser.Parse(text, name);
  return parser.Finish();
}

absl::StatusOr<std::vector<SessionSettings>> ParseSessions(std::string_view text,
                                                           const std::string& name,
                                                           const std::string& state_directory) {
  SettingsParser parser(/*with_daemon=*/false, state_directory);
  parser.Parse(text, name);
  ASSIGN_OR_RETURN(DaemonSettings settings, parser.Finish());
  if (settings.sessions.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": no session; add [session.NAME] with select = [\"Provider\"]"));
  }
  return std::move(settings.sessions);
}

}  // namespace nettraced
