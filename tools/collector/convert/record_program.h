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

// Converts one field of the record, or several fields that are copied together. Positions are in
// bytes from the start of the record.
struct RecordOp {
  // The bytes that the operation appends to the payload. A location is the u32 at `offset`, which
  // states the position and the size of the field's value in the record.
  enum class Kind : std::uint8_t {
    kCopy,         // the `size` bytes at `offset`
    kText,         // a u16 count, and the text in the `size` bytes at `offset`, up to its first NUL
    kLocated,      // a u16 count, and the elements that the location refers to
    kLocatedText,  // a u16 count, and the text that the location refers to, up to its first NUL
  };
  Kind kind = Kind::kCopy;
  bool relative = false;          // the position counts from the end of the location (__rel_loc)
  std::uint8_t element_size = 1;  // size of a number, in bytes
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

// A compiled layout of a record. Immutable; any thread may call Run().
class RecordProgram {
 public:
  RecordProgram() = default;
  // Numbers in records have the byte order `order`; numbers in payloads are little-endian.
  explicit RecordProgram(const std::vector<RecordOp>& ops, std::endian order = std::endian::native);

  struct Outcome {
    bool fits = false;       // the record contains all its fields, and the payload is not too long
    bool non_ascii = false;  // some text is not ASCII
  };

  // Returns whether the payload is an unchanged part of the record. If so, Run() does not use
  // `out`.
  bool identity() const { return identity_; }

  // Sets `*payload` without Run(), if the program is an identity, as nearly all programs without
  // text are. Returns false if the program is no identity, the record is too short, or the payload
  // is too long.
  bool RunQuickly(std::span<const std::byte> record, std::span<const std::byte>* payload) const {
    if (!identity_ || record.size() < fixed_end_) return false;
    *payload = record.subspan(identity_offset_, identity_size_);
    return identity_size_ <= nettrace::internal::traceevent::kMaxPayloadSize;
  }

  // Appends the payload of `record` to `*out`, and sets `*payload` to the appended bytes. For an
  // identity, appends nothing, and sets `*payload` to the part of the record that is the payload.
  // The payload contains only bytes of fields, and none after the end of a text. If Outcome::fits
  // is false, `*payload` is not valid. The work is linear in the size of the payload.
  Outcome Run(std::span<const std::byte> record, TextForm form, std::vector<std::byte>* out,
              std::span<const std::byte>* payload) const;

 private:
  std::vector<RecordOp> ops_;
  std::size_t fixed_end_ = 0;  // end of the fields in the record, in bytes
  bool identity_ = true;
  std::size_t identity_offset_ = 0;  // offset of the payload in the record
  std::size_t identity_size_ = 0;
  bool swap_ = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_RECORD_PROGRAM_H_
