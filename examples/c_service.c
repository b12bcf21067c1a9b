/* A service in C that measures temperatures:
 *   nettrace record -o c.nettrace -e ExampleC_L4K1 -e ExampleC_L3K1 -- example-c-service
 *   nettrace dump c.nettrace
 * To build it outside of this repository:
 *   cc -std=c11 c_service.c $(pkg-config --cflags --libs eventheader) */
#include <eventheader/macros_c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOMS 4

/* Recordings select events by keyword and level. */
#define MEASURING 0x1

static EVENTHEADER_DEFINE_PROVIDER(provider, "ExampleC");

static double Measure(unsigned round, unsigned room) { return 18.5 + 0.25 * round + 2.0 * room; }

static void MeasureRooms(unsigned round, const uint8_t* activity) {
  double celsius[ROOMS];
  for (unsigned room = 0; room < ROOMS; ++room) {
    celsius[room] = Measure(round, room);
    EVENTHEADER_EVENT(provider, "Measured", EH_LEVEL_INFORMATION, MEASURING,
                      EVENTHEADER_ACTIVITY(activity), EVENTHEADER_FIELD("room", room),
                      EVENTHEADER_FIELD_AS("flags", 0x100u << room, EH_FORMAT_HEX_INT),
                      EVENTHEADER_FIELD("celsius", celsius[room]));
  }
  /* The work below is only for the event, and is skipped unless the event is enabled. */
  if (!EVENTHEADER_ENABLED(provider, EH_LEVEL_WARNING, MEASURING)) return;
  if (celsius[ROOMS - 1] <= 24.6) return;
  EVENTHEADER_EVENT(provider, "TooWarm", EH_LEVEL_WARNING, MEASURING,
                    EVENTHEADER_ACTIVITY(activity), EVENTHEADER_FIELD("building", "Nordflügel"),
                    EVENTHEADER_STRUCT("range", 2), EVENTHEADER_FIELD("least", celsius[0]),
                    EVENTHEADER_FIELD("greatest", celsius[ROOMS - 1]),
                    EVENTHEADER_ARRAY("rooms", celsius, ROOMS));
}

static int Usage(FILE* to, int exit_code) {
  fputs(
      "usage: example-c-service [--rounds N]\n\n"
      "Measures the temperatures of 4 rooms, N times (3), as provider ExampleC.\n\n"
      "example:\n  example-c-service --rounds 10\n\n"
      "exit status: 0 done, 2 wrong usage\n",
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

  uint8_t ids[2][16]; /* ids of this round and the previous one, alternating */
  for (unsigned round = 0; round < rounds; ++round) {
    /* Each round is an activity; the previous round is the related activity. */
    const uint8_t* before = round > 0 ? ids[(round + 1) % 2] : NULL;
    uint8_t* id = ids[round % 2];
    eh_new_activity_id(id);
    EVENTHEADER_EVENT(provider, "Round", EH_LEVEL_INFORMATION, MEASURING,
                      EVENTHEADER_ACTIVITY(id, before),
                      EVENTHEADER_OPCODE(EH_OPCODE_ACTIVITY_START));
    MeasureRooms(round, id);
    EVENTHEADER_EVENT(provider, "Round", EH_LEVEL_INFORMATION, MEASURING, EVENTHEADER_ACTIVITY(id),
                      EVENTHEADER_OPCODE(EH_OPCODE_ACTIVITY_STOP));
  }

  /* The provider counts events by result. */
  eh_counters counters;
  eh_provider_counters(EVENTHEADER_PROVIDER(provider), &counters);
  printf("%" PRIu64 " events written, %" PRIu64 " failed; %s\n", counters.written, counters.failed,
         eh_status_text(eh_provider_status(EVENTHEADER_PROVIDER(provider))));
  return 0;
}
