#include "tools/nettrace/import/ctf/metadata_text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace tools::importing::ctf {
namespace {

constexpr std::uint32_t kMetadataPacketMagic = 0x75D11D57;
// Size of magic, uuid[16], checksum, content_size and packet_size, followed by five fields of one
// byte: the schemes of compression, encryption and checksum, and the major and minor version.
constexpr std::size_t kHeaderSize = 37;
constexpr std::size_t kContentSizeAt = 24;
constexpr std::size_t kPacketSizeAt = 28;
constexpr std::size_t kSchemesAt = 32;

std::uint32_t Load(std::string_view bytes, std::size_t offset, bool is_big) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[offset + i]);
    number |= std::uint32_t{byte} << (8 * (is_big ? 3 - i : i));
  }
  return number;
}

}  // namespace

absl::StatusOr<std::string> MetadataText(std::string_view file) {
  if (file.starts_with('\x1E')) {  // a sequence of JSON texts
    return absl::UnimplementedError(
        "this is CTF 2; only CTF 1.8 is supported, so write the trace in that version");
  }
  if (file.size() < 4) return std::string(file);
  const bool is_big = Load(file, 0, true) == kMetadataPacketMagic;
  if (!is_big && Load(file, 0, false) != kMetadataPacketMagic) return std::string(file);
  std::string text;
  for (std::size_t offset = 0; offset < file.size();) {
    const std::string_view rest = file.substr(offset);
    const auto error = [offset](std::string_view why) {
      return absl::InvalidArgumentError(
          absl::StrCat("at byte ", offset, ": ", absl::string_view(why.data(), why.size())));
    };
    if (rest.size() < kHeaderSize) return error("a packet is cut");
    if (Load(rest, 0, is_big) != kMetadataPacketMagic)
      return error("the magic number of a packet of metadata is wrong");
    if (rest[kSchemesAt] != 0 || rest[kSchemesAt + 1] != 0) {
      return error("a packet is compressed or encrypted, which is not supported");
    }
    const std::uint32_t content = Load(rest, kContentSizeAt, is_big);
    const std::uint32_t packet = Load(rest, kPacketSizeAt, is_big);
    if (content % 8 != 0 || packet % 8 != 0 || content / 8 < kHeaderSize || packet < content) {
      return error("the sizes of a packet are invalid");
    }
    if (packet / 8 > rest.size()) return error("a packet is cut");
    text += rest.substr(kHeaderSize, content / 8 - kHeaderSize);
    offset += packet / 8;
  }
  return text;
}

}  // namespace tools::importing::ctf
