#include "provider/record.h"

#include <cstdint>

#include "eventheader/internal/record.h"

namespace eh::internal {
namespace {

// Writes an event of at most kRoom bytes.
template <std::size_t kRoom>
[[gnu::noinline]] WriteResult WriteWithin(const EventSet& set, Header header,
                                          const Activity* activity,
                                          std::span<const std::byte> metadata,
                                          std::span<const std::byte> data) noexcept {
  std::byte record[kRecordPrefix + kRoom];
  std::byte* out = record + kRecordPrefix;
  header.flags = kNativeFlags | kFlagExtension;
  header.level = static_cast<std::uint8_t>(set.level());
  out = PutRaw(out, header);
  if (activity != nullptr) out = PutActivity(out, *activity);
  out =
      PutRaw(out, ExtensionHeader{static_cast<std::uint16_t>(metadata.size()), kExtensionMetadata});
  out = PutBytes(out, metadata.data(), metadata.size());
  out = PutBytes(out, data.data(), data.size());
  return set.Write({record, out});
}

}  // namespace

WriteResult WriteRecord(const EventSet& set, Header header, const Activity* activity,
                        std::span<const std::byte> metadata,
                        std::span<const std::byte> data) noexcept {
  const std::size_t fixed = sizeof(Header) + sizeof(ExtensionHeader) + metadata.size() +
                            (activity != nullptr ? ActivitySize(*activity) : 0);
  if (fixed > kMaxEventSize || data.size() > kMaxEventSize - fixed) {
    return set.Refuse(WriteResult::kTooBig);
  }
  // Most events take no more than this of the stack, which may be a signal's; larger ones 8 KiB.
  constexpr std::size_t kSmall = 1024;
  const auto write =
      fixed + data.size() <= kSmall ? WriteWithin<kSmall> : WriteWithin<kMaxEventSize>;
  return write(set, header, activity, metadata, data);
}

}  // namespace eh::internal
