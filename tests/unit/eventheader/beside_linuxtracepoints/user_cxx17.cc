// Includes the header of LinuxTracepoints before that of this library, in C++17.
#include <eventheader/eventheader.h>
#include <eventheader/macros.h>

#include "users.h"

#if __cplusplus >= 202002L
#error "this file is to be compiled as C++17"
#endif

EVENTHEADER_DEFINE_PROVIDER(cxx17_provider, "Test_BesideInCxx17");
TRACELOGGING_DEFINE_PROVIDER(their_provider, "Their_Provider", (0));

int WriteBothInCxx17(eventheader* theirs) {
  EVENTHEADER_EVENT(cxx17_provider, "FromCxx17", eh::Level::kError, 1,
                    EVENTHEADER_FIELD("path", "/"), EVENTHEADER_TAG(EVENTHEADER_NAME_MAX));
  *theirs = {eventheader_flag_default, 0, 0, 0, event_opcode_info, event_level_error};
  const eventheader_tracepoint tracepoint = {nullptr, *theirs, 1};
  TraceLoggingWrite(their_provider, "FromCxx17", TraceLoggingInt32(1, "field"));
  return TraceLoggingRegister(their_provider) + eventheader_write(&tracepoint);
}
