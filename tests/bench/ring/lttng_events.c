#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE

#include "events.h"
#include "tests/bench/ring/lttng_tracepoints.h"

// External linkage hides the values from the compiler.
extern int32_t lttng_numbers[5];
extern const char* lttng_texts[3];
int32_t lttng_numbers[5] = {1, 200, 80, 4096, 3};
const char* lttng_texts[3] = {"/index.html", "example.org", "curl/7"};

int IsRecorded(void) { return lttng_ust_tracepoint_enabled(bench, bench8) ? 1 : 0; }

void WriteEvents(int count) {
  for (int i = 0; i < count; ++i) lttng_ust_tracepoint(bench, bench8, lttng_numbers, lttng_texts);
}
