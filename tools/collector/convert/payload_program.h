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
    kFixed,   // `size` bytes, reversed if `swap`
    kUuid,    // 16 bytes in RFC 4122 order, to a Guid
    kZText,   // code units of `size` bytes up to a zero one
    kText,    // a u16 count and so many code units of `size` bytes
    kStruct,  // the `children` operations that follow this one
  };
  enum class Output : std::uint8_t {
    kUnits,         // a u16 count, then the code units as they are
    kUnitsAndZero,  // the code units and a zero one, as they are
    kUtf16,         // a u16 count, then UTF-16
    kUtf16AndZero,  // UTF-16, then a zero unit
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
  bool write_count = false;    // a u16 count of elements goes to the output
  std::uint16_t count = 1;     // kConstant
  std::uint32_t children = 0;  // operations in the struct, nested ones included
};

// A compiled schema. Immutable; Run may be called from any thread.
class PayloadProgram {
 public:
  PayloadProgram() = default;
  PayloadProgram(std::vector<PayloadOp> ops, bool swap_counts);

  enum class Result {
    kOk,
    kTruncated,        // the payload ends within a field
    kUnrepresentable,  // an element of a text array has a NUL or no valid text in it
  };
  struct Outcome {
    Result result = Result::kOk;
    std::size_t consumed = 0;  // bytes of the source
    bool non_ascii = false;    // some text of 1-byte units is not ASCII
    bool invalid = false;      // some such text is not valid in its charset
  };

  // The output is the source, unchanged: Run then needs no `out`.
  bool identity() const { return identity_; }

  // Walks `data`, which may have padding after the last field, and appends the output to `*out`
  // unless it is null. Every element of the source costs at least a byte of it, so the work is
  // linear in its size.
  Outcome Run(std::span<const std::byte> data, std::vector<std::byte>* out) const;

 private:
  std::vector<PayloadOp> ops_;
  bool swap_counts_ = false;  // counts in the source are of the other byte order
  bool identity_ = false;
  bool fixed_ = false;  // identity, and the size is always fixed_size_
  std::size_t fixed_size_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PAYLOAD_PROGRAM_H_
