// The contents of a CTF trace's metadata, for both versions of the format.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_TRACE_CLASS_H_
#define TOOLS_NETTRACE_EXPORT_CTF_TRACE_CLASS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tools/nettrace/export/ctf/field_class.h"
#include "tools/nettrace/export/ctf/stream.h"

namespace tools::ctf {

// Version of the format: 1.8 or 2.
enum class Version : std::uint8_t { k1, k2 };

// Highest level of an event class. Events with higher (less severe) levels also get this level.
inline constexpr std::uint8_t kMaxLevel = 5;

struct EventClass {
  std::string name;
  std::optional<std::uint8_t> level;  // 1 to kMaxLevel; no value for level 0
  FieldClass fields;
};

// A time in the form in which CTF declares clocks: the sum of both members. `nanoseconds` is not
// negative and less than a second.
struct ClockOffset {
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
};

struct TraceClass {
  Uuid uuid = {};
  std::vector<std::pair<std::string, std::variant<std::int64_t, std::string>>> environment;
  std::string clock_uuid;   // traces with the same id share the clock; "" if unknown
  ClockOffset clock_start;  // time since 1970 at which the clock was 0
  FieldClass context;       // context of all events
  // For each stream class, the text that TsdlOf() or JsonOf() returns for each event class. The
  // index of a text is the number of its event class.
  std::vector<const std::string*> event_classes[kStreamClasses];
};

inline constexpr const char* kClockName = "trace_clock";
inline constexpr const char* kClockDescription = "The clock of the NetTrace file";
inline constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_TRACE_CLASS_H_
