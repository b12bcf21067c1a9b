// A program, or a shared object, with the events that catalog_test.py expects. It writes events
// only while they are enabled.
#include "probe.h"

#include <eventheader/macros.h>

namespace probe {
namespace {

constinit eh::Provider own_provider("Probe_Own");
constexpr eh::Event<own_provider, "OfThisFileAlone", eh::Traits{.level = eh::Level::kCriticalError}>
    alone;

}  // namespace
}  // namespace probe

EVENTHEADER_DEFINE_PROVIDER(macro_provider, "Probe_Macro");

extern "C" int WriteInC();
extern "C" int Probe();

int Probe() {
  static_cast<void>(probe::both.Write("/", 200));
  static_cast<void>(probe::alone.Write());
  probe::WriteElsewhere();
  const int numbers[] = {1, 2, 3};
  EVENTHEADER_EVENT(macro_provider, "Statement", eh::Level::kWarning, 0x3,
                    EVENTHEADER_STRUCT("point", 2), EVENTHEADER_FIELD("x", 1),
                    EVENTHEADER_FIELD("y", 2), EVENTHEADER_ARRAY("numbers", numbers, 3));
  return WriteInC();
}

int main() { return Probe(); }
