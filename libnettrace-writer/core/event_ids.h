// Records and chooses EventIds. TraceEvent finds an event's name, fields and opcode by its provider
// and EventId; it takes level, keywords, version and key/values from each metadata row. If two rows
// with the same provider and EventId differ in name, fields or opcode, TraceEvent uses the later
// row for the events of both rows.
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

// Maximum EventId that HashedEventId, NextEventId and FreeId return, for a schema that has no id or
// whose id belongs to another schema of the provider. The minimum is 1. TraceEvent reserves the two
// ids above: 65534 is the manifest event of dynamic providers, and 65535 means no id.
inline constexpr std::uint32_t kMaxGivenEventId = 65533;

// Returns the first id to try for this schema. The id is a hash, so that a schema usually has the
// same id in all files, from all machines and versions of this library: recordings from different
// times are often read together. The id is usually above the ids that authors choose.
std::uint32_t HashedEventId(std::string_view name, const std::vector<Field>& fields,
                            std::uint8_t opcode);

// Returns the id to try next if another schema has `id`. After kMaxGivenEventId calls, a caller has
// tried all ids, whichever id it started with.
constexpr std::uint32_t NextEventId(std::uint32_t id) {
  return id >= kMaxGivenEventId ? 1 : id + 1;
}

// Records which EventIds the rows of a stream have, and for which schemas.
class EventIdTable {
 public:
  // `max_entries` limits the entries from before the latest flush of metadata: see StartGeneration.
  explicit EventIdTable(std::size_t max_entries = std::numeric_limits<std::size_t>::max())
      : max_entries_(max_entries) {}

  enum class Clash {
    kNone,
    kSchema,  // another row with this provider and EventId has another name, fields or opcode
    kName,    // only for provider Universal.Events: another row with this name has another EventId
  };
  // Returns how `row` conflicts with the rows that were added.
  Clash Find(const EventMetadata& row) const;
  void Add(const EventMetadata& row);

  // Returns the EventId of the rows that were added with this row's name. Returns nullopt if there
  // are none, or if the provider is not Universal.Events.
  std::optional<std::uint32_t> IdOfName(const EventMetadata& row) const;

  // Returns an EventId that no other schema of the row's provider has. First tries some ids from
  // the hash of the row upwards. Then searches downwards from the id at which the previous downward
  // search for this provider ended, so it may miss ids that StartGeneration has freed. Returns
  // nullopt if it finds none.
  std::optional<std::uint32_t> FreeId(const EventMetadata& row);

  // Returns the estimated size of the table in bytes.
  std::size_t bytes() const;

  // Must be called at a flush of metadata. The rows between two flushes form a generation.
  // TraceEvent remembers rows from before a flush, so the table keeps the entries of earlier
  // generations, too. If the ended generations would have more than max_entries entries, the table
  // keeps only those of the generation that ends now.
  void StartGeneration();

 private:
  using Key = std::pair<Guid, std::uint32_t>;
  struct Generation {
    absl::flat_hash_map<Key, std::uint64_t> schemas;                // hashes of schemas
    absl::flat_hash_map<std::uint64_t, std::uint32_t> ids_by_name;  // EventIds by hash of the name
  };
  bool Agrees(const Key& key, std::uint64_t schema) const;

  const std::size_t max_entries_;
  Generation current_;
  Generation before_;
  absl::flat_hash_map<Guid, std::uint32_t> next_free_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_EVENT_IDS_H_
