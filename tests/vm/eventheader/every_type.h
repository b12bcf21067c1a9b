// One event for every C++ type that can be a field, with what a reader has to make of its value.
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
  std::string name;  // the C++ type
  std::string json;  // the value, as json_formatter.h shows it
  WriteResult (*write)();
};

// All of them write to kEveryTypeTracepoint.
const std::vector<TypedEvent>& EveryType();

}  // namespace eh::testing

#endif  // TESTS_VM_EVENTHEADER_EVERY_TYPE_H_
