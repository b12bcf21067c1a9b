/* Each function writes an event through this library while the names of LinuxTracepoints are in
 * scope, fills `theirs` through those names, and returns 0 on success. */
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
