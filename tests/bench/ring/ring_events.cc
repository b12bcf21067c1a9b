#include <eventheader/eh.h>

#include "event8.h"
#include "events.h"

namespace {

inline constinit eh::Provider provider("Bench_Ring_Lttng");
constexpr bench::Event8<provider> event;

}  // namespace

// The event is enabled before the collector has answered, but the service may use only a part of
// its memory until then.
int IsRecorded() {
  const bool is_connected = eh::DescribeTransport(nullptr, 0) == eh::TransportState::kRingConnected;
  return is_connected && event.enabled() ? 1 : 0;
}

void WriteEvents(int count) {
  for (int i = 0; i < count; ++i) bench::Write8(event);
}
