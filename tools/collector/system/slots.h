// Small numbers that identify objects during their lifetime, and tables by these numbers. A lookup
// in such a table is one comparison.
#ifndef TOOLS_COLLECTOR_SYSTEM_SLOTS_H_
#define TOOLS_COLLECTOR_SYSTEM_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collector {

// Identifies an object of one kind by an index and a generation. When the object no longer exists,
// another object may get its index, with another generation. Index and generation are in one
// number, so that they can be stored and compared together.
class Slot {
 public:
  constexpr Slot() = default;  // stands for no object
  // `generation` must not be 0.
  constexpr Slot(std::uint32_t index, std::uint32_t generation)
      : bits_(std::uint64_t{generation} << 32 | index) {}

  constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(bits_); }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits_ >> 32); }
  constexpr bool valid() const { return bits_ != 0; }
  friend bool operator==(const Slot&, const Slot&) = default;

 private:
  std::uint64_t bits_ = 0;
};

// Allocates slots. All indices are below the largest number of slots that were in use at the same
// time.
class SlotAllocator {
 public:
  Slot Take() {
    if (free_.empty()) {
      generations_.push_back(1);
      return Slot(static_cast<std::uint32_t>(generations_.size() - 1), 1);
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return Slot(index, generations_[index]);
  }
  // Frees a slot and sets it to none. Ignores a slot that is none.
  void Release(Slot* slot) {
    if (!slot->valid()) return;
    if (++generations_[slot->index()] == 0) generations_[slot->index()] = 1;
    free_.push_back(slot->index());
    *slot = Slot();
  }

 private:
  // By index: the generation of the slot that is in use, or of the next slot with this index.
  std::vector<std::uint32_t> generations_;
  std::vector<std::uint32_t> free_;
};

// A map from slots to values. The value of a freed slot needs no removal: it is overwritten when a
// value is set for another slot with the same index.
template <typename Value>
class SlotMap {
 public:
  SlotMap() = default;
  SlotMap(const SlotMap&) = delete;
  SlotMap& operator=(const SlotMap&) = delete;

  // Returns Value() if no value was set for the slot since the last Clear().
  Value Find(Slot slot) const {
    if (slot.index() >= size_) [[unlikely]]
      return Value();
    const Entry& entry = entries_[slot.index()];
    return entry.key == KeyOf(slot) ? entry.value : Value();
  }
  void Set(Slot slot, Value value) {
    if (slot.index() >= size_) Grow(std::size_t{slot.index()} + 1);
    entries_[slot.index()] = {KeyOf(slot), value};
  }
  // Removes all values in constant time, except once in 2^32 calls.
  void Clear() {
    epoch_ += kNextEpoch;
    if (epoch_ == 0) std::fill(storage_.begin(), storage_.end(), Entry());
  }

 private:
  static constexpr std::uint64_t kNextEpoch = std::uint64_t{1} << 32;

  struct Entry {
    std::uint64_t key = 0;
    Value value = Value();
  };

  // Returns a key that differs from the keys of all other slots with the same index, and from all
  // keys before the last Clear(). It is not 0 for a valid slot.
  std::uint64_t KeyOf(Slot slot) const { return epoch_ | slot.generation(); }
  void Grow(std::size_t size) {
    storage_.resize(size);
    entries_ = storage_.data();
    size_ = size;
  }

  std::vector<Entry> storage_;
  // The elements and size of storage_. A lookup through the vector takes longer, because the vector
  // stores its end and must compute its size.
  Entry* entries_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SYSTEM_SLOTS_H_
