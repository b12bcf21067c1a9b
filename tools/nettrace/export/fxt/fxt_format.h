// Constants of the Fuchsia trace format, and names in the traces of this project. The writer and
// the reader of the format share them.
#ifndef TOOLS_NETTRACE_EXPORT_FXT_FXT_FORMAT_H_
#define TOOLS_NETTRACE_EXPORT_FXT_FXT_FORMAT_H_

#include <cstdint>

namespace tools::fxt {

// First word of a trace. Its byte order shows the byte order of all other words.
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
// Types of metadata.
inline constexpr std::uint64_t kProviderInfo = 1;
inline constexpr std::uint64_t kProviderSection = 2;
inline constexpr std::uint64_t kProviderEvent = 3;
// Types of kernel objects.
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

// If this bit of a string reference is set, the text follows in the record itself, and the other
// bits hold its length.
inline constexpr std::uint64_t kInlineString = 0x8000;

// Names in the traces that this project writes. kLost is the category of losses.
inline constexpr char kProviderName[] = "nettrace";
inline constexpr char kLost[] = "lost events";
// Prefix of the arguments of an event that ends a slice. Readers add these arguments to the
// arguments of the event that began the slice.
inline constexpr char kOfStop[] = "stop.";

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_FXT_FORMAT_H_
