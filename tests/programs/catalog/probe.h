// A provider and events that two source files use.
#ifndef TESTS_PROGRAMS_CATALOG_PROBE_H_
#define TESTS_PROGRAMS_CATALOG_PROBE_H_

#include <eventheader/eh.h>

#include <string_view>

namespace probe {

inline constinit eh::Provider shared_provider("Probe_Shared", "group");

inline constexpr eh::Event<shared_provider, "Both",
                           eh::Traits{.keyword = 0x8000000000000000, .id = 3, .version = 1},
                           eh::Field<"path", std::string_view>, eh::Field<"status", int>>
    both;

void WriteElsewhere();

}  // namespace probe

#endif  // TESTS_PROGRAMS_CATALOG_PROBE_H_
