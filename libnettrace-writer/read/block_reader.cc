#include "libnettrace-writer/read/block_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/block_layout.h"
#include "libnettrace-writer/core/byte_reader.h"
#include "nettrace/format.h"

namespace nettrace::internal {
namespace {

constexpr std::size_t kMaxReadSize = 256 * 1024;
constexpr std::size_t kMagicSize = 8;
constexpr std::size_t kV6HeaderSize = 20;
constexpr std::string_view kFastSerialization = "!FastSerialization.1";
constexpr std::uint32_t kNewestLegacyVersion = 5;

// Tags of FastSerialization, the format in which V4 and V5 store objects.
constexpr std::byte kNullReference{1};
constexpr std::byte kBeginPrivateObject{5};
constexpr std::byte kEndObject{6};

constexpr std::size_t kLegacyTraceSize = 48;
// Bytes from the start of an object to the version of its type.
constexpr std::size_t kLegacyVersionOffset = 3;
constexpr std::uint32_t kMaxLegacyNameSize = 64;

// Returns whether the bytes consist of rows, each preceded by its size.
bool AreRows(ByteReader reader) {
  while (!reader.empty()) reader.Bytes(reader.Number<std::uint16_t>());
  return reader.ok();
}

// Returns whether `content` may be the content of a V6 block of this kind. Almost all other bytes
// fail these checks. Returns false for a Trace block, which only begins a stream, for EndOfStream,
// which HasBlock checks, and for unknown kinds. Reads only headers and sizes of rows.
bool IsPlausible(BlockKind kind, std::span<const std::byte> content) {
  constexpr std::uint64_t kMaxFlags = 15;
  ByteReader reader(content);
  switch (kind) {
    case BlockKind::kEvent: {
      const auto size = reader.Number<std::uint16_t>();
      const auto flags = reader.Number<std::uint16_t>();
      const auto min = reader.Number<std::uint64_t>();
      const auto max = reader.Number<std::uint64_t>();
      return reader.ok() && size == kEventBlockHeaderSize && flags <= kMaxFlags && min <= max;
    }
    case BlockKind::kMetadata:
      reader.Bytes(reader.Number<std::uint16_t>());
      return reader.ok() && !reader.empty() && AreRows(reader);
    case BlockKind::kThread:
      return !reader.empty() && AreRows(reader);
    case BlockKind::kSequencePoint: {
      reader.Number<std::uint64_t>();
      const auto flags = reader.Number<std::uint32_t>();
      const auto threads = reader.Number<std::uint32_t>();
      return reader.ok() && flags <= kMaxFlags && threads <= reader.size() / 2 &&
             reader.size() <= std::uint64_t{threads} * 10;
    }
    case BlockKind::kStack:
    case BlockKind::kLabelList: {
      const auto first = reader.Number<std::uint32_t>();
      const auto count = reader.Number<std::uint32_t>();
      return reader.ok() && first != 0 && count != 0 && count <= reader.size() / 2;
    }
    case BlockKind::kRemoveThread:
      return content.size() >= 2;
    default:
      return false;
  }
}

std::string_view Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

BlockReader::BlockReader(std::unique_ptr<Source> source, std::size_t max_block_size, bool waits)
    : source_(std::move(source)),
      max_block_size_(max_block_size),
      memory_(source_->InMemory()),
      waits_(waits),
      end_(memory_.size()),
      source_ended_(!memory_.empty()) {}

bool BlockReader::Fill(std::size_t count) {
  while (available() < count) {
    if (source_ended_) return false;
    if (!waits_) begin_ = next_;
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      buffer_offset_ += begin_;
      end_ -= begin_;
      next_ -= begin_;
      begin_ = 0;
    }
    // The buffer grows with the bytes that arrive, because a wrong size in the file must not
    // allocate much memory.
    const std::size_t wanted = std::min(std::max(next_ + count, read_size_), end_ * 2 + read_size_);
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    const auto got = source_->Read(std::span(buffer_).subspan(end_));
    if (waits_ && absl::IsUnavailable(got.status())) {
      is_waiting_ = true;
      return false;
    }
    if (!got.ok()) source_status_ = got.status();
    if (!got.ok() || *got == 0) {
      source_ended_ = true;
      return available() >= count;
    }
    end_ += *got;
    if (end_ == buffer_.size()) read_size_ = std::min(2 * read_size_, kMaxReadSize);
  }
  return true;
}

std::span<const std::byte> BlockReader::Take(std::size_t count) {
  const auto bytes = Peek(count);
  next_ += count;
  return bytes;
}

bool BlockReader::Stop(std::string reason) {
  if (is_waiting_) return false;
  stop_reason_ = std::move(reason);
  if (!source_status_.ok()) stop_reason_ = std::string(source_status_.message());
  return false;
}

bool BlockReader::Cut(const char* where) {
  return Stop(absl::StrCat("the stream ends within ", where));
}

std::uint64_t BlockReader::DrainToEnd() {
  while (!source_ended_ && !waits_) {
    next_ = end_;
    Fill(1);
  }
  if (!waits_) next_ = end_;
  return position();
}

absl::Status BlockReader::ReadHeader() {
  const std::string_view magic(kMagic, kMagicSize);
  is_waiting_ = false;
  // Bytes up to the end of the version in V4 and V5, where the Trace object contains the version.
  // The header of V6 is shorter.
  constexpr std::size_t kLongest =
      kMagicSize + 4 + kFastSerialization.size() + kLegacyVersionOffset + 8;
  if (waits_ && !Fill(kLongest) && is_waiting_) return absl::OkStatus();
  Fill(4 + kFastSerialization.size());
  const std::string_view head = Text(Peek(available()));
  if (head.size() >= 4 + kFastSerialization.size() &&
      head.substr(4, kFastSerialization.size()) == kFastSerialization) {
    return absl::UnimplementedError(
        "this is a NetPerf file (NetTrace V3 or older), which is not supported; V4, V5 and V6 are");
  }
  if (head.substr(0, kMagicSize) != magic.substr(0, head.size())) {
    return absl::InvalidArgumentError("not a NetTrace file: it does not start with \"Nettrace\"");
  }
  if (!Fill(kMagicSize + 4)) {
    Cut("the stream header");
    return absl::OkStatus();
  }
  ByteReader reader(Peek(end_));
  reader.Bytes(kMagicSize);
  reserved_ = reader.Number<std::uint32_t>();
  if (reserved_ == kFastSerialization.size()) return ReadLegacyHeader();
  if (reserved_ != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not a NetTrace file of a known version: the number at offset 8 is ", reserved_,
        "; it is 0 in V6, and ", kFastSerialization.size(), " in V4 and V5"));
  }
  if (!Fill(kV6HeaderSize)) {
    Cut("the stream header");
    return absl::OkStatus();
  }
  const auto major = reader.Number<std::uint32_t>();
  minor_version_ = reader.Number<std::uint32_t>();
  if (major != 6) {
    return absl::UnimplementedError(
        absl::StrCat("NetTrace V", major, " is not supported; only V4, V5 and V6 can be read"));
  }
  major_version_ = major;
  Take(kV6HeaderSize);
  return absl::OkStatus();
}

