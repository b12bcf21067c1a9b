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

// Reads values from a packet and buffers a small part of the file. After an error, all further
// values are 0 or empty.
class BitReader {
 public:
  // `file` must outlive this object.
  explicit BitReader(ByteFile* file) : file_(file) {}

  // Begins a packet of `bits` bits at this byte offset of the file.
  void Begin(std::uint64_t offset, std::uint64_t bits);
  // Changes the number of bits that may be read from the packet.
  void SetEnd(std::uint64_t bits) { end_ = bits; }

  bool ok() const { return status_.ok(); }
  // Returns DataLoss if the packet or the file ends too early, or the file's error.
  const absl::Status& status() const { return status_; }
  // Returns the number of bits that have been read from the packet.
  std::uint64_t position() const { return position_; }
  std::uint64_t left() const { return end_ - position_; }
  // Returns the offset in the file of the next byte.
  std::uint64_t offset() const { return offset_ + position_ / 8; }

  // Skips to the next multiple of `align` bits from the start of the packet. `align` must be a
  // power of 2.
  void Align(std::uint64_t align);
  // Reads an integer of `size` bits, 1 to 64, whose byte order is big-endian if `is_big`.
  std::uint64_t Read(unsigned size, bool is_big);
  // Reads the bytes up to a NUL, and skips the NUL. Keeps at most `max` bytes of the text.
  // position() must be a multiple of 8.
  void ReadText(std::size_t max, std::string* text);

 private:
  // Returns the bytes at `begin`, counted from the beginning of the packet. Returns null if they
  // cannot be read.
  const std::byte* Bytes(std::uint64_t begin, std::size_t size);
  void Fail();

  static constexpr std::size_t kWindow = 16 << 10;

  ByteFile* file_;
  std::uint64_t offset_ = 0;    // bytes from the file's start to the packet
  std::uint64_t end_ = 0;       // bits of the packet that may be read
  std::uint64_t position_ = 0;  // bits of the packet that have been read
  absl::Status status_;
  std::vector<std::byte> window_;    // the buffered part of the file
  std::uint64_t window_offset_ = 0;  // bytes from the file's start to the window
};

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_BIT_READER_H_
