/* Each writes an event through this library with what LinuxTracepoints' names are in scope, fills
 * `theirs` through those, and returns 0 if all went well. */
#ifndef TESTS_UNIT_EVENTHEADER_BESIDE_LINUXTRACEPOINTS_USERS_H_
#define TESTS_UNIT_EVENTHEADER_BESIDE_LINUXTRACEPOINTS_USERS_H_

#include "eventheader/eventheader_c.h"

struct eventheader;

#ifdef __cplusplus
extern "C" {
#endif
int WriteBothInC(eh_event_set* set, struct eventheader* theirs);
int WriteBothInCxx17(struct eventheader* theirs);
#ifdef __cplusplus
}
#endif

#endif /* TESTS_UNIT_EVENTHEADER_BESIDE_LINUXTRACEPOINTS_USERS_H_ */
