// EventIds, by which TraceEvent finds what an event is: its name, fields and opcode. A row's level,
// keywords, version and key/values are that row's own. TraceEvent takes the later one of two rows
// that say otherwise, for the events of both.
#ifndef LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_
#define LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// The ids that are given to schemas which have none of their own, or whose own another schema of
// the provider has, lie in 1..kMaxGivenEventId. TraceEvent has the two above for itself: 65534 is
// the manifest event of dynamic providers, and 65535 is no id.
inline constexpr std::uint32_t kMaxGivenEventId = 65533;

// The first id to try for this schema: a hash, so that it mostly is the same in every file,
// whatever else is in it, and in all versions and on all machines: recordings that were made at
// different times are read together. It is above the ids that authors of events give, mostly.
std::uint32_t HashedEventId(std::string_view name, const std::vector<Field>& fields,
                            std::uint8_t opcode);

// The id to try after `id`, if that is taken: after kMaxGivenEventId tries all ids were tried.
constexpr std::uint32_t NextEventId(std::uint32_t id) {
  return id >= kMaxGivenEventId ? 1 : id + 1;
}

// Which EventIds the rows of a stream have, and for what.
class EventIdTable {
 public:
  // `max_entries` is for each of two generations: see StartGeneration.
  explicit EventIdTable(std::size_t max_entries = std::numeric_limits<std::size_t>::max())
      : max_entries_(max_entries) {}

  enum class Clash {
    kNone,
    kSchema,  // a row of that provider and id has another name, other fields or another opcode
    kName,    // Universal.Events: a row of that name has another id
  };
  // With the rows that were added.
  Clash Find(const EventMetadata& row) const;
  void Add(const EventMetadata& row);

  // The id that rows of the row's name have; of a provider whose events go by names.
  std::optional<std::uint32_t> IdOfName(const EventMetadata& row) const;

  // An id with which the row does not clash by its schema; nullopt if all are taken.
  std::optional<std::uint32_t> FreeId(const EventMetadata& row);

  // Ends a generation, as a flush of metadata does: TraceEvent remembers what was before it. All
  // generations but the one that begins are kept together, up to max_entries; if they are more, all
  // but the last one are forgotten.
  void StartGeneration();

 private:
  using Key = std::pair<Guid, std::uint32_t>;
  struct Generation {
    absl::flat_hash_map<Key, std::uint64_t> schemas;                // as hashes
    absl::flat_hash_map<std::uint64_t, std::uint32_t> ids_by_name;  // as hashes
  };
  bool Agrees(const Key& key, std::uint64_t schema) const;

  const std::size_t max_entries_;
  Generation current_;
  Generation before_;
  absl::flat_hash_map<Guid, std::uint32_t> next_free_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_
