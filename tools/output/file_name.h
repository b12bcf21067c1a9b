// The names of a session's files. They come from a template, and differ in their times and endings.
#ifndef TOOLS_OUTPUT_FILE_NAME_H_
#define TOOLS_OUTPUT_FILE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace output {

class FileNames {
 public:
  // Creates names from the template `text`, which is FilesSettings::name, for the session named
  // `session`. Fails with InvalidArgument, and a remedy, if the template is invalid.
  static absl::StatusOr<FileNames> Create(std::string_view text, std::string_view session);

  // State of a file. The end of the file's name shows it.
  enum class Kind : std::uint8_t {
    kComplete,
    kPartial,     // being written, or left by a writer that has ended without completing it
    kRepairing,   // unfinished repaired copy of a partial file
    kUnreadable,  // partial file in which nothing could be read
  };
  struct Name {
    std::string time;  // time in the form of TimeText
    bool compressed = false;
    Kind kind = Kind::kComplete;

    friend bool operator==(const Name&, const Name&) = default;
  };
  std::string Format(const Name& name) const;
  // Parses `file`, a name without a directory. Returns nullopt if Format cannot return this name.
  std::optional<Name> Parse(std::string_view file) const;

  // Returns whether this template and the template of `other` may produce the same name. The result
  // is exact for templates with one {time}. With several, it may be true although all names differ,
  // because the comparison ignores that every {time} of a name is the same time.
  bool MayShareFiles(const FileNames& other) const;

  // Returns the UTC time with microseconds, e.g. "20261122T070102.123456Z". All results have the
  // same length, and their alphabetical order is the order of time. A time before 1970 or after
  // 9999 becomes the nearest time of these years.
  static std::string TimeText(absl::Time time);
  // Returns `time` plus one microsecond. Changes only the fraction: .999999 becomes .000000.
  static std::string NextTime(const std::string& time);

 private:
  FileNames(std::string pattern, std::size_t time_at)
      : pattern_(std::move(pattern)), time_at_(time_at) {}

  std::string pattern_;  // the template with all but {time} filled in
  std::size_t time_at_;  // offset of the first {time}
};

}  // namespace output

#endif  // TOOLS_OUTPUT_FILE_NAME_H_
