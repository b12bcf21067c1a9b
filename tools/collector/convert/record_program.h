// Turns the record of a kernel tracepoint into a NetTrace payload.
#ifndef TOOLS_COLLECTOR_CONVERT_RECORD_PROGRAM_H_
#define TOOLS_COLLECTOR_CONVERT_RECORD_PROGRAM_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libnettrace-writer/core/traceevent.h"
#include "tools/collector/convert/event_schema.h"

namespace collector {

// One field of the record, or several that are copied together. Positions are in bytes from the
// start of the record.
struct RecordOp {
  enum class Kind : std::uint8_t {
    kCopy,         // `size` bytes
    kText,         // text in `size` bytes, up to its first NUL
    kLocated,      // elements where the location at `offset` says, with their number before them
    kLocatedText,  // text there, up to its first NUL
  };
  Kind kind = Kind::kCopy;
  bool relative = false;          // the location counts from its own end (__rel_loc)
  std::uint8_t element_size = 1;  // bytes of a number
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

// The compiled layout of a record. Immutable; Run may be called from any thread.
class RecordProgram {
 public:
  RecordProgram() = default;
  // The numbers in records are in `order`; those in payloads are little-endian.
  explicit RecordProgram(const std::vector<RecordOp>& ops, std::endian order = std::endian::native);

  struct Outcome {
    bool fits = false;       // the record has all that its fields say
    bool non_ascii = false;  // some text is not ASCII
  };

  // The payload, of at most kMaxPayload bytes, is part of the record: Run then needs no `out`.
  bool identity() const { return identity_; }

  // As Run, for an identity: nearly all programs without text are one. False if it is none, or the
  // record does not fit.
  bool RunQuickly(std::span<const std::byte> record, std::span<const std::byte>* payload) const {
    if (!identity_ || record.size() < fixed_end_) return false;
    *payload = record.subspan(identity_offset_, identity_size_);
    return identity_size_ <= nettrace::internal::traceevent::kMaxPayloadSize;
  }

  // Appends the payload of `record` to `*out`, or if the program is an identity, sets `*payload` to
  // the part of the record that it is. No byte goes to the payload that is not part of a field, or
  // is behind the end of a text. The work is linear in the size of the payload.
  Outcome Run(std::span<const std::byte> record, TextForm form, std::vector<std::byte>* out,
              std::span<const std::byte>* payload) const;

 private:
  std::vector<RecordOp> ops_;
  std::size_t fixed_end_ = 0;  // of the part of the record that the operations name
  bool identity_ = true;
  std::size_t identity_offset_ = 0;  // of the payload in the record
  std::size_t identity_size_ = 0;
  bool swap_ = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_RECORD_PROGRAM_H_
