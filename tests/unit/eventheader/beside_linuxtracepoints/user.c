/* Includes the header of LinuxTracepoints before those of this library, in C. */
#include <eventheader/eventheader.h>
#include <eventheader/eventheader_c.h>
#include <eventheader/macros_c.h>

#include "users.h"

static EVENTHEADER_DEFINE_PROVIDER(macro_provider, "Test_BesideInCMacros");
TRACELOGGING_DEFINE_PROVIDER(their_provider, "Their_Provider", (0));

int WriteBothInC(eh_event_set* set, struct eventheader* theirs) {
  static const char metadata[] = "FromC";
  const eh_event event = {
      .opcode = EH_OPCODE_INFO, .metadata_size = sizeof(metadata), .metadata = metadata};
  const eventheader_tracepoint tracepoint = {
      .header = {.flags = eventheader_flag_default, .level = event_level_error}, .keyword = 1};
  *theirs = tracepoint.header;
  TraceLoggingWrite(their_provider, "FromC", TraceLoggingLevel(event_level_error),
                    TraceLoggingString("text", "field"));
  EVENTHEADER_EVENT(macro_provider, "FromC", EH_LEVEL_ERROR, 1, EVENTHEADER_FIELD("path", "/"),
                    EVENTHEADER_TAG(EVENTHEADER_NAME_MAX));
  return TraceLoggingRegister(their_provider) + eventheader_write(&tracepoint) +
         eh_write(set, &event, NULL, NULL, 0);
}
