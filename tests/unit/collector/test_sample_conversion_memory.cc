// Tests that nothing is allocated for an event once its schema is known.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "nettrace/sink.h"
#include "tests/support/allocations.h"
#include "tests/support/collector/sample_trace.h"

namespace collector {
namespace {

using namespace std::string_literals;

constexpr char kFormat[] =
    "name: Provider_of_a_long_name_L4K2\nID: 7\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:u8 eventheader_flags;\toffset:8;\tsize:1;\tsigned:0;\n\n"
    "print fmt: \"\"\n";

struct NullSink : nettrace::Sink {
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = bytes.size();
    return absl::OkStatus();
  }
};

// Returns the record of an event. The event is in the activity whose id has `activity` in each
// byte, or in none if `activity` is 0.
std::string Record(const std::string& name, const std::string& fields, const std::string& payload,
                   char level = 4, char activity = 0) {
  const std::string metadata = name + "\0"s + fields;
  std::string record = "\x07\0\0\0\0\0\0\0\x07\0\0\0\0\0\0"s + level;
  if (activity != 0) record += "\x10\0\x02\x80"s + std::string(16, activity);
  record += static_cast<char>(metadata.size());
  return record + "\0\x01\0"s + metadata + payload;
}

SampleRecord SampleOf(const std::string& record) {
  SampleRecord sample;
  sample.pid = 1;
  sample.tid = 4'000'000;
  sample.raw = std::as_bytes(std::span(record));
  return sample;
}

TEST(SampleConversionMemory, NothingIsAllocatedForAnEventOfAKnownSchema) {
  if (!COUNTS_ALLOCATIONS) GTEST_SKIP() << "ThreadSanitizer does not let allocations be counted";
  auto writer = nettrace::Writer::Create(std::make_unique<NullSink>(), {});
  ASSERT_TRUE(writer.ok());
  TaskTracker tasks;
  testing::SampleTrace samples(writer->get(), &tasks, {0});
  ASSERT_TRUE(
      samples.AddTracepoint(7, "user_events", "Provider_of_a_long_name_L4K2", kFormat).ok());
  const std::string text = "s\0\x0A"s;
  const std::string number = "n\0\x44"s;
  // After this loop, the process may add only 10 more schemas and forms. `records` needs more than
  // 10, so some records stay undecoded.
  const double at_once = SchemaShares::Limits().process_pace.at_once;
  for (int i = 0; i < static_cast<int>(at_once) - 10; ++i) {
    const std::string record = Record("E" + std::to_string(i), "", "");
    ASSERT_TRUE(samples.Write(0, SampleOf(record), 1).ok());
  }
  const std::vector<std::string> records = {
      Record("Numbers", number, "44444444"),
      Record("Texts", text, "\3\0abc"s),
      Record("Texts", text, "\3\0a\xC3\xA9"s),
      Record("Nullable", "i\0\x8A\x03"s,
             "\4\0"
             "4444"s),
      Record("Level", number, "44444444", 2),
      Record("Activity", number, "44444444", 4, 'a'),
      Record("Activity", number, "44444444", 4, 'b'),
      Record("Trace", "span_id\0\x04"s, "88888888"),
      Record("Cut short", number, "1"),
      Record("One more", number, "44444444"),
      Record("And one more", number, "44444444"),
  };
  std::uint64_t time = 10;
  const auto write_all = [&] {
    for (const std::string& record : records) {
      if (!samples.Write(0, SampleOf(record), ++time).ok()) std::abort();
    }
  };
  for (int i = 0; i < 1000; ++i) write_all();
  const std::uint64_t undecoded = samples.stats().undecoded;
  const std::size_t before = tests::allocations.count;
  for (int i = 0; i < 100; ++i) write_all();
  EXPECT_EQ(tests::allocations.count - before, 0u);
  // "Cut short" and the records beyond the limit stay undecoded.
  EXPECT_GT(samples.stats().undecoded, undecoded + 100);
}

}  // namespace
}  // namespace collector
