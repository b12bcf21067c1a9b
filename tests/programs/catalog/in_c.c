#include <eventheader/macros_c.h>

EVENTHEADER_DEFINE_PROVIDER(c_provider, "Probe_C");

int WriteInC(void);

int WriteInC(void) {
  EVENTHEADER_EVENT(c_provider, "InC", EH_LEVEL_VERBOSE, 0x1, EVENTHEADER_FIELD("text", "a"));
  return EVENTHEADER_ENABLED(c_provider, EH_LEVEL_INFORMATION, 0x10) ? 1 : 0;
}
