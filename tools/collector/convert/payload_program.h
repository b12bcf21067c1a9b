// Turns the payload of an EventHeader event into a NetTrace payload.
#ifndef TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_
#define TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collector {

// An operation of a payload program. The source is the payload of an EventHeader event. The
// operation converts one field, one member of a struct, or several consecutive fields that are
// copied unchanged.
struct PayloadOp {
  enum class Element : std::uint8_t {
    kFixed,     // `size` bytes, reversed if `swap`
    kUuid,      // 16 bytes in RFC 4122 order; the output is a Guid
    kZText,     // code units of `size` bytes up to a zero unit
    kText,      // a u16 count and that number of code units of `size` bytes
    kUnits,     // `count` code units of `size` bytes
    kNullable,  // a u16 count and that number of bytes; a count of 0 is a null value
    kStruct,    // the `children` operations that follow this one
  };
  enum class Output : std::uint8_t {
    kUnits,          // a u16 count, then code units, each reversed if `swap`; for kNullable, bytes
    kUnitsAndZero,   // code units, each reversed if `swap`, and a zero unit
    kBytes,          // a u16 count of bytes, then the bytes of the code units
    kUtf16,          // a u16 count of UTF-16 code units, then these units
    kUtf16Unit,      // one UTF-16 code unit
    kValue,          // for kNullable: the value without a count
    kCountAndValue,  // for kNullable: a u16 1 and the value, or a u16 0 if the value is null
  };
  enum class Repeat : std::uint8_t { kOnce, kConstant, kCounted };
  // Encoding of 1-byte code units. kNone stands for bytes that are no text, and for units of 2 and
  // 4 bytes, which are UTF-16 and UTF-32.
  enum class Charset : std::uint8_t { kNone, kUtf8, kLatin1 };

  Element element = Element::kFixed;
  Output output = Output::kUnits;
  Repeat repeat = Repeat::kOnce;
  Charset charset = Charset::kNone;
  std::uint8_t size = 1;
  bool swap = false;
  // Whether the text may begin with a byte order mark, which overrides `charset` and `swap`.
  bool byte_order_mark = false;
  bool ends_at_zero = false;   // kUnits: the text ends before the first zero unit
  bool uuid = false;           // kNullable: a value in RFC 4122 order; the output is a Guid
  bool write_count = false;    // whether a u16 count precedes the elements in the output
  std::uint8_t fitting = 0;    // kNullable: the sizes that fit the format, as a set of SeenValue
  std::uint16_t slot = 0;      // kNullable: index among the nullable fields
  std::uint16_t count = 1;     // elements for kConstant, or code units for kUnits
  std::uint32_t children = 0;  // operations in the struct, including nested ones
};

// Flags for the values that a nullable field had in an event.
enum SeenValue : std::uint8_t {
  kSeenNull = 1,
  kSeen1Byte = 2,
  kSeen2Bytes = 4,
  kSeen4Bytes = 8,
  kSeen8Bytes = 16,
  kSeen16Bytes = 32,
  kSeenMisfit = 64,  // a size that is invalid for the format
};
// Returns the flag for a value of `size` bytes: kSeenNull for 0, and kSeenMisfit for sizes other
// than 1, 2, 4, 8 and 16.
constexpr SeenValue SeenSize(std::size_t size) {
  switch (size) {
    case 0:
      return kSeenNull;
    case 1:
      return kSeen1Byte;
    case 2:
      return kSeen2Bytes;
    case 4:
      return kSeen4Bytes;
    case 8:
      return kSeen8Bytes;
    case 16:
      return kSeen16Bytes;
    default:
      return kSeenMisfit;
  }
}

// A compiled schema. Immutable; any thread may call Run().
class PayloadProgram {
 public:
  PayloadProgram() = default;
  PayloadProgram(std::vector<PayloadOp> ops, bool swap_counts);

  enum class Result {
    kOk,
    kTruncated,  // the payload ends within a field
  };
  struct Outcome {
    Result result = Result::kOk;
    std::size_t consumed = 0;  // bytes of the source that the fields take
    bool non_ascii = false;    // some text of 1-byte units is not ASCII
  };

  // Bytes of memory that the program refers to, without the object itself.
  std::size_t bytes() const {
    return ops_.capacity() * sizeof(PayloadOp) + steps_.capacity() * sizeof(Step);
  }

  // Returns whether the output equals the source. If so, Run() may be called with a null `out`.
  bool identity() const { return identity_; }

  // Sets `*outcome` for `data` without Run(). Returns false if the caller must call Run(), which is
  // rare: the program has no steps (see `steps_`), or some text of 1-byte units is not ASCII.
  bool RunQuickly(std::span<const std::byte> data, Outcome* outcome) const {
    return !steps_.empty() && RunSteps(data, outcome);
  }

  // Reads `data`, which may have padding after the last field. Appends the output to `*out` unless
  // `out` is null. Every element takes at least one byte of the source, so the work is linear in
  // the size of `data`. Adds the SeenValue of each nullable field to the set at the field's slot in
  // `seen`. `seen` is empty or has an entry for each nullable field.
  Outcome Run(std::span<const std::byte> data, std::vector<std::byte>* out,
              std::span<char> seen = {}) const;

 private:
  // A part of the source: `fixed` bytes, which end with a u16 count, and then that number of units
  // of `unit` bytes.
  struct Step {
    std::size_t fixed = 0;  // bytes, including the count
    std::uint8_t unit = 0;  // bytes of a unit; 0: last step, without a count
    bool is_ascii = false;  // the units are expected to be ASCII
  };

  void MakeSteps();
  // Finds the end of the source by steps_, which must not be empty, and sets `*outcome`. Returns
  // false if some text is not ASCII; the operations must then be run.
  bool RunSteps(std::span<const std::byte> data, Outcome* outcome) const;

  std::vector<PayloadOp> ops_;
  bool swap_counts_ = false;  // counts in the source are big-endian
  bool identity_ = false;
  // Steps that find the end of the source if the program is an identity. Nearly all programs are
  // identities, whose payload is copied unchanged. Empty for other programs, and if a field does
  // not have the form of a Step, such as a nullable field or an array of structs.
  std::vector<Step> steps_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_
