// Cuts a stream of any version into its blocks: those of V6, and the objects of V4 and V5.
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
  std::uint8_t kind = 0;             // a BlockKind, or one that is not known
  std::uint64_t offset = 0;          // of the block's first byte in the stream
  std::uint64_t content_offset = 0;  // of content[0]
  std::span<const std::byte> content;
};

// Holds one block at a time, or none where the source is in memory.
class BlockReader {
 public:
  // `max_block_size` bounds what a block's own size can make the reader hold, bytes.
  BlockReader(std::unique_ptr<Source> source, std::size_t max_block_size);

  // Reads the stream header. An error says that this is no NetTrace stream, or one of a version
  // that is not read. A stream that is cut within its header is OK, with major_version() 0.
  absl::Status ReadHeader();

  // The next block, an EndOfStream included; false where there is none: see stop_reason().
  bool Next(Block* block);

  // 6, or 4 (for V4 and V5 alike).
  std::uint32_t major_version() const { return major_version_; }
  std::uint32_t minor_version() const { return minor_version_; }
  std::uint32_t reserved() const { return reserved_; }
  bool legacy() const { return major_version_ < 6; }
  // Why Next returned false; empty at a block boundary where the source ends.
  const std::string& stop_reason() const { return stop_reason_; }
  // The source's own error, if it had one.
  const absl::Status& source_status() const { return source_status_; }
  // Start of the first block that was not delivered.
  std::uint64_t stop_offset() const { return block_start_; }
  // Offset of what comes next.
  std::uint64_t position() const { return buffer_offset_ + next_; }
  // Reads the rest of the source and returns its end's offset.
  std::uint64_t DrainToEnd();

 private:
  bool Fill(std::size_t count);  // makes `count` bytes available at held()[next_]
  // The bytes that the source gave, in memory or in the buffer, up to end_.
  std::span<const std::byte> held() const {
    return memory_.empty() ? std::span<const std::byte>(buffer_) : memory_;
  }
  std::size_t available() const { return end_ - next_; }
  std::span<const std::byte> Peek(std::size_t count) const { return held().subspan(next_, count); }
  std::span<const std::byte> Take(std::size_t count);
  bool Stop(std::string reason);
  bool Cut(const char* where);
  bool NextV6(Block* block);
  bool NextLegacy(Block* block);
  absl::Status ReadLegacyHeader();
  bool ReadLegacyType(std::string* name);

  std::unique_ptr<Source> source_;
  const std::size_t max_block_size_;
  const std::span<const std::byte> memory_;  // all there is, or empty
  std::vector<std::byte> buffer_;
  std::size_t next_ = 0;  // first unread byte of held()
  std::size_t end_ = 0;   // end of what the source gave
  std::size_t read_size_ = 4096;
  std::uint64_t buffer_offset_ = 0;
  std::uint64_t block_start_ = 0;
  std::uint32_t major_version_ = 0;
  std::uint32_t minor_version_ = 0;
  std::uint32_t reserved_ = 0;
  bool source_ended_ = false;
  std::string stop_reason_;
  absl::Status source_status_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_BLOCK_READER_H_
