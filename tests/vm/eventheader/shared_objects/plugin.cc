// A plugin with a provider, loaded and unloaded by test_plugin.cc.
#include "eventheader/eh.h"

namespace {

constinit eh::Provider provider("Vm_Plugin");
constexpr eh::Event<provider, "Work", eh::Traits{.keyword = 1}, eh::Field<"number", int>> work;
constexpr eh::Event<provider, "Toggled", eh::Traits{.keyword = 2}> toggled;

}  // namespace

// Writes `count` events; returns how many were written.
extern "C" [[gnu::visibility("default")]] int plugin_work(int count) {
  int written = 0;
  for (int i = 0; i < count; ++i) {
    written += work.Write(i) == eh::WriteResult::kWritten;
    toggled.Write();
  }
  return written;
}

extern "C" [[gnu::visibility("default")]] int plugin_status() { return provider.status(); }
