// Puts an event together at run time, from its metadata and data: what the dynamic builder and the
// C API end in. (Static events have their beginning at compile time, see event.h.)
#ifndef LIBEVENTHEADER_PROVIDER_RECORD_H_
#define LIBEVENTHEADER_PROVIDER_RECORD_H_

#include <cstddef>
#include <span>

#include "eventheader/activity.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh::internal {

// Writes the event to `set`, or refuses and counts it if it is over kMaxEventSize. The header's
// level and flags are the set's and this machine's. `activity` may be null. Async-signal-safe.
WriteResult WriteRecord(const EventSet& set, Header header, const Activity* activity,
                        std::span<const std::byte> metadata,
                        std::span<const std::byte> data) noexcept;

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_RECORD_H_
