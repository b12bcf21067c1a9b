// EventIds for schemas that have none of their own, or whose own another schema of the provider
// has: a hash of what TraceEvent must find by the id. So a schema mostly has the same id in every
// file, whatever else is in it.
#ifndef LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_
#define LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "nettrace/schema.h"

namespace nettrace::internal {

// The ids that are given lie in 1..kMaxGivenEventId. TraceEvent has the two above for itself: 65534
// is the manifest event of dynamic providers, and 65535 loses even the provider's name.
inline constexpr std::uint32_t kMaxGivenEventId = 65533;

// The first id to try for this schema. The same in all versions and on all machines: recordings
// that were made at different times are read together.
std::uint32_t HashedEventId(std::string_view name, const std::vector<Field>& fields,
                            std::uint8_t opcode);

// The id to try after `id`, if that is taken: after kMaxGivenEventId tries all ids were tried.
constexpr std::uint32_t NextEventId(std::uint32_t id) {
  return id >= kMaxGivenEventId ? 1 : id + 1;
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_
