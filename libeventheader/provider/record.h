// Assembles an event at run time from its metadata and data, for the dynamic builder and the C API.
// For a static event, the metadata is built at compile time instead: see event.h.
#ifndef LIBEVENTHEADER_PROVIDER_RECORD_H_
#define LIBEVENTHEADER_PROVIDER_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "eventheader/activity.h"
#include "eventheader/internal/record.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh::internal {

// Returns the size in bytes of the part of an event before its data. `activity` may be null.
constexpr std::size_t SizeBeforeData(std::size_t metadata_size, const Activity* activity) noexcept {
  return sizeof(wire::Header) + sizeof(wire::ExtensionHeader) + metadata_size +
         (activity != nullptr ? ActivitySize(activity->related != nullptr) : 0);
}

// Writes the event to `set`, or refuses and counts it if it exceeds kMaxEventSize. Sets the flags
// of the header for this machine, and its level to that of the set. `activity` may be null.
// Async-signal-safe. Uses only as much of the stack as the event needs, because a signal stack may
// be small. Inlining does not keep that memory longer: both callers return directly after the call.
[[gnu::always_inline]] inline WriteResult WriteRecord(const EventSet& set, wire::Header header,
                                                      const Activity* activity,
                                                      std::span<const std::byte> metadata,
                                                      std::span<const std::byte> data) noexcept {
  const std::size_t before_data = SizeBeforeData(metadata.size(), activity);
  if (before_data > kMaxEventSize || data.size() > kMaxEventSize - before_data) {
    return set.Refuse(WriteResult::kTooBig);
  }
  auto* const record =
      static_cast<std::byte*>(__builtin_alloca(kRecordPrefix + before_data + data.size()));
  std::byte* out = record + kRecordPrefix;
  header.flags = kNativeFlags | kFlagExtension;
  header.level = static_cast<std::uint8_t>(set.level());
  out = PutRaw(out, header);
  if (activity != nullptr) out = PutActivity(out, activity->id.data(), activity->related);
  out = PutRaw(
      out, wire::ExtensionHeader{static_cast<std::uint16_t>(metadata.size()), kExtensionMetadata});
  out = PutBytes(out, metadata.data(), metadata.size());
  out = PutBytes(out, data.data(), data.size());
  return set.Write(record, out);
}

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_RECORD_H_
