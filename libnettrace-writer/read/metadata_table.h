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

// Stores rows with consecutive ids, which most writers assign, in an array. Find() returns such a
// row without a search in a hash table, and without reading the row. Rows with other ids are in a
// hash table.
class MetadataTable {
 public:
  // Returns the row with this id, or nullptr if there is none. The result is valid until Clear().
  const EventMetadata* Find(MetadataId id) const {
    const std::size_t place = std::size_t{ToNumber(id)} - first_id_;
    if (place < counted_) [[likely]]
      return &chunks_[place / kChunkRows][place % kChunkRows];
    return FindOther(id);
  }

  // Adds a row. Returns false, and adds nothing, if the id already has a row.
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
  // Rows in a chunk. With this size, chunks_ fits in the first-level cache for up to about 300,000
  // rows.
  static constexpr std::size_t kChunkRows = 256;

  const EventMetadata* FindOther(MetadataId id) const {
    const auto found = others_.find(id);
    return found == others_.end() ? nullptr : found->second.get();
  }

  std::size_t first_id_ = 0;
  std::size_t counted_ = 0;  // number of rows in chunks_; their ids are first_id_, first_id_ + 1, …
  std::vector<std::vector<EventMetadata>> chunks_;
  absl::flat_hash_map<MetadataId, std::unique_ptr<EventMetadata>> others_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_METADATA_TABLE_H_
