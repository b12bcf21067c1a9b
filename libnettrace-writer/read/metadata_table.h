// The metadata rows of a stream by id.
#ifndef LIBNETTRACE_WRITER_READ_METADATA_TABLE_H_
#define LIBNETTRACE_WRITER_READ_METADATA_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/ids.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// Stores rows with consecutive ids, as writers usually assign them, in an array. Find reads no row
// and searches no hash table for these ids. Other ids are in a hash table.
class MetadataTable {
 public:
  // Returns nullptr if there is none. Valid until Clear.
  const EventMetadata* Find(MetadataId id) const {
    const std::size_t place = std::size_t{ToNumber(id)} - first_id_;
    if (place < counted_) [[likely]]
      return &chunks_[place / kChunkRows][place % kChunkRows];
    return FindOther(id);
  }

  // Returns false if the id already has a row.
  bool Add(MetadataId id, EventMetadata row) {
    if (Find(id) != nullptr) return false;
    if (counted_ == 0) first_id_ = ToNumber(id);
    if (ToNumber(id) != first_id_ + counted_) {
      others_.emplace(id, std::make_unique<EventMetadata>(std::move(row)));
      return true;
    }
    if (counted_++ % kChunkRows == 0) chunks_.emplace_back().reserve(kChunkRows);
    chunks_.back().push_back(std::move(row));
    return true;
  }

  void Clear() { *this = MetadataTable(); }

 private:
  // Keeps chunks_ small enough for the first-level cache, up to some 300,000 rows.
  static constexpr std::size_t kChunkRows = 256;

  const EventMetadata* FindOther(MetadataId id) const {
    const auto found = others_.find(id);
    return found == others_.end() ? nullptr : found->second.get();
  }

  std::size_t first_id_ = 0;
  std::size_t counted_ = 0;  // number of ids from first_id_ on
  std::vector<std::vector<EventMetadata>> chunks_;
  absl::flat_hash_map<MetadataId, std::unique_ptr<EventMetadata>> others_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_METADATA_TABLE_H_
