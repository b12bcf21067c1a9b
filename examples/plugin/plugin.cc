// A plugin whose provider exists only while the plugin is loaded. See host.cc.
//
// The provider is in an unnamed namespace, so it belongs to this shared object alone, and is
// unregistered when the object is unloaded. Hidden visibility has the same effect. g++ needs
// -fno-gnu-unique: otherwise, a static variable of an inline function, such as std::to_string, is a
// unique symbol, and the loader never unloads a shared object with such a symbol.
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
