#include "probe.h"

namespace probe {

constexpr eh::Event<shared_provider, "Elsewhere", eh::Traits{.keyword = 0x2}> elsewhere;
// The event is in code that is never called.
constexpr eh::Event<shared_provider, "Uncalled", eh::Traits{.keyword = 0x4}> uncalled;

void WriteElsewhere() {
  static_cast<void>(both.Write("/elsewhere", 404));
  static_cast<void>(elsewhere.Write());
}

void WriteUncalled();
void WriteUncalled() { static_cast<void>(uncalled.Write()); }

}  // namespace probe
