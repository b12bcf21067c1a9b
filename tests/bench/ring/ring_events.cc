#include <eventheader/eh.h>

#include "event8.h"
#include "events.h"

namespace {

inline constinit eh::Provider provider("Bench_Ring_Lttng");
constexpr bench::Event8<provider> event;

}  // namespace

// Returns 0 until the collector has also answered. An event may be enabled before, but the service
// may then use only a few chunks of its ring, and would lose events.
int IsRecorded() {
  const bool is_connected = eh::DescribeTransport(nullptr, 0) == eh::TransportState::kRingConnected;
  return is_connected && event.enabled() ? 1 : 0;
}

void WriteEvents(int count) {
  for (int i = 0; i < count; ++i) bench::Write8(event);
}
