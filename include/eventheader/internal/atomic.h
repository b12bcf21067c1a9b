// The part of std::atomic that this library needs. <atomic> itself takes longer to compile than all
// that a source file with events includes of it otherwise. C++17.
#ifndef EVENTHEADER_INTERNAL_ATOMIC_H_
#define EVENTHEADER_INTERNAL_ATOMIC_H_

namespace eh::internal {

// An integer or a pointer. Relaxed, unless a function says otherwise. It has the layout of a T, as
// C has it in static_objects.h.
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
  // What was stored before is seen by those who load this value and order what they do after it.
  void Publish(T value) noexcept { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }
  void Add(T value) noexcept { __atomic_fetch_add(&value_, value, __ATOMIC_RELAXED); }
  void ClearBits(T bits) noexcept { __atomic_fetch_and(&value_, ~bits, __ATOMIC_RELAXED); }
  // Puts `to` in place of `*from`; false, with what is there instead in `*from`, if it was another.
  bool Replace(T* from, T to) noexcept {
    return __atomic_compare_exchange_n(&value_, from, to, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }

  // For the kernel, which is given the address.
  T* address() noexcept { return &value_; }

 private:
  T value_{};
};

}  // namespace eh::internal

#endif  // EVENTHEADER_INTERNAL_ATOMIC_H_
