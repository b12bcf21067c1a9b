// The tracepoint of LTTng. LTTng's headers include this file several times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/ring/lttng_tracepoints.h"

#if !defined(TESTS_BENCH_RING_LTTNG_TRACEPOINTS_H_) || \
    defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TESTS_BENCH_RING_LTTNG_TRACEPOINTS_H_

#include <lttng/tracepoint.h>
#include <stdint.h>

// clang-format cannot format lists without commas.
// clang-format off

LTTNG_UST_TRACEPOINT_EVENT(bench, bench8,
  LTTNG_UST_TP_ARGS(const int32_t*, numbers, const char* const*, texts),
  LTTNG_UST_TP_FIELDS(
    lttng_ust_field_integer(int32_t, number, numbers[0])
    lttng_ust_field_integer(int32_t, status, numbers[1])
    lttng_ust_field_integer(int32_t, port, numbers[2])
    lttng_ust_field_integer(int32_t, bytes, numbers[3])
    lttng_ust_field_integer(int32_t, count, numbers[4])
    lttng_ust_field_string(path, texts[0])
    lttng_ust_field_string(host, texts[1])
    lttng_ust_field_string(agent, texts[2])))

// clang-format on

#endif

#include <lttng/tracepoint-event.h>
