// The program, and each shared object, that include instrumented.h, seen from outside.
#include "instrumented.h"

// `how` is the event that is written, 0 to 4. Returns a WriteResult.
extern "C" [[gnu::visibility("default")]] int PREFIX_write(int how, const char* text) {
  using namespace instrumented;
  const auto write = [&] {
    switch (how) {
      case 0:
        return first.Write(text);
      case 1:
        return second.Write(text);
      case 2:
        return WriteInline(text);
      case 3:
        return WriteTemplate<1>(text);
      default:
        return WriteDynamic(text);
    }
  };
  return static_cast<int>(write());
}

extern "C" [[gnu::visibility("default")]] int PREFIX_status() {
  return instrumented::provider.status();
}
extern "C" [[gnu::visibility("default")]] int PREFIX_retry() { return eventheader::RetryAll(); }
