// A table of rows by id. Writers usually count ids from 1, but a stream may use any ids.
#ifndef LIBNETTRACE_WRITER_READ_ID_TABLE_H_
#define LIBNETTRACE_WRITER_READ_ID_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/ids.h"

namespace nettrace::internal {

// Stores rows in a vector with the id as the index, because a look-up in a hash table would cost
// several cache misses. If the id of a row is far above the number of rows, the row is stored in a
// hash table instead, so that the memory is proportional to the number of rows.
//
// Entry must convert to false if it is default-constructed, else to true.
template <typename Id, typename Entry>
class IdTable {
 public:
  // Returns the entry of the id, or nullptr if there is none. The result is valid until the next
  // non-const call.
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

  // Adds an entry. Returns false, and adds nothing, if the id already has an entry.
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

  // Removes and returns the entry of an id, which must have one.
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
