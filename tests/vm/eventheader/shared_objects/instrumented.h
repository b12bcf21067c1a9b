// A header with a provider and events that several objects of one program include.
#ifndef TESTS_VM_EVENTHEADER_SHARED_OBJECTS_INSTRUMENTED_H_
#define TESTS_VM_EVENTHEADER_SHARED_OBJECTS_INSTRUMENTED_H_

#include <string_view>

#include "eventheader/eh.h"

namespace instrumented {

inline constinit eh::Provider provider("Vm_Instrumented");

inline constexpr eh::Event<provider, "First", eh::Traits{.keyword = 1},
                           eh::Field<"text", std::string_view>>
    first;
inline constexpr eh::Event<provider, "Second", eh::Traits{.keyword = 2},
                           eh::Field<"text", std::string_view>>
    second;

inline eh::WriteResult WriteInline(std::string_view text) { return first.Write(text); }

template <int kVariant>
eh::WriteResult WriteTemplate(std::string_view text) {
  static constexpr eh::Event<provider, "Template", eh::Traits{.keyword = 1},
                             eh::Field<"text", std::string_view>>
      event;
  return event.Write(text);
}

inline eh::WriteResult WriteDynamic(const char* text) {
  eh::DynamicEvent event;
  event.AddField("text", text);
  return event.Write(second.set());
}

// Writes by a static event set of an inline function. The loader may merge the sets of all objects
// into one.
inline eh::WriteResult WriteToOwnSet(const char* text) {
  static const eh::EventSet set(provider, eh::Level::kInformation, 4);
  eh::DynamicEvent event;
  event.AddField("text", text);
  return event.Write(set);
}

}  // namespace instrumented

#endif  // TESTS_VM_EVENTHEADER_SHARED_OBJECTS_INSTRUMENTED_H_
