// The umbrella header: everything that a service needs to write events. Needs C++20; for C++17,
// macros.h has macros instead.
#ifndef EVENTHEADER_EH_H_
#define EVENTHEADER_EH_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include "eventheader/activity.h"       // IWYU pragma: export
#include "eventheader/dynamic_event.h"  // IWYU pragma: export
#include "eventheader/event.h"          // IWYU pragma: export
#include "eventheader/formatted.h"      // IWYU pragma: export
#include "eventheader/provider.h"       // IWYU pragma: export

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_EH_H_
