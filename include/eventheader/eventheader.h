// All that a service needs to write events.
#ifndef EVENTHEADER_EVENTHEADER_H_
#define EVENTHEADER_EVENTHEADER_H_

#include "eventheader/activity.h"  // IWYU pragma: export
#include "eventheader/event.h"     // IWYU pragma: export
#include "eventheader/provider.h"  // IWYU pragma: export
#include "eventheader/values.h"    // IWYU pragma: export

#endif  // EVENTHEADER_EVENTHEADER_H_
