// A shared object with events, which the test loads and unloads.
#include "eventheader/eh.h"

namespace {

constinit eh::Provider plugin_provider("Ring_Plugin");
constexpr eh::Event<plugin_provider, "Called", eh::Traits{.keyword = 1}, eh::Field<"number", int>>
    called;

}  // namespace

// Returns 1 if the event was written, else 0.
extern "C" [[gnu::visibility("default")]] int WriteFromPlugin() {
  return called.Write(1) == eh::WriteResult::kWritten ? 1 : 0;
}