absl::Status BlockReader::ReadLegacyHeader() {
  constexpr std::size_t kSize = kMagicSize + 4 + kFastSerialization.size();
  if (!Fill(kSize)) {
    Cut("the stream header");
    return absl::OkStatus();
  }
  if (Text(Peek(kSize).subspan(kMagicSize + 4)) != kFastSerialization) {
    return absl::InvalidArgumentError(
        "not a NetTrace file of a known version: no \"!FastSerialization.1\" at offset 12");
  }
  Take(kSize);
  // The type of the Trace object follows, and contains the version. If the type is cut, Next()
  // reports the end of the stream.
  block_start_ = position();
  major_version_ = 4;
  if (Fill(kLegacyVersionOffset + 8)) {
    ByteReader reader(Peek(kLegacyVersionOffset + 8).subspan(kLegacyVersionOffset));
    const auto version = reader.Number<std::uint32_t>();
    const auto min_reader_version = reader.Number<std::uint32_t>();
    if (version < 4 || min_reader_version > kNewestLegacyVersion) {
      return absl::UnimplementedError(
          absl::StrCat("the file begins like NetTrace V4 or V5, but states version ",
                       std::max(version, min_reader_version),
                       "; it is damaged, or of a version that cannot be read"));
    }
    major_version_ = version;
  }
  return absl::OkStatus();
}

