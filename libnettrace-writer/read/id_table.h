// Rows by their ids, which a well-made stream counts from 1 and others choose at will.
#ifndef LIBNETTRACE_WRITER_READ_ID_TABLE_H_
#define LIBNETTRACE_WRITER_READ_ID_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/ids.h"

namespace nettrace::internal {

// Ids that are not far above the number of rows index a vector, as a hash table would take several
// cache misses; the others are in a hash table. The memory is in proportion to the rows.
//
// Entry: converts to false if it is default-constructed, and to true else.
template <typename Id, typename Entry>
class IdTable {
 public:
  // nullptr if there is none. Valid until the next call that is not const.
  const Entry* Find(Id row) const {
    const std::uint64_t id = ToNumber(row);
    if (id < dense_.size()) {
      const Entry& entry = dense_[static_cast<std::size_t>(id)];
      if (entry) [[likely]]
        return &entry;
    }
    if (sparse_.empty()) return nullptr;
    const auto found = sparse_.find(id);
    return found == sparse_.end() ? nullptr : &found->second;
  }

  // False if there is one already.
  bool Add(Id row, Entry entry) {
    if (Find(row) != nullptr) return false;
    const std::uint64_t id = ToNumber(row);
    ++size_;
    if (id >= dense_.size() && id <= kFirstDense + kSpread * size_) {
      dense_.resize(static_cast<std::size_t>(id) + 1);
    }
    (id < dense_.size() ? dense_[static_cast<std::size_t>(id)] : sparse_[id]) = std::move(entry);
    return true;
  }

  // Takes out the entry of an id that has one.
  Entry Remove(Id row) {
    const std::uint64_t id = ToNumber(row);
    --size_;
    if (id < dense_.size() && dense_[static_cast<std::size_t>(id)]) {
      return std::exchange(dense_[static_cast<std::size_t>(id)], Entry());
    }
    const auto found = sparse_.find(id);
    Entry entry = std::move(found->second);
    sparse_.erase(found);
    return entry;
  }

  void Clear() {
    dense_.clear();
    sparse_.clear();
    size_ = 0;
  }

  template <typename Use>
  void ForEach(const Use& use) const {
    for (const Entry& entry : dense_) {
      if (entry) use(entry);
    }
    for (const auto& [id, entry] : sparse_) use(entry);
  }

 private:
  static constexpr std::uint64_t kFirstDense = 64;
  static constexpr std::uint64_t kSpread = 4;

  std::vector<Entry> dense_;
  absl::flat_hash_map<std::uint64_t, Entry> sparse_;
  std::size_t size_ = 0;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_ID_TABLE_H_
