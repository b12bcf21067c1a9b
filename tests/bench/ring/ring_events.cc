#include <eventheader/eh.h>

#include <string_view>

#include "events.h"

// External linkage hides the values from the compiler.
std::int32_t ring_numbers[5] = {1, 200, 80, 4096, 3};
std::string_view ring_texts[3] = {"/index.html", "example.org", "curl/7"};

namespace {

template <eh::FixedString kName>
using Int = eh::Field<kName, std::int32_t>;
template <eh::FixedString kName>
using Text = eh::Field<kName, std::string_view>;

inline constinit eh::Provider provider("Bench_Ring_Lttng");
constexpr eh::Event<provider, "Bench8", eh::Traits{.keyword = 1}, Int<"number">, Int<"status">,
                    Int<"port">, Int<"bytes">, Int<"count">, Text<"path">, Text<"host">,
                    Text<"agent">>
    event;

}  // namespace

// The event is enabled before the collector has answered, but the service may use only a part of
// its memory until then.
int IsRecorded() {
  const bool is_connected = eh::DescribeTransport(nullptr, 0) == eh::TransportState::kRingConnected;
  return is_connected && event.enabled() ? 1 : 0;
}

void WriteEvents(int count) {
  const auto& n = ring_numbers;
  const auto& t = ring_texts;
  for (int i = 0; i < count; ++i) event.Write(n[0], n[1], n[2], n[3], n[4], t[0], t[1], t[2]);
}
