// A class that receives the events of a bridge to a logger in a test, and returns them as text.
#ifndef TESTS_UNIT_EVENTHEADER_BRIDGES_WRITTEN_LINES_H_
#define TESTS_UNIT_EVENTHEADER_BRIDGES_WRITTEN_LINES_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "eventheader/bridges/log_sets.h"
#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"
#include "eventheader/testing/recording_transport.h"

namespace eh::testing {

// Replaces the transport of a bridge during the lifetime of this object, which must be destroyed
// before the bridge.
class WrittenLines {
 public:
  explicit WrittenLines(LogSets& sets) : sets_(sets) { sets_.provider().SetTransport(&transport_); }
  ~WrittenLines() { sets_.provider().SetTransport(nullptr); }
  WrittenLines(const WrittenLines&) = delete;
  WrittenLines& operator=(const WrittenLines&) = delete;

  RecordingTransport& transport() { return transport_; }

  // Returns the events since the previous call: the name of the tracepoint, and the event in JSON.
  std::vector<std::string> Take() {
    std::vector<std::string> lines;
    for (const RecordingTransport::Record& record : transport_.Take()) {
      EventView event;
      EXPECT_EQ(ParseEvent(record.event, &event), ParseError::kNone);
      lines.push_back(record.tracepoint + " ");
      AppendEventJson(event, "", &lines.back());
    }
    return lines;
  }

 private:
  LogSets& sets_;
  RecordingTransport transport_;
};

}  // namespace eh::testing

#endif  // TESTS_UNIT_EVENTHEADER_BRIDGES_WRITTEN_LINES_H_
