// Sends every type of field through the kernel. Compares the bytes with those that the library
// makes, and the decoded values with the expected ones.
#include <gtest/gtest.h>

#include "eventheader/json_formatter.h"
#include "eventheader/testing/recording_transport.h"
#include "every_type.h"
#include "tests/support/eventheader/kernel_trace.h"

namespace eh::testing {
namespace {

std::string ToJson(std::string_view bytes) {
  EventView event;
  if (ParseEvent(std::as_bytes(std::span(bytes.data(), bytes.size())), &event) !=
      ParseError::kNone) {
    return "not an event";
  }
  std::string json;
  AppendEventJson(event, "", &json);
  return json;
}

// Returns the bytes that the library makes for all types, without a kernel.
std::vector<std::string> LibrarysBytes() {
  RecordingTransport transport;
  every_type_provider.SetTransport(&transport);
  for (const TypedEvent& row : EveryType()) row.write();
  EXPECT_EQ(every_type_provider.SetTransport(nullptr), 0);
  std::vector<std::string> all;
  for (const auto& record : transport.Take()) {
    all.emplace_back(reinterpret_cast<const char*>(record.event.data()), record.event.size());
  }
  return all;
}

class EveryTypeTest : public KernelTest {};

TEST_F(EveryTypeTest, ArrivesWithItsValue) {
  ASSERT_EQ(every_type_provider.status(), 0) << RegistrationErrorText(every_type_provider.status());
  // WriteDynamic creates its event set in its first call, which therefore comes before Enable.
  for (const TypedEvent& row : EveryType()) row.write();
  TraceInstance trace;
  trace.Enable(kEveryTypeTracepoint);
  const std::vector<std::string> library = LibrarysBytes();
  ASSERT_EQ(library.size(), EveryType().size());

  for (std::size_t i = 0; i < library.size(); ++i) {
    const TypedEvent& row = EveryType()[i];
    SCOPED_TRACE(row.name + " " + row.json);
    ASSERT_EQ(row.write(), WriteResult::kWritten);
    const std::vector<KernelEvent> events = trace.Take();
    ASSERT_EQ(events.size(), 1u);
    const std::string& bytes = events[0].bytes;
    EXPECT_EQ(events[0].tid, gettid());
    EXPECT_EQ(bytes.substr(0, library[i].size()), library[i]);
    EXPECT_EQ(bytes.size(), (library[i].size() + 3) / 4 * 4);
    EXPECT_EQ(ToJson(bytes),
              "{\"name\":\"" + row.name + "\",\"level\":4,\"fields\":{\"f\":" + row.json + "}}");
  }
}

TEST_F(EveryTypeTest, PropertiesBesidesFieldsAreWritten) {
  static constexpr Event<every_type_provider, "Traits",
                         Traits{.level = Level::kCriticalError,
                                .keyword = 0x8000'0000'0000'0000,
                                .opcode = Opcode::kReceive,
                                .id = 0x1234,
                                .version = 255,
                                .tag = 0xFEDC},
                         Attribute<"k", "a;b">, Field<"f", int, Tag<7>>>
      event;
  TraceInstance trace;
  trace.Enable("Vm_EveryType_L1K8000000000000000");
  ActivityId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(i);
  const ActivityId related{std::byte{0xFF}};
  ASSERT_EQ(event.Write(Activity{id, &related}, -1), WriteResult::kWritten);
  const std::vector<KernelEvent> events = trace.Take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(ToJson(events[0].bytes),
            R"({"name":"Traits","level":1,"opcode":240,"id":4660,"version":255,"tag":65244,)"
            R"("activityId":"00010203-0405-0607-0809-0a0b0c0d0e0f",)"
            R"("relatedActivityId":"ff000000-0000-0000-0000-000000000000","fields":{"f":-1}})");
  EXPECT_NE(events[0].bytes.find("Traits;k=a;;b"), std::string::npos);
}

}  // namespace
}  // namespace eh::testing
