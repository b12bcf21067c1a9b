// The numbers of the Fuchsia trace format, and what our own traces have in it: for what writes them
// and what reads them.
#ifndef TOOLS_COMMON_FXT_FORMAT_H_
#define TOOLS_COMMON_FXT_FORMAT_H_

#include <cstdint>

namespace tools::fxt {

// The first word; the byte order of a trace is the one in which it has it.
inline constexpr std::uint64_t kMagic = 0x0016'5478'4604'0010;

enum class RecordType : std::uint8_t {
  kMetadata = 0,
  kInitialization = 1,
  kString = 2,
  kThread = 3,
  kEvent = 4,
  kKernelObject = 7,
  kContextSwitch = 8,
  kLog = 9,
  kLarge = 15
};
// Of metadata.
inline constexpr std::uint64_t kProviderInfo = 1;
inline constexpr std::uint64_t kProviderSection = 2;
inline constexpr std::uint64_t kProviderEvent = 3;
// Of kernel objects.
inline constexpr std::uint64_t kProcessObject = 1;
inline constexpr std::uint64_t kThreadObject = 2;

enum class EventType : std::uint8_t {
  kInstant = 0,
  kCounter = 1,
  kDurationBegin = 2,
  kDurationEnd = 3,
  kDurationComplete = 4,
  kAsyncBegin = 5,
  kAsyncInstant = 6,
  kAsyncEnd = 7,
  kFlowBegin = 8,
  kFlowStep = 9,
  kFlowEnd = 10
};
enum class ArgumentType : std::uint8_t {
  kNull = 0,
  kInt32 = 1,
  kUInt32 = 2,
  kInt64 = 3,
  kUInt64 = 4,
  kDouble = 5,
  kString = 6,
  kPointer = 7,
  kKoid = 8,
  kBool = 9
};

// A reference with this bit is the length of a text that stands in the record.
inline constexpr std::uint64_t kInlineString = 0x8000;

// In our traces: the name of their provider, the category of the durations that hold the ends of an
// arrow, which are no events, and that of losses.
inline constexpr char kProviderName[] = "nettrace";
inline constexpr char kArrows[] = "NetTrace.Arrows";
inline constexpr char kLost[] = "lost events";

}  // namespace tools::fxt

#endif  // TOOLS_COMMON_FXT_FORMAT_H_
