// Evaluates filters for events that come through rings in user space. The kernel evaluates the
// filters for events of user_events.
#ifndef TOOLS_COLLECTOR_SESSION_RING_FILTER_H_
#define TOOLS_COLLECTOR_SESSION_RING_FILTER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace collector {

// A filter in the language of the kernel (Documentation/trace/events.rst) over the fields that an
// EventHeader tracepoint has: eventheader_flags, version, id, tag, opcode, level and common_pid.
// COMM compares the name of the thread, by == and !=. Values are cut to the width of their field,
// as in the kernel.
class RingFilter {
 public:
  // Parses a filter. Fails with InvalidArgument if the text is not a filter over the fields above.
  static absl::StatusOr<RingFilter> Parse(std::string_view text);

  // Returns whether the filter accepts an event. `event` has EventHeader bytes; `tid` and `comm`
  // are the id and the name of the thread that wrote it.
  bool Accepts(std::span<const std::byte> event, std::uint32_t tid, std::string_view comm) const;
  // Returns whether the filter compares names of threads.
  bool uses_comm() const { return !texts_.empty(); }

 private:
  friend class RingFilterParser;

  enum class Kind : std::uint8_t {
    kNot,
    kAnd,
    kOr,
    kEqual,
    kNotEqual,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual,
    kHasBits,
  };
  // A step of the filter in postfix order. kNot, kAnd and kOr combine earlier results; the other
  // kinds compare the field at `offset` with `value`.
  struct Step {
    Kind kind;
    // Offset of the field in the event, in bytes. kTid stands for common_pid and kComm for COMM,
    // which are not in the event.
    std::uint8_t offset = 0;
    std::uint8_t size = 0;   // bytes of the field
    std::int64_t value = 0;  // for COMM: index in texts_
  };
  static constexpr std::uint8_t kTid = 0xFF;
  static constexpr std::uint8_t kComm = 0xFE;

  RingFilter() = default;
  bool Compare(const Step& step, std::span<const std::byte> event, std::uint32_t tid,
               std::string_view comm) const;

  std::vector<Step> steps_;
  std::vector<std::string> texts_;  // names with which COMM is compared
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RING_FILTER_H_
