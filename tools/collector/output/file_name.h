// The names of the files of a session: a template in which only the time differs.
#ifndef TOOLS_COLLECTOR_OUTPUT_FILE_NAME_H_
#define TOOLS_COLLECTOR_OUTPUT_FILE_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace collector {

class FileNames {
 public:
  // `text` is FilesSettings::name. InvalidArgument, with a remedy, if no files can be named by it.
  static absl::StatusOr<FileNames> Create(std::string_view text, std::string_view session);

  // What a file is by what follows its name.
  enum class Kind : std::uint8_t {
    kComplete,
    kPartial,     // it is being written, or its writer did not end in order
    kRepairing,   // a copy of a kPartial that is being made
    kUnreadable,  // a kPartial that could not be repaired
  };
  struct Name {
    std::string time;  // as TimeText has it
    bool compressed = false;
    Kind kind = Kind::kComplete;

    friend bool operator==(const Name&, const Name&) = default;
  };
  std::string Format(const Name& name) const;
  // What `file` is, a name without a directory; nullopt if it is not as Format makes it.
  std::optional<Name> Parse(std::string_view file) const;

  // UTC with microseconds, "20261122T070102.123456Z": always as long, and in the order of time.
  static std::string TimeText(absl::Time time);

 private:
  FileNames(std::string pattern, std::size_t time_at)
      : pattern_(std::move(pattern)), time_at_(time_at) {}

  std::string pattern_;  // the template with all but {time} filled in
  std::size_t time_at_;  // where the first {time} is
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_FILE_NAME_H_
