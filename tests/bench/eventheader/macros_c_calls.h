/* Events that the C macros define: one is measured, and the disassembly of the other is checked. */
#ifndef TESTS_BENCH_EVENTHEADER_MACROS_C_CALLS_H_
#define TESTS_BENCH_EVENTHEADER_MACROS_C_CALLS_H_

#include <stdint.h>

#include "eventheader/eventheader_c.h"

#ifdef __cplusplus
extern "C" {
#endif

eh_provider* ProviderOfMacrosOfC(void);
void WriteByMacroOfC(const int32_t* numbers, const char* path, const char* host, const char* agent);

struct RequestInC {
  int32_t number;
  int32_t status;
  const char* path;
};
void WriteDisabledInC(const struct RequestInC* request);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_BENCH_EVENTHEADER_MACROS_C_CALLS_H_ */
