// Random numbers, texts, schemas, threads, labels and stacks. The same seed gives the same results
// on every machine.
#ifndef TESTS_SUPPORT_NETTRACE_RANDOM_SCHEMA_H_
#define TESTS_SUPPORT_NETTRACE_RANDOM_SCHEMA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "nettrace/schema.h"

namespace nettrace::testing {

// Selects what is made: everything that the format can hold, or only what TraceEvent shows, too.
enum class RandomFor : std::uint8_t { kAnyReader, kTraceEvent };

class Randomly {
 public:
  Randomly(unsigned seed, RandomFor whom) : whom_(whom), random_(seed) {}

  bool for_traceevent() const { return whom_ == RandomFor::kTraceEvent; }
  std::uint64_t Below(std::uint64_t end) { return random_() % end; }
  std::size_t CountBelow(std::size_t end) { return static_cast<std::size_t>(Below(end)); }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  // Returns a number whose maximum is a random power of two, so that small numbers are as frequent
  // as large ones.
  std::uint64_t Number() { return random_() >> Below(64); }
  template <typename T, typename Make>
  void Maybe(std::optional<T>* value, Make make) {
    if (OneIn(2)) *value = static_cast<T>(make());
  }

  // Returns text that consists of whole characters. For TraceEvent, the text has no NUL, because
  // TraceEvent shows nothing after a NUL.
  std::string Text();
  std::u16string Text16();
  std::array<std::byte, 16> Sixteen();
  nettrace::KeyValues KeyValues();
  std::vector<std::byte> Bytes();

  nettrace::Type Type(int depth);
  std::vector<Field> Fields(int depth, std::size_t least = 0);
  EventMetadata Metadata();
  ThreadInfo Thread();
  nettrace::Labels Labels();
  std::vector<std::uint64_t> Stack();

 private:
  nettrace::Type Scalar();
  nettrace::Type FixedSizeType(int depth);
  nettrace::Type ArrayElement(int depth);
  std::uint16_t FixedCount();

  const RandomFor whom_;
  std::mt19937_64 random_;
};

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_RANDOM_SCHEMA_H_
