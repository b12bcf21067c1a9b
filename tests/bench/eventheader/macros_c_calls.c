#include "macros_c_calls.h"

#include <eventheader/macros_c.h>

static EVENTHEADER_DEFINE_PROVIDER(provider, "Bench_Provider");
static EVENTHEADER_DEFINE_PROVIDER(disabled, "Bench_Disabled");

eh_provider* ProviderOfMacrosOfC(void) { return EVENTHEADER_PROVIDER(provider); }

void WriteByMacroOfC(const int32_t* numbers, const char* path, const char* host,
                     const char* agent) {
  EVENTHEADER_EVENT(provider, "Bench8", 4, 1, EVENTHEADER_FIELD("number", numbers[0]),
                    EVENTHEADER_FIELD("status", numbers[1]), EVENTHEADER_FIELD("port", numbers[2]),
                    EVENTHEADER_FIELD("bytes", numbers[3]), EVENTHEADER_FIELD("count", numbers[4]),
                    EVENTHEADER_FIELD("path", path), EVENTHEADER_FIELD("host", host),
                    EVENTHEADER_FIELD("agent", agent));
}

void WriteDisabledInC(const struct RequestInC* request) {
  EVENTHEADER_EVENT(disabled, "Event", 4, 1, EVENTHEADER_FIELD("number", request->number),
                    EVENTHEADER_FIELD("status", request->status),
                    EVENTHEADER_FIELD("path", request->path));
}
