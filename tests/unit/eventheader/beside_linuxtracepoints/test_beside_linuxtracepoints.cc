// Tests this library and LinuxTracepoints in one program and in one source file. Every public
// header compiles together with theirs, in C, C++17 and C++20, and the names of both libraries keep
// their meaning.
#include <eventheader/activity.h>
#include <eventheader/decoder.h>
#include <eventheader/dynamic_event.h>
#include <eventheader/eh.h>
#include <eventheader/event.h>
#include <eventheader/eventheader.h>
#include <eventheader/eventheader_c.h>
#include <eventheader/field.h>
#include <eventheader/formatted.h>
#include <eventheader/json_formatter.h>
#include <eventheader/macros.h>
#include <eventheader/provider.h>
#include <eventheader/testing/recording_transport.h>
#include <eventheader/tracepoint_name.h>
#include <eventheader/wire.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "users.h"

EVENTHEADER_DEFINE_PROVIDER(cxx17_provider, "Test_BesideInCxx17");

namespace {

using namespace eh;  // NOLINT(google-build-using-namespace): their names are global

constinit eh::Provider our_provider("Test_Beside");
constexpr eh::Event<our_provider, "FromCxx20", eh::Traits{.level = eh::Level::kError, .keyword = 1},
                    eh::Field<"path", std::string_view>>
    our_event;

// Returns an event's header as the struct of LinuxTracepoints.
eventheader HeaderOf(const eh::RecordingTransport::Record& record) {
  eventheader header;
  EXPECT_GE(record.event.size(), sizeof(header));
  std::memcpy(&header, record.event.data(), sizeof(header));
  return header;
}

TEST(BesideLinuxTracepoints, Cxx20) {
  eh::RecordingTransport transport;
  our_provider.SetTransport(&transport);
  EXPECT_EQ(our_event.Write("/"), eh::WriteResult::kWritten);
  const auto records = transport.Take();
  our_provider.SetTransport(nullptr);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(HeaderOf(records[0]).level, event_level_error);
  const eventheader_tracepoint tracepoint = {nullptr, HeaderOf(records[0]), 1};
  EXPECT_EQ(eventheader_write(&tracepoint), 0);
  static_assert(EVENTHEADER_NAME_MAX == kMaxTracepointName + 1);
  static_assert(EVENTHEADER_PREFIX_DATAVEC_COUNT == 3 && EVENTHEADER_LITTLE_ENDIAN == 1);
}

TEST(BesideLinuxTracepoints, Cxx17) {
  eh::RecordingTransport transport;
  cxx17_provider.SetTransport(&transport);
  eventheader theirs{};
  EXPECT_EQ(WriteBothInCxx17(&theirs), 0);
  const auto records = transport.Take();
  cxx17_provider.SetTransport(nullptr);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(HeaderOf(records[0]).level, theirs.level);
  EXPECT_EQ(HeaderOf(records[0]).tag, EVENTHEADER_NAME_MAX);
}

TEST(BesideLinuxTracepoints, C) {
  // The sets of the C API use only user_events. Without user_events, they are not registered, and
  // eh_write returns EBADF.
  eh_provider* const provider = eh_provider_create("Test_BesideInC", nullptr);
  eh_event_set* const set = eh_event_set_create(provider, EH_LEVEL_ERROR, 1);
  eventheader theirs{};
  EXPECT_EQ(WriteBothInC(set, &theirs), EBADF);
  EXPECT_EQ(theirs.level, EH_LEVEL_ERROR);
  eh_event_set_destroy(set);
  eh_provider_destroy(provider);
}

}  // namespace
