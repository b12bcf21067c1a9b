/* Uses the C API like a C program; the test passes a set that is enabled. */
#include "c_api_user.h"

static const char kMetadata[] = "E\0n\0\x84\x02s\0\x0A";

int WritePrepared(const eh_event_set* set) {
  const eh_event event = {.id = 0x1234,
                          .version = 5,
                          .opcode = 1,
                          .tag = 0x6789,
                          .metadata_size = sizeof kMetadata - 1,
                          .metadata = kMetadata};
  const uint8_t id[16] = {1};
  const uint8_t related[16] = {2};
  const eh_activity activity = {id, related};
  return eh_write(set, &event, &activity, "\x11\0\0\0\x02\0ab", 8);
}

int WriteBuilt(eh_builder* builder, const eh_event_set* set) {
  eh_builder_reset(builder, "E");
  eh_builder_set_id(builder, 0x1234, 5);
  eh_builder_set_opcode(builder, 1);
  eh_builder_set_tag(builder, 0x6789);
  eh_builder_add_int32(builder, "n", 0x11);
  eh_builder_add_string(builder, "s", "ab");
  const uint8_t id[16] = {1};
  const uint8_t related[16] = {2};
  const eh_activity activity = {id, related};
  return eh_builder_write(builder, set, &activity);
}

int WriteTooMuch(const eh_event_set* set) {
  static char data[9000];
  const eh_event event = {.metadata_size = 2, .metadata = "E"};
  return eh_write(set, &event, NULL, data, sizeof data);
}

int WriteNameless(const eh_event_set* set) {
  const eh_event event = {.metadata_size = 4, .metadata = "\0n\0\x02"};
  return eh_write(set, &event, NULL, "a", 1);
}
