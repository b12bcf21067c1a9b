// The event that the benchmarks of rings write: 5 numbers and 3 strings.
#ifndef TESTS_BENCH_RING_EVENT8_H_
#define TESTS_BENCH_RING_EVENT8_H_

#include <eventheader/eh.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace bench {

template <eh::FixedString kName>
using Int = eh::Field<kName, std::int32_t>;
template <eh::FixedString kName>
using Text = eh::Field<kName, std::string_view>;
inline constexpr eh::Traits kKeyword1{.keyword = 1};
template <auto& kProvider>
using Event8 = eh::Event<kProvider, "Bench8", kKeyword1, Int<"number">, Int<"status">, Int<"port">,
                         Int<"bytes">, Int<"count">, Text<"path">, Text<"host">, Text<"agent">>;

// The values of the fields. External linkage hides them from the compiler.
struct Input {
  std::int32_t numbers[5] = {1, 200, 80, 4096, 3};
  std::string path = "/index.html", host = "example.org", agent = "curl/7";
};
inline Input input;

template <typename Event>
[[gnu::always_inline]] inline bool Write8(const Event& event) {
  const auto& n = input.numbers;
  return event.Write(n[0], n[1], n[2], n[3], n[4], input.path, input.host, input.agent) ==
         eh::WriteResult::kWritten;
}

}  // namespace bench

#endif  // TESTS_BENCH_RING_EVENT8_H_