bool BlockReader::Next(Block* block) {
  if (!stop_reason_.empty()) return false;
  is_waiting_ = false;
  begin_ = next_;
  block_start_ = position();
  if (!Fill(1)) return source_status_.ok() ? false : Stop("");
  const bool has_block = legacy() ? NextLegacy(block) : NextV6(block);
  if (is_waiting_) next_ = begin_;
  return has_block;
}

bool BlockReader::HasBlock(std::size_t at, std::size_t* size) {
  if (!Fill(at + kBlockHeaderSize)) return false;
  ByteReader reader(Peek(at + kBlockHeaderSize).subspan(at));
  const auto header = reader.Number<std::uint32_t>();
  *size = kBlockHeaderSize + (header & kMaxBlockSize);
  if (header == 0) return !Fill(at + kBlockHeaderSize + 1);
  return Fill(at + *size) && IsPlausible(static_cast<BlockKind>(header >> 24),
                                         Peek(at + *size).subspan(at + kBlockHeaderSize));
}

bool BlockReader::HasChain(std::size_t at) {
  constexpr int kBlocks = 3;
  for (int i = 0; i < kBlocks; ++i) {
    if (i != 0 && !Fill(at + 1)) return true;
    std::size_t size = 0;
    if (!HasBlock(at, &size)) return false;
    at += size;
  }
  return true;
}

