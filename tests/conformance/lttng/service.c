// Writes LTTng events as the lines of standard input request, and answers each line with the number
// of events that it has written:
//   values N    N rounds of events of all types, from each of two threads
//   numbered    one event of each of the numbered tracepoints
//   flood N     N small events
//   large N     N events that are larger than a small buffer
//   sleep       a pause of more than 2^32 ns, with an event before and after it
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/conformance/lttng/tracepoints.h"

enum { kThreads = 2, kEventsOfRound = 6 };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const uint64_t kIntegers[] = {0,
                                     1,
                                     0x7F,
                                     0x80,
                                     0xFF,
                                     0x7FFF,
                                     0x8000,
                                     0x10000,
                                     0x7FFFFFFF,
                                     0x80000000,
                                     UINT64_MAX,
                                     INT64_MAX,
                                     (uint64_t)INT64_MIN,
                                     0x0123456789ABCDEF};
static const double kFloats[] = {0.0,     -0.0,        1.5,      0.1,       -1e300,
                                 FLT_MIN, DBL_MIN / 4, INFINITY, -INFINITY, NAN};
// There is no empty text, because babeltrace2 2.0.4 shows the text of an earlier event instead.
static const char* const kTexts[] = {"text", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80",
                                     "a\nb\t\"c\"\\", "x"};
static const int kStates[] = {-1, 0, 1, 2, 90, 91, -2};

static void WriteRound(int round) {
  const int8_t bytes[] = {-128, -1, 0, 127};
  const int32_t words[] = {INT32_MIN, -1, 1, INT32_MAX};
  const uint64_t longs[] = {0, UINT64_MAX, INT64_MAX, 42};
  const char* text = kTexts[(size_t)round % COUNT(kTexts)];
  char padded[16] = {0};
  strncpy(padded, text, sizeof padded - 1);
  lttng_ust_tracepoint(conformance, integers, kIntegers[(size_t)round % COUNT(kIntegers)]);
  lttng_ust_tracepoint(conformance, floats, kFloats[(size_t)round % COUNT(kFloats)]);
  lttng_ust_tracepoint(conformance, texts, text, padded, strlen(text));
  lttng_ust_tracepoint(conformance, arrays, bytes, words, longs, (size_t)round % 5);
  lttng_ust_tracepoint(conformance, states, kStates[(size_t)round % COUNT(kStates)]);
  lttng_ust_tracepoint(conformance, nothing);
}

static void* WriteRounds(void* rounds) {
  for (int i = 0; i < *(const int*)rounds; ++i) WriteRound(i);
  return NULL;
}

static int WriteFromThreads(int rounds) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, WriteRounds, &rounds) != 0) abort();
    char name[16];
    snprintf(name, sizeof name, "worker %d", i);
    pthread_setname_np(threads[i], name);
  }
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  return kThreads * rounds * kEventsOfRound;
}

static int WriteNumbered(void) {
  int count = 0;
#define CONFORMANCE_WRITE(number)                                  \
  lttng_ust_tracepoint(conformance, numbered_##number, -(number)); \
  ++count;
  CONFORMANCE_NUMBERED(CONFORMANCE_WRITE)
  return count;
}

static int WriteAroundSleep(void) {
  const struct timespec pause = {.tv_sec = 4, .tv_nsec = 400000000};
  lttng_ust_tracepoint(conformance, nothing);
  nanosleep(&pause, NULL);
  lttng_ust_tracepoint(conformance, nothing);
  return 2;
}

int main(void) {
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    int count = 0;
    int written = 0;
    if (sscanf(line, "values %d", &count) == 1) {
      written = WriteFromThreads(count);
    } else if (sscanf(line, "flood %d", &count) == 1) {
      for (; written < count; ++written)
        lttng_ust_tracepoint(conformance, flood, (uint32_t)written);
    } else if (sscanf(line, "large %d", &count) == 1) {
      static const int8_t bytes[8192];
      for (; written < count; ++written)
        lttng_ust_tracepoint(conformance, large, bytes, sizeof bytes);
    } else if (strcmp(line, "numbered\n") == 0) {
      written = WriteNumbered();
    } else if (strcmp(line, "sleep\n") == 0) {
      written = WriteAroundSleep();
    } else {
      return 2;
    }
    printf("%d\n", written);
    fflush(stdout);
  }
  return 0;
}
