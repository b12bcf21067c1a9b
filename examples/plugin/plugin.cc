// A plugin with a provider that comes and goes with it. See host.cc.
//
// Its provider is in an unnamed namespace (or could have hidden visibility): so it belongs to this
// shared object alone, and is unregistered when that is unloaded. g++ is given -fno-gnu-unique,
// since otherwise as little as a std::to_string keeps a shared object loaded for ever.
#include "plugin.h"

#include <eventheader/eh.h>

namespace {

constinit eh::Provider provider("ExamplePlugin");

constexpr eh::Event<provider, "WorkDone", eh::Traits{.keyword = 0x1},
                    eh::Field<"round", std::int32_t>, eh::Field<"step", std::int32_t>>
    work_done;

}  // namespace

extern "C" const char* PluginWork(int round) {
  constexpr int kSteps = 3;
  for (int step = 0; step < kSteps; ++step) work_done.Write(round, step);
  return eh::RegistrationErrorText(provider.status());
}
