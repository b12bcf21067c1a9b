// The calls whose disassembly is checked (disassembly.h).
#include "disabled_calls.h"

#include <eventheader/eh.h>

namespace {

inline constinit eh::Provider provider("Bench_Disabled");
constexpr eh::Event<provider, "Event", eh::Traits{.keyword = 1}, eh::Field<"number", std::int32_t>,
                    eh::Field<"status", std::int32_t>, eh::Field<"path", std::string_view>>
    event;

}  // namespace

void WriteDisabled(std::int32_t number, std::int32_t status, std::string_view path) {
  event.Write(number, status, path);
}

void WriteDisabledByMacro(const Request& request) {
  EVENTHEADER_WRITE(event, request.number, request.status, request.path);
}
