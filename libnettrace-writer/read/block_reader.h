// Splits a stream of any version into blocks: V6 blocks, or the objects of V4 and V5.
#ifndef LIBNETTRACE_WRITER_READ_BLOCK_READER_H_
#define LIBNETTRACE_WRITER_READ_BLOCK_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/source.h"

namespace nettrace::internal {

struct Block {
  std::uint8_t kind = 0;               // a BlockKind, or an unknown kind
  std::uint64_t offset = 0;            // bytes from the stream's start to the block
  std::uint64_t content_offset = 0;    // bytes from the stream's start to content[0]
  std::span<const std::byte> content;  // valid until the next call of Next()
};

// Buffers one block at a time, or a few blocks while it looks for the end of damage. If the source
// is in memory, blocks point into its bytes, and nothing is buffered.
class BlockReader {
 public:
  // `max_block_size` limits the size of a block of V4 and V5, in bytes. A block of V6 always has
  // less than 16 MiB, because its size field has 24 bits. `waits` is ReaderOptions::waits.
  BlockReader(std::unique_ptr<Source> source, std::size_t max_block_size, bool waits = false);

  // Reads the stream header. Returns an error if the source is not a NetTrace stream, or if its
  // version is not supported. If the stream is cut within its header, or the source fails there,
  // returns OK, and major_version() is 0. May be called again if is_waiting() is true.
  absl::Status ReadHeader();

  // Makes Next() skip bytes at which no plausible block begins. Has an effect only on V6 streams.
  void SetSkipsDamage() { skips_damage_ = true; }
  // The part that Next() skipped directly before the block that it returned; 0 bytes if none.
  struct Gap {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  const Gap& gap() const { return gap_; }

  // Stores the next block, which may be EndOfStream, in `block` and returns true. Returns false if
  // no further block can be read; stop_reason() is then the reason. If is_waiting() is true, Next
  // can be called again when the source has more bytes.
  bool Next(Block* block);
  // Returns whether ReadHeader or Next has failed only because the source has no bytes yet.
  bool is_waiting() const { return is_waiting_; }

  // Returns 6, or for V4 and V5 the version of the Trace object, which may be 4 for both. Returns 0
  // if the stream is cut within its header, and 4 if a V4 or V5 stream is cut before its version.
  std::uint32_t major_version() const { return major_version_; }
  std::uint32_t minor_version() const { return minor_version_; }
  std::uint32_t reserved() const { return reserved_; }
  bool legacy() const { return major_version_ < 6; }
  // Returns why Next() returned false; empty if the source ended at a block boundary.
  const std::string& stop_reason() const { return stop_reason_; }
  // Returns the error of the source, or OK.
  const absl::Status& source_status() const { return source_status_; }
  // Returns the offset in the stream of the block that the last call of Next() has returned, or
  // could not read. At the end of the stream, this is its size.
  std::uint64_t stop_offset() const { return block_start_; }
  // Returns the offset of the next byte to read.
  std::uint64_t position() const { return buffer_offset_ + next_; }
  // Reads the rest of the source, up to its end or an error. Reads nothing if `waits` is true,
  // because the end may arrive only much later. Returns the offset in the stream of the next byte
  // to read.
  std::uint64_t DrainToEnd();

 private:
  // Reads from the source until `count` bytes are available at held()[next_]. Returns false if the
  // source has fewer bytes: it has ended, has failed, or has no more bytes yet.
  bool Fill(std::size_t count);
  // Returns the source's memory, or the buffer. The bytes from the source are those before end_.
  std::span<const std::byte> held() const {
    return memory_.empty() ? std::span<const std::byte>(buffer_) : memory_;
  }
  std::size_t available() const { return end_ - next_; }
  std::span<const std::byte> Peek(std::size_t count) const { return held().subspan(next_, count); }
  std::span<const std::byte> Take(std::size_t count);
  bool Stop(std::string reason);
  bool Cut(const char* where);
  bool NextV6(Block* block);
  // Returns whether a plausible block begins `at` bytes after the next unread byte. An EndOfStream
  // block is plausible only at the end of the data. Stores the size of the block, including its
  // header, in `size`.
  bool HasBlock(std::size_t at, std::size_t* size);
  // Returns whether three plausible blocks follow one another from `at` on. Fewer blocks are
  // sufficient if the last of them ends at the end of the stream.
  bool HasChain(std::size_t at);
  bool IsZeroed(std::size_t at) const;
  void SkipGap();
  bool NextLegacy(Block* block);
  absl::Status ReadLegacyHeader();
  bool ReadLegacyType(std::string* name);

  std::unique_ptr<Source> source_;
  const std::size_t max_block_size_;
  const std::span<const std::byte> memory_;  // all bytes of the source, or empty
  const bool waits_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // first byte of held() that may be read again; with waits_ only
  std::size_t next_ = 0;   // first unread byte of held()
  std::size_t end_ = 0;    // end of the bytes from the source
  std::size_t read_size_ = 4096;
  std::uint64_t buffer_offset_ = 0;
  std::uint64_t block_start_ = 0;
  std::uint32_t major_version_ = 0;
  std::uint32_t minor_version_ = 0;
  std::uint32_t reserved_ = 0;
  bool source_ended_ = false;
  bool is_waiting_ = false;
  bool skips_damage_ = false;
  Gap gap_;
  std::string stop_reason_;
  absl::Status source_status_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_BLOCK_READER_H_