// Returns whether the block header at `at` and up to 8 bytes before it are zero. A file may end in
// zeros after a power failure. Such zeros are not an EndOfStream block, although the header of that
// block is zero.
bool BlockReader::IsZeroed(std::size_t at) const {
  const std::size_t before = std::min<std::size_t>(at, 2 * kBlockHeaderSize);
  const auto bytes = Peek(at + kBlockHeaderSize).subspan(at - before);
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

// Skips damaged bytes up to the next chain of plausible blocks (HasChain), and stores their
// position in gap_. Skips nothing if a chain begins at the next byte, or directly after the block
// that begins there, or if there is no chain. Skips a plausible block at the next byte only if a
// chain begins within that block.
void BlockReader::SkipGap() {
  gap_ = {block_start_, 0};
  if (HasChain(0) || !Fill(kBlockHeaderSize)) return;
  const auto header = ByteReader(Peek(kBlockHeaderSize)).Number<std::uint32_t>();
  if (header == 0 && !(Fill(2 * kBlockHeaderSize) && IsZeroed(kBlockHeaderSize))) return;
  const std::size_t size = kBlockHeaderSize + (header & kMaxBlockSize);
  const bool fits = header != 0 && Fill(size);
  if (fits && HasChain(size)) return;
  std::size_t block_size = 0;
  const bool is_block = HasBlock(0, &block_size);
  for (std::size_t at = 1; Fill(at + kBlockHeaderSize); ++at) {
    if (is_block && at >= block_size) return;
    // Four zero bytes within the damage do not begin a chain. At the end of the data they could be
    // an EndOfStream block, but a file that was cut may end in zeros, too.
    const bool is_zero =
        ByteReader(Peek(at + kBlockHeaderSize).subspan(at)).Number<std::uint32_t>() == 0;
    if (is_zero || !HasChain(at)) continue;
    Take(at);
    gap_.bytes = at;
    block_start_ = position();
    return;
  }
}

bool BlockReader::NextV6(Block* block) {
  if (skips_damage_) SkipGap();
  if (!Fill(kBlockHeaderSize)) return Cut("a block header");
  ByteReader reader(Peek(kBlockHeaderSize));
  const auto header = reader.Number<std::uint32_t>();
  const std::size_t size = header & kMaxBlockSize;
  // A file may end in zeros after a power failure. Such zeros are not an EndOfStream block.
  if (skips_damage_ && header == 0 && Fill(2 * kBlockHeaderSize) && IsZeroed(kBlockHeaderSize)) {
    return Stop("zero bytes where a block begins");
  }
  if (!Fill(kBlockHeaderSize + size)) return Cut("a block");
  Take(kBlockHeaderSize);
  block->kind = static_cast<std::uint8_t>(header >> 24);
  block->offset = block_start_;
  block->content_offset = position();
  block->content = Take(size);
  return true;
}

// Reads the type of a FastSerialization object: begin tag, null tag (a type has no type), version,
// minimum reader version, name, end tag.
bool BlockReader::ReadLegacyType(std::string* name) {
  constexpr std::size_t kFixedSize = 2 + 4 + 4 + 4;
  if (!Fill(kFixedSize)) return Cut("an object's type");
  ByteReader reader(Take(kFixedSize));
  const auto tags = reader.Bytes(2);
  reader.Number<std::uint32_t>();
  const auto min_reader_version = reader.Number<std::uint32_t>();
  const auto name_size = reader.Number<std::uint32_t>();
  if (tags[0] != kBeginPrivateObject || tags[1] != kNullReference) {
    return Stop("an object's type does not begin with the tags 5 and 1");
  }
  if (min_reader_version > kNewestLegacyVersion) {
    return Stop(absl::StrCat("an object needs a reader of version ", min_reader_version,
                             "; this reader supports versions up to ", kNewestLegacyVersion));
  }
  if (name_size > kMaxLegacyNameSize) {
    return Stop(absl::StrCat("an object's type name has ", name_size, " bytes; the maximum is ",
                             kMaxLegacyNameSize));
  }
  if (!Fill(name_size + 1)) return Cut("an object's type");
  *name = Text(Take(name_size));
  if (Take(1)[0] != kEndObject) return Stop("an object's type does not end with the tag 6");
  return true;
}

bool BlockReader::NextLegacy(Block* block) {
  const std::byte tag = Take(1)[0];
  block->offset = block_start_;
  if (tag == kNullReference) {
    block->kind = static_cast<std::uint8_t>(BlockKind::kEndOfStream);
    block->content_offset = position();
    block->content = {};
    return true;
  }
  if (tag != kBeginPrivateObject) {
    return Stop(absl::StrCat("byte ", static_cast<int>(tag), " where an object (",
                             static_cast<int>(kBeginPrivateObject), ") or the end of the stream (",
                             static_cast<int>(kNullReference), ") is expected"));
  }
  std::string name;
  if (!ReadLegacyType(&name)) return false;
  std::size_t size = kLegacyTraceSize;
  if (name == "Trace") {
    block->kind = static_cast<std::uint8_t>(BlockKind::kTrace);
  } else {
    if (name == "EventBlock") {
      block->kind = static_cast<std::uint8_t>(BlockKind::kEvent);
    } else if (name == "MetadataBlock") {
      block->kind = static_cast<std::uint8_t>(BlockKind::kMetadata);
    } else if (name == "StackBlock") {
      block->kind = static_cast<std::uint8_t>(BlockKind::kStack);
    } else if (name == "SPBlock") {
      block->kind = static_cast<std::uint8_t>(BlockKind::kSequencePoint);
    } else {
      return Stop(
          "an object's type is not Trace, EventBlock, MetadataBlock, StackBlock or SPBlock");
    }
    if (!Fill(4)) return Cut("a block");
    size = ByteReader(Take(4)).Number<std::uint32_t>();
    if (size > max_block_size_) {
      return Stop(absl::StrCat("a block of ", size, " bytes; the maximum is ", max_block_size_));
    }
    const auto padding = static_cast<std::size_t>((4 - position() % 4) % 4);
    if (!Fill(padding)) return Cut("a block");
    Take(padding);
  }
  if (!Fill(size + 1)) return Cut("a block");
  block->content_offset = position();
  block->content = Take(size);
  if (Take(1)[0] != kEndObject) return Stop("an object does not end with the tag 6");
  return true;
}

}  // namespace nettrace::internal
