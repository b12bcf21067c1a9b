// Small numbers for things that come and go, and tables of what somebody knows of each: a look into
// such a table is one comparison.
#ifndef TOOLS_COLLECTOR_BASE_SLOTS_H_
#define TOOLS_COLLECTOR_BASE_SLOTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collector {

// A place among things of one kind. When the thing is gone, another one gets its index, with
// another generation. One number, so that it is stored and compared at once.
class Slot {
 public:
  constexpr Slot() = default;  // none
  // The generation is not 0.
  constexpr Slot(std::uint32_t index, std::uint32_t generation)
      : bits_(std::uint64_t{generation} << 32 | index) {}

  constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(bits_); }
  constexpr std::uint32_t generation() const { return static_cast<std::uint32_t>(bits_ >> 32); }
  constexpr bool valid() const { return bits_ != 0; }
  friend bool operator==(const Slot&, const Slot&) = default;

 private:
  std::uint64_t bits_ = 0;
};

// Gives out slots. The indices are below the greatest number of slots that were in use at a time.
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
  // Takes back a slot, and makes it none. One that is none is ignored.
  void Release(Slot* slot) {
    if (!slot->valid()) return;
    if (++generations_[slot->index()] == 0) generations_[slot->index()] = 1;
    free_.push_back(slot->index());
    *slot = Slot();
  }

 private:
  std::vector<std::uint32_t> generations_;  // by index, of the slot that is in use or comes next
  std::vector<std::uint32_t> free_;
};

// A number for each slot, as far as one was set. What was set for a slot that is gone is forgotten
// when its index is set anew: nobody has to say that it is gone.
template <typename Value>
class SlotMap {
 public:
  SlotMap() = default;
  SlotMap(const SlotMap&) = delete;
  SlotMap& operator=(const SlotMap&) = delete;

  // Value() if none was set since Clear.
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
  // In no time, however many there are.
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

  // What is unlike the key of every other thing at the same index, and that of the time before
  // Clear; never 0.
  std::uint64_t KeyOf(Slot slot) const { return epoch_ | slot.generation(); }
  void Grow(std::size_t size) {
    storage_.resize(size);
    entries_ = storage_.data();
    size_ = size;
  }

  std::vector<Entry> storage_;
  // Of storage_: as the vector knows its end and not its size, a look at it takes longer.
  Entry* entries_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_BASE_SLOTS_H_
