// The part of std::atomic that this library needs. Including <atomic> takes longer to compile than
// everything else that a source file with events includes from this library. Needs C++17.
#ifndef EVENTHEADER_INTERNAL_ATOMIC_H_
#define EVENTHEADER_INTERNAL_ATOMIC_H_

namespace eh::internal {

// An atomic integer or pointer with the layout of a T. C code sees the same object as a T
// (static_objects.h). Operations are relaxed unless the comment of the function names another
// order.
template <typename T>
class Atomic {
 public:
  constexpr Atomic() noexcept = default;
  constexpr explicit Atomic(T value) noexcept : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  [[gnu::always_inline]] T Load() const noexcept {
    return __atomic_load_n(&value_, __ATOMIC_RELAXED);
  }
  void Store(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }
  // Stores `value` with release order: a thread that loads the value with acquire order sees all
  // earlier stores of this thread.
  void Publish(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  void Add(T value) noexcept { __atomic_fetch_add(&value_, value, __ATOMIC_RELAXED); }
  void ClearBits(T bits) noexcept { __atomic_fetch_and(&value_, ~bits, __ATOMIC_RELAXED); }
  // Stores `to` and returns true if the value equals `*from`. Otherwise stores the value in `*from`
  // and returns false. May also return false if the value equals `*from`, so call it in a loop.
  bool Replace(T* from, T to) noexcept {
    return __atomic_compare_exchange_n(&value_, from, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }

  // Returns the address of the value, to register it with the kernel.
  T* address() noexcept { return &value_; }

 private:
  T value_{};
};

}  // namespace eh::internal

#endif  // EVENTHEADER_INTERNAL_ATOMIC_H_
