// Counts the allocations of a test program, for tests of memory use. Only one source file of a
// program may include it, because it replaces operator new and delete.
#ifndef TESTS_SUPPORT_ALLOCATIONS_H_
#define TESTS_SUPPORT_ALLOCATIONS_H_

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

// ThreadSanitizer's own operators cannot be replaced, so nothing is counted with it.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
#endif

namespace tests {

struct Allocations {
  std::size_t count = 0;
  std::size_t held = 0;       // Bytes that are not freed yet.
  std::size_t most_held = 0;  // Maximum of `held`, in bytes.
};
inline Allocations allocations;

}  // namespace tests

#if COUNTS_ALLOCATIONS
// The operators are not inlined. If only one of them were inlined, GCC would report its call of
// malloc or free as a mismatch with the other operator.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  tests::Allocations& all = tests::allocations;
  ++all.count;
  all.held += malloc_usable_size(memory);
  all.most_held = std::max(all.most_held, all.held);
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  tests::allocations.held -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

#endif  // TESTS_SUPPORT_ALLOCATIONS_H_
