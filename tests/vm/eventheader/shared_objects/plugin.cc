// A plugin with a provider of its own, loaded and unloaded by test_plugin.cc.
#include "eventheader/eventheader.h"

namespace {

constinit eventheader::Provider provider("Vm_Plugin");
constexpr eventheader::Event<provider, "Work", eventheader::Traits{.keyword = 1},
                             eventheader::Field<"number", int>>
    work;
constexpr eventheader::Event<provider, "Toggled", eventheader::Traits{.keyword = 2}> toggled;

}  // namespace

// Returns how many of the `count` events were written.
extern "C" [[gnu::visibility("default")]] int plugin_work(int count) {
  int written = 0;
  for (int i = 0; i < count; ++i) {
    written += work.Write(i) == eventheader::WriteResult::kWritten;
    toggled.Write();
  }
  return written;
}

extern "C" [[gnu::visibility("default")]] int plugin_status() { return provider.status(); }
