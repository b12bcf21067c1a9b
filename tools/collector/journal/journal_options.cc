#include "tools/collector/journal/journal_options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"

namespace collector {
namespace {

constexpr std::size_t kMaxUnitName = 255;
constexpr std::size_t kMaxFieldName = 64;

bool HasUnitType(std::string_view name) {
  constexpr std::string_view kTypes[] = {".service", ".socket",    ".device", ".mount",
                                         ".target",  ".automount", ".swap",   ".timer",
                                         ".path",    ".slice",     ".scope"};
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [name](std::string_view type) { return name.ends_with(type); });
}

bool IsUnitName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxUnitName &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  std::string_view(":-_.\\@").find(c) != std::string_view::npos;
         });
}

bool IsFieldName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxFieldName &&
         !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return absl::ascii_isupper(byte) || absl::ascii_isdigit(byte) || c == '_';
         });
}

// Counts the files of journals in `folder`.
void CountFiles(const std::filesystem::path& folder, JournalFiles* files) {
  constexpr std::size_t kMaxFiles = 100'000;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (std::size_t i = 0; !error && i < kMaxFiles && entry != std::filesystem::end(entry); ++i) {
    const std::string& path = entry->path().native();
    if (path.ends_with(".journal")) {
      ++(access(path.c_str(), R_OK) == 0 ? files->readable : files->unreadable);
    }
    entry.increment(error);
  }
  if (error == std::errc::permission_denied) ++files->unreadable;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseJournalUnits(const std::string& text) {
  std::vector<std::string> units;
  const std::vector<std::string> names = absl::StrSplit(text, ',');
  for (const std::string& name : names) {
    if (!IsUnitName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid unit '", base::Printable(name),
                       "'; examples: nginx, ssh.service, session-2.scope"));
    }
    units.push_back(absl::StrCat(name, HasUnitType(name) ? "" : ".service"));
  }
  if (units.size() > JournalOptions::kMaxUnits) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many units; at most ", JournalOptions::kMaxUnits, " can be given"));
  }
  return units;
}

absl::StatusOr<std::vector<std::string>> ParseJournalFields(const std::string& text) {
  std::vector<std::string> fields;
  const std::vector<std::string> names = absl::StrSplit(text, ',');
  for (const std::string& name : names) {
    if (!IsFieldName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid field '", base::Printable(name),
                       "' of the journal; examples: MESSAGE_ID, _UID"));
    }
    if (std::find(fields.begin(), fields.end(), name) == fields.end()) fields.push_back(name);
  }
  if (fields.size() > JournalOptions::kMaxFields) {
    return absl::InvalidArgumentError(
        absl::StrCat("too many fields; at most ", JournalOptions::kMaxFields, " can be given"));
  }
  return fields;
}

absl::StatusOr<JournalFiles> FindJournalFiles(const std::string& folder) {
  constexpr char kName[] =
      "; name a directory with the files of a journal, such as /var/log/journal/MACHINE-ID";
  JournalFiles files;
  if (!folder.empty()) {
    std::error_code error;
    if (!std::filesystem::is_directory(folder, error)) {
      return absl::NotFoundError(absl::StrCat(base::Printable(folder), ": not a directory", kName));
    }
    CountFiles(folder, &files);
  } else {
    std::string machine;
    std::ifstream("/etc/machine-id") >> machine;
    for (const char* const parent : {"/run/log/journal", "/var/log/journal"}) {
      if (!machine.empty()) CountFiles(std::filesystem::path(parent) / machine, &files);
    }
  }
  const std::string where = folder.empty() ? "this machine" : base::Printable(folder);
  if (files.readable == 0 && files.unreadable != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(where,
                     ": this user may not read the journal; run as root, or as a user in "
                     "the group systemd-journal"));
  }
  if (files.readable == 0) {
    if (!folder.empty()) {
      return absl::NotFoundError(absl::StrCat(where, ": the directory has no journal", kName));
    }
    return absl::NotFoundError(
        absl::StrCat(where,
                     ": there is no journal, because systemd-journald does not run or stores no "
                     "messages; in a container, name the directory of the host's journal with "
                     "--journal-dir"));
  }
  return files;
}

}  // namespace collector
