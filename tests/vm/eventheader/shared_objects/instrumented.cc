// The functions that the test calls in the program and in each shared object (object.h). They use
// the events of instrumented.h.
#include "instrumented.h"

#include "object.h"

namespace {

using namespace instrumented;  // NOLINT(google-build-using-namespace)

int Write(int way, const char* text) {
  switch (way) {
    case 0:
      return static_cast<int>(first.Write(text));
    case 1:
      return static_cast<int>(second.Write(text));
    case 2:
      return static_cast<int>(WriteInline(text));
    case 3:
      return static_cast<int>(WriteTemplate<1>(text));
    case 4:
      return static_cast<int>(WriteDynamic(text));
    default:
      return static_cast<int>(WriteToOwnSet(text));
  }
}

constexpr Object kObject = {Write, [] { return provider.status(); }, [] { return eh::RetryAll(); }};

// Event sets that no other object has. They are registered first, so that the kernel gives the sets
// of the header different numbers in each object.
#if OWN_SETS > 0
constinit eh::DynamicProvider own_provider(OWN_PROVIDER);
const eh::EventSet own_set(own_provider, eh::Level::kInformation, 1);
#endif
#if OWN_SETS > 1
const eh::EventSet own_set_2(own_provider, eh::Level::kInformation, 2);
#endif

}  // namespace

extern "C" [[gnu::visibility("default")]] const Object* OBJECT() { return &kObject; }
