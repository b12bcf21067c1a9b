/* A service in C that measures temperatures:
 *   nettrace record -o c.nettrace -e ExampleC_L4K1 -e ExampleC_L3K1 -- example-c-service
 *   nettrace dump c.nettrace
 * Built elsewhere: cc -std=c11 c_service.c $(pkg-config --cflags --libs eventheader) */
#include <eventheader/eventheader_c.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOMS 4

/* Prepared metadata: an event's name, then each field's name, encoding and format, as on the wire.
 * Made once, it costs nothing per event. */
static const char kMeasuredMetadata[] =
    "Measured\0"
    "room\0\x04"         /* EH_ENCODING_VALUE32 */
    "flags\0\x84\x03"    /* EH_ENCODING_VALUE32 | EH_HAS_FORMAT, EH_FORMAT_HEX_INT */
    "celsius\0\x85\x08"; /* EH_ENCODING_VALUE64 | EH_HAS_FORMAT, EH_FORMAT_FLOAT */

/* The fields' values in their order. On the wire there is no padding, nor is there any in this. */
struct Measured {
  uint32_t room;
  uint32_t flags;
  double celsius;
};

static const eh_event kMeasured = {.metadata_size = sizeof kMeasuredMetadata - 1, /* no last NUL */
                                   .metadata = kMeasuredMetadata};
static const eh_event kRoundStart = {
    .opcode = EH_OPCODE_ACTIVITY_START, .metadata_size = sizeof "Round", .metadata = "Round"};
static const eh_event kRoundStop = {
    .opcode = EH_OPCODE_ACTIVITY_STOP, .metadata_size = sizeof "Round", .metadata = "Round"};

static double Measure(unsigned round, unsigned room) { return 18.5 + 0.25 * round + 2.0 * room; }

/* Uses the builder, which is for events of which not all is known before. */
static void WriteSummary(eh_builder* builder, const eh_event_set* set, const eh_activity* activity,
                         const double* celsius) {
  /* Asked first: building costs something even if the event is not enabled. */
  if (!eh_event_set_enabled(set)) return;
  struct {
    uint16_t count; /* what a variable array begins with */
    double values[ROOMS];
  } __attribute__((packed)) all = {.count = ROOMS};
  for (unsigned room = 0; room < ROOMS; ++room) all.values[room] = celsius[room];

  eh_builder_reset(builder, "TooWarm");
  eh_builder_add_string(builder, "building", "Nordflügel");
  size_t range = eh_builder_start_struct(builder, "range");
  eh_builder_add_double(builder, "least", celsius[0]);
  eh_builder_add_double(builder, "greatest", celsius[ROOMS - 1]);
  eh_builder_set_struct_fields(builder, range, 2);
  eh_builder_add_raw(builder, "rooms", EH_ENCODING_VALUE64, EH_VARIABLE_ARRAY, 0, EH_FORMAT_FLOAT,
                     0, &all, sizeof all);
  eh_builder_write(builder, set, activity);
}

static int Usage(FILE* to, int exit_code) {
  fputs(
      "usage: example-c-service [--rounds N]\n\n"
      "Measures the temperatures of 4 rooms, N times (3), as provider ExampleC.\n\n"
      "example:\n  example-c-service --rounds 10\n\n"
      "exit status: 0 done, 1 out of memory, 2 wrong usage\n",
      to);
  return exit_code;
}

int main(int argc, char** argv) {
  unsigned rounds = 3;
  if (argc == 2 && strcmp(argv[1], "--help") == 0) return Usage(stdout, 0);
  if (argc == 3 && strcmp(argv[1], "--rounds") == 0) {
    rounds = (unsigned)strtoul(argv[2], NULL, 10);
  } else if (argc != 1) {
    return Usage(stderr, 2);
  }

  /* A set is one tracepoint: a provider's events of one level and keyword. */
  eh_provider* provider = eh_provider_create("ExampleC", "");
  eh_event_set* info = provider ? eh_event_set_create(provider, EH_LEVEL_INFORMATION, 1) : NULL;
  eh_event_set* warning = provider ? eh_event_set_create(provider, EH_LEVEL_WARNING, 1) : NULL;
  eh_builder* builder = eh_builder_create();
  const bool made = info && warning && builder;
  if (!made) fputs("example-c-service: out of memory\n", stderr);

  uint8_t ids[2][16]; /* this round's and the one's before, in turn */
  for (unsigned round = 0; made && round < rounds; ++round) {
    /* Each round is an activity, the one before it the related one. */
    const uint8_t* before = ids[(round + 1) % 2];
    uint8_t* id = ids[round % 2];
    eh_new_activity_id(id);
    const eh_activity started = {id, round > 0 ? before : NULL};
    const eh_activity activity = {id, NULL};
    eh_write(info, &kRoundStart, &started, NULL, 0);
    double celsius[ROOMS];
    for (unsigned room = 0; room < ROOMS; ++room) {
      celsius[room] = Measure(round, room);
      const struct Measured measured = {room, 0x100u << room, celsius[room]};
      /* Returns an errno that one may ignore: what fails is counted. */
      eh_write(info, &kMeasured, &activity, &measured, sizeof measured);
    }
    if (celsius[ROOMS - 1] > 24.6) WriteSummary(builder, warning, &activity, celsius);
    eh_write(info, &kRoundStop, &activity, NULL, 0);
  }

  if (made) {
    eh_counters counters;
    eh_provider_counters(provider, &counters);
    printf("%" PRIu64 " events written, %" PRIu64 " failed; %s\n", counters.written,
           counters.failed, eh_status_text(eh_provider_status(provider)));
  }
  eh_builder_destroy(builder);
  /* Sets are destroyed before their provider. */
  eh_event_set_destroy(warning);
  eh_event_set_destroy(info);
  eh_provider_destroy(provider);
  return made ? 0 : 1;
}
