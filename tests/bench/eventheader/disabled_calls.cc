// The calls whose disassembly is checked (disassembly.h).
#include "disabled_calls.h"

#include <eventheader/eh.h>
#include <eventheader/macros.h>

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

void WriteDisabledByCxx17(const Request& request) {
  EVENTHEADER_EVENT(provider, "Event", 4, 1, EVENTHEADER_FIELD("number", request.number),
                    EVENTHEADER_FIELD("status", request.status),
                    EVENTHEADER_FIELD("path", request.path));
}
