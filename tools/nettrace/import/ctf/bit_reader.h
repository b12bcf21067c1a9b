// Reads integers of any number of bits from a packet of a CTF stream.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_BIT_READER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_BIT_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/nettrace/import/byte_file.h"

namespace tools::importing::ctf {

// Holds a small part of the file. After an error every value is 0 or empty.
class BitReader {
 public:
  // `file` must live as long.
  explicit BitReader(ByteFile* file) : file_(file) {}

  // Begins a packet at this byte of the file. No more than `bits` of it are read.
  void Begin(std::uint64_t offset, std::uint64_t bits);
  // Changes how many bits of the packet are read.
  void SetEnd(std::uint64_t bits) { end_ = bits; }

  bool ok() const { return status_.ok(); }
  // DataLoss where the packet ends too early; the file's own error.
  const absl::Status& status() const { return status_; }
  // Bits from the packet's begin.
  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return end_ - position_; }
  // The byte of the file that is read next.
  std::uint64_t offset() const { return offset_ + position_ / 8; }

  // `align` is a power of 2.
  void Align(std::uint64_t align);
  // `size` is 1 to 64 bits.
  std::uint64_t Read(unsigned size, bool is_big);
  // The bytes up to a NUL, which is taken, too. Of a text longer than `max` bytes that many are
  // given.
  void ReadText(std::size_t max, std::string* text);

 private:
  // Those bytes from the packet's begin; null if they cannot be read.
  const std::byte* Bytes(std::uint64_t begin, std::size_t size);
  void Fail();

  static constexpr std::size_t kWindow = 16 << 10;

  ByteFile* file_;
  std::uint64_t offset_ = 0;  // of the packet, in the file
  std::uint64_t end_ = 0;
  std::uint64_t position_ = 0;
  absl::Status status_;
  std::vector<std::byte> window_;
  std::uint64_t window_offset_ = 0;  // in the file
};

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_BIT_READER_H_
