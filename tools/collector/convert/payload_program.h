// Turns the payload of an EventHeader event into a NetTrace payload.
#ifndef TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_
#define TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace collector {

// One field, or one member of a struct, of the source's payload.
struct PayloadOp {
  enum class Element : std::uint8_t {
    kFixed,     // `size` bytes, reversed if `swap`
    kUuid,      // 16 bytes in RFC 4122 order, to a Guid
    kZText,     // code units of `size` bytes up to a zero one
    kText,      // a u16 count and so many code units of `size` bytes
    kUnits,     // `count` code units of `size` bytes
    kNullable,  // a u16 count and so many bytes: null, or a value whose size is one of `fitting`
    kStruct,    // the `children` operations that follow this one
  };
  enum class Output : std::uint8_t {
    kUnits,          // a u16 count, then the code units (kNullable: the bytes) as they are
    kUnitsAndZero,   // the code units and a zero one, as they are
    kBytes,          // a u16 count of bytes, then the code units' bytes
    kUtf16,          // a u16 count, then UTF-16
    kUtf16Unit,      // one UTF-16 code unit
    kValue,          // kNullable: the value alone
    kCountAndValue,  // kNullable: a u16 1 and the value, or a u16 0
  };
  enum class Repeat : std::uint8_t { kOnce, kConstant, kCounted };
  // The encoding of code units of 1 byte; those of 2 and 4 are UTF-16 and UTF-32.
  enum class Charset : std::uint8_t { kNone, kUtf8, kLatin1 };

  Element element = Element::kFixed;
  Output output = Output::kUnits;
  Repeat repeat = Repeat::kOnce;
  Charset charset = Charset::kNone;
  std::uint8_t size = 1;
  bool swap = false;
  bool byte_order_mark = false;  // the text may begin with one, which overrides encoding and order
  bool ends_at_zero = false;     // kUnits: the text ends before the first zero unit
  bool uuid = false;             // kNullable: the value is one in RFC 4122 order, to a Guid
  bool write_count = false;      // a u16 count of elements goes to the output
  std::uint8_t fitting = 0;      // kNullable: a set of SeenValue
  std::uint16_t slot = 0;        // kNullable: the field's place among those
  std::uint16_t count = 1;       // kConstant; kUnits
  std::uint32_t children = 0;    // operations in the struct, nested ones included
};

// The values that a nullable field had in an event: a set of these.
enum SeenValue : std::uint8_t {
  kSeenNull = 1,
  kSeen1Byte = 2,
  kSeen2Bytes = 4,
  kSeen4Bytes = 8,
  kSeen8Bytes = 16,
  kSeen16Bytes = 32,
  kSeenMisfit = 64,  // a size that does not suit the format
};
// Returns kSeenMisfit for what is no size of numbers.
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

// A compiled schema. Immutable; Run may be called from any thread.
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
    std::size_t consumed = 0;  // bytes of the source
    bool non_ascii = false;    // some text of 1-byte units is not ASCII
  };

  // What it keeps, besides itself.
  std::size_t bytes() const {
    return ops_.capacity() * sizeof(PayloadOp) + steps_.capacity() * sizeof(Step);
  }

  // The output is the source, unchanged: Run then needs no `out`.
  bool identity() const { return identity_; }

  // Goes over `data` where it is that of an identity whose length is soon known: nearly always.
  // False if that takes Run.
  bool RunQuickly(std::span<const std::byte> data, Outcome* outcome) const {
    return !steps_.empty() && RunSteps(data, outcome);
  }

  // Walks `data`, which may have padding after the last field, and appends the output to `*out`
  // unless it is null. Every element of the source costs at least a byte of it, so the work is
  // linear in its size. Adds to `seen`, at each nullable field's slot, what values it had; `seen`
  // is empty or has a place for each of them.
  Outcome Run(std::span<const std::byte> data, std::vector<std::byte>* out,
              std::span<char> seen = {}) const;

 private:
  // Some bytes of the source, then as many units as the count that they end with says.
  struct Step {
    std::size_t fixed = 0;  // the count included
    std::uint8_t unit = 0;  // bytes; 0: this is the last step, and there is no count
    bool is_ascii = false;  // the units are expected to be
  };

  void MakeSteps();
  // Goes over the source of an identity that has steps. False if text is not ASCII: then only the
  // operations tell what it is.
  bool RunSteps(std::span<const std::byte> data, Outcome* outcome) const;

  std::vector<PayloadOp> ops_;
  bool swap_counts_ = false;  // counts in the source are of the other byte order
  bool identity_ = false;
  // What of an identity's source says how long it is: nearly all programs are identities, whose
  // payload is copied as it is. Empty if there are arrays of structs or nullable fields.
  std::vector<Step> steps_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_
