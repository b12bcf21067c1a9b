/* The part of the C API's test that is written in C. */
#ifndef TESTS_UNIT_EVENTHEADER_C_API_USER_H_
#define TESTS_UNIT_EVENTHEADER_C_API_USER_H_

#include "eventheader/eventheader_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Each function tries to write an event, and returns the result of the API. The first two write the
 * same event in two ways. */
int WritePrepared(const eh_event_set* set);
int WriteBuilt(eh_builder* builder, const eh_event_set* set);
int WriteTooMuch(const eh_event_set* set);
int WriteNameless(const eh_event_set* set);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_UNIT_EVENTHEADER_C_API_USER_H_ */
