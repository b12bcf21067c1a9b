#include "tools/output/file_name.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tools/base/text.h"

namespace output {
namespace {

constexpr absl::string_view kTime = "{time}";
constexpr std::string_view kTimeForm = "00000000T000000.000000Z";
constexpr std::string_view kEnding = ".nettrace";
constexpr std::string_view kCompressed = ".zst";

// Endings of file names, indexed by FileNames::Kind.
constexpr std::array<std::string_view, 4> kKindEndings = {"", ".partial", ".repairing",
                                                          ".unreadable"};
// Length of the longest ending.
constexpr std::size_t kMaxEnding = kEnding.size() + kCompressed.size() + kKindEndings[3].size();

// Returns the host's name, or "localhost" if it has none. Characters other than letters, digits,
// '-' and '.' become '_', because some file systems do not accept them.
std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> buffer = {};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0 || buffer[0] == '\0') return "localhost";
  std::string name = buffer.data();
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  }
  return name;
}

bool IsTime(std::string_view text) {
  return text.size() == kTimeForm.size() &&
         std::equal(text.begin(), text.end(), kTimeForm.begin(), [](char c, char form) {
           return form == '0' ? absl::ascii_isdigit(static_cast<unsigned char>(c)) : c == form;
         });
}

absl::Status Refuse(std::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("\"", base::Printable(text), "\": ", why));
}

}  // namespace

absl::StatusOr<FileNames> FileNames::Create(std::string_view text, std::string_view session) {
  std::string pattern = absl::StrReplaceAll(
      absl::string_view(text.data(), text.size()),
      {{"{session}", absl::string_view(session.data(), session.size())}, {"{host}", HostName()}});
  const std::size_t time_at = pattern.find(std::string(kTime));
  if (time_at == std::string::npos) {
    return Refuse(text,
                  "without {time} all files would have the same name; use \"{session}-{time}\"");
  }
  if (pattern.find('/') != std::string::npos) {
    return Refuse(text, "'/' is not allowed; set the directory with `directory`");
  }
  if (!std::all_of(pattern.begin(), pattern.end(),
                   [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); })) {
    return Refuse(text, "use only printable ASCII characters, and no spaces");
  }
  if (pattern.front() == '.')
    return Refuse(text,
                  "begins with '.', so the files would be hidden; begin it with another character");
  const std::string rest = absl::StrReplaceAll(pattern, {{kTime, ""}});
  if (rest.find_first_of("{}") != std::string::npos) {
    return Refuse(text, "only {host}, {session} and {time} are allowed in braces");
  }
  FileNames names(std::move(pattern), time_at);
  const std::size_t longest =
      names.Format({std::string(kTimeForm)}).size() - kEnding.size() + kMaxEnding;
  if (longest > NAME_MAX) {
    return Refuse(
        text, absl::StrCat("the file names would have up to ", longest,
                           " bytes; use a shorter template, so that they have at most ", NAME_MAX));
  }
  return names;
}

std::string FileNames::Format(const Name& name) const {
  std::string text = absl::StrReplaceAll(pattern_, {{kTime, name.time}});
  text += kEnding;
  if (name.compressed) text += kCompressed;
  text += kKindEndings[static_cast<std::size_t>(name.kind)];
  return text;
}

std::optional<FileNames::Name> FileNames::Parse(std::string_view file) const {
  if (file.size() < time_at_ + kTimeForm.size()) return std::nullopt;
  Name name;
  name.time = file.substr(time_at_, kTimeForm.size());
  if (!IsTime(name.time)) return std::nullopt;
  for (const bool compressed : {false, true}) {
    for (std::size_t kind = 0; kind < kKindEndings.size(); ++kind) {
      name.compressed = compressed;
      name.kind = static_cast<Kind>(kind);
      if (Format(name) == file) return name;
    }
  }
  return std::nullopt;
}

bool FileNames::MayShareFiles(const FileNames& other) const {
  // A placeholder for any digit of a time. No pattern contains this character. Endings need no
  // comparison: no ending ends with another ending, so equal names have equal endings.
  constexpr char kDigit = '\1';
  const std::string form = absl::StrReplaceAll(
      absl::string_view(kTimeForm.data(), kTimeForm.size()), {{"0", std::string(1, kDigit)}});
  const std::string a = absl::StrReplaceAll(pattern_, {{kTime, form}});
  const std::string b = absl::StrReplaceAll(other.pattern_, {{kTime, form}});
  const auto is_digit = [](char c) {
    return c == kDigit || absl::ascii_isdigit(static_cast<unsigned char>(c));
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) {
    return x == y || ((x == kDigit || y == kDigit) && is_digit(x) && is_digit(y));
  });
}

std::string FileNames::TimeText(absl::Time time) {
  // Limits the time to the years 1970 to 9999, whose texts have the same length. A clock that was
  // never set may show a time outside of these years.
  static constexpr std::int64_t kLastSecond = 253402300799;
  time = std::clamp(time, absl::UnixEpoch(), absl::FromUnixSeconds(kLastSecond));
  return absl::FormatTime("%Y%m%dT%H%M%E6SZ", time, absl::UTCTimeZone());
}

std::string FileNames::NextTime(const std::string& time) {
  std::string next = time;
  for (std::size_t i = next.size(); i-- > 0;) {
    if (next[i] == '.') break;
    if (next[i] == 'Z') continue;
    if (next[i] != '9') {
      ++next[i];
      break;
    }
    next[i] = '0';
  }
  return next;
}

}  // namespace output
