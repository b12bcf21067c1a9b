// Checks that the tests compiled together with this file have neither exceptions nor RTTI, and that
// a class can be derived from Transport without RTTI.
#include <gtest/gtest.h>

#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be compiled with -fno-exceptions and -fno-rtti"
#endif

namespace eh {
namespace {

TEST(WithoutExceptionsAndRtti, LibraryNeedsNeither) {
  static constinit Provider provider("Test_Bare");
  static constexpr Event<provider, "E", Traits{}> event;
  RecordingTransport transport;
  provider.SetTransport(&transport);
  EXPECT_EQ(event.Write(), WriteResult::kWritten);
  provider.SetTransport(nullptr);
  EXPECT_EQ(transport.Take().size(), 1u);
}

}  // namespace
}  // namespace eh
