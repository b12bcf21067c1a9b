// Writes random traces that TraceEvent can show, and the events that it must show.
// Usage: write_random_traces DIR STEPS SEED...
// Each seed makes DIR/random-SEED.nettrace and DIR/random-SEED.expected. The latter has a line with
// a JSON object for each event, in the order of time, with the keys of `nettrace dump --json`, and
// a last line {"lost": N}.

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/str_format.h"
#include "tests/support/nettrace/random_trace.h"
#include "tests/support/nettrace/random_values.h"

namespace nettrace::testing {
namespace {

std::string OrNull(const std::optional<Guid>& guid) { return guid ? JsonGuid(*guid) : "null"; }
std::string OrNull(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : "null";
}

std::string ToJson(const WrittenEvent& event) {
  const EventMetadata& metadata = event.metadata;
  const Labels& labels = event.labels;
  const std::string cpu =
      event.row.processor == kNoProcessor ? "null" : std::to_string(event.row.processor);
  return absl::StrFormat(
      R"({"timestamp":%d,"provider":%s,"name":%s,"id":%d,"version":%d,"level":%d,)"
      R"("keywords":"0x%x","opcode":%d,"pid":%s,"tid":%s,"cpu":%s,"activityId":%s,)"
      R"("relatedActivityId":%s,"payload":%s})",
      event.row.timestamp, JsonString(metadata.provider), JsonString(metadata.name),
      metadata.event_id, labels.version.value_or(metadata.version.value_or(0)),
      labels.level.value_or(metadata.level.value_or(0)),
      labels.keywords.value_or(metadata.keywords.value_or(0)),
      labels.opcode.value_or(metadata.opcode.value_or(0)), OrNull(event.thread.process_id),
      OrNull(event.thread.thread_id), cpu, OrNull(labels.activity_id),
      OrNull(labels.related_activity_id), event.json.value_or("null"));
}

// Returns false, and prints the reason, if the trace cannot be written.
bool Write(const std::string& path, int steps, unsigned seed) {
  RandomTrace trace(seed, RandomFor::kTraceEvent);
  trace.Write(steps);
  if (!trace.status().ok()) {
    std::cerr << "write_random_traces: seed " << seed << ": " << trace.status() << "\n";
    return false;
  }
  std::ofstream(path + ".nettrace", std::ios::binary) << trace.bytes();
  std::map<std::uint64_t, const WrittenEvent*> in_order;
  for (const auto& [thread, events] : trace.events()) {
    for (const WrittenEvent& event : events) in_order[event.row.timestamp] = &event;
  }
  std::ofstream expected(path + ".expected");
  for (const auto& [timestamp, event] : in_order) expected << ToJson(*event) << "\n";
  expected << "{\"lost\":" << trace.lost() << "}\n";
  return true;
}

}  // namespace
}  // namespace nettrace::testing

int main(int argc, char** argv) {
  if (argc < 4 || argv[1][0] == '-') {
    std::cerr << "usage: write_random_traces DIR STEPS SEED...\n";
    return 2;
  }
  for (int i = 3; i < argc; ++i) {
    const std::string path = std::string(argv[1]) + "/random-" + argv[i];
    const auto seed = static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10));
    if (!nettrace::testing::Write(path, std::atoi(argv[2]), seed)) return 1;
  }
  return 0;
}
