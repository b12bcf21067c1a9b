// One event for every C++ type that can be a field, with the value that a reader must show.
#ifndef TESTS_VM_EVENTHEADER_EVERY_TYPE_H_
#define TESTS_VM_EVENTHEADER_EVERY_TYPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "eventheader/eh.h"

namespace eh::testing {

extern constinit Provider every_type_provider;
inline constexpr char kEveryTypeTracepoint[] = "Vm_EveryType_L4K1";

struct TypedEvent {
  std::string name;  // The C++ type.
  std::string json;  // The value as json_formatter.h shows it.
  WriteResult (*write)();
};

// Returns the events, all of which write to kEveryTypeTracepoint.
const std::vector<TypedEvent>& EveryType();

}  // namespace eh::testing

#endif  // TESTS_VM_EVENTHEADER_EVERY_TYPE_H_
