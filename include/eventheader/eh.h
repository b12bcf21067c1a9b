// All that a service needs to write events.
#ifndef EVENTHEADER_EH_H_
#define EVENTHEADER_EH_H_

#include "eventheader/activity.h"        // IWYU pragma: export
#include "eventheader/activity_scope.h"  // IWYU pragma: export
#include "eventheader/dynamic_event.h"   // IWYU pragma: export
#include "eventheader/event.h"           // IWYU pragma: export
#include "eventheader/formatted.h"       // IWYU pragma: export
#include "eventheader/provider.h"        // IWYU pragma: export

#endif  // EVENTHEADER_EH_H_
