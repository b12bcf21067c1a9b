// Tests that the reader of payloads calls a handler like the reader of RapidJSON.
#include <gtest/gtest.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/nettrace/export/payload_reader.h"

namespace tools::exporting {
namespace {

// Lists the calls. Returns false from the call with the number `stop_at`.
struct Recorder : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Recorder> {
  bool Note(std::string_view call) {
    absl::StrAppend(&calls, std::string(call), "\n");
    return ++count != stop_at;
  }
  bool Null() { return Note("null"); }
  bool Bool(bool value) { return Note(value ? "true" : "false"); }
  bool RawNumber(const char* digits, rapidjson::SizeType size, bool /*copy*/) {
    return Note("number " + std::string(digits, size));
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return Note("string " + std::string(text, size));
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return Note("key " + std::string(text, size));
  }
  bool StartObject() { return Note("{"); }
  bool EndObject(rapidjson::SizeType members) { return Note(absl::StrCat("} ", members)); }
  bool StartArray() { return Note("["); }
  bool EndArray(rapidjson::SizeType elements) { return Note(absl::StrCat("] ", elements)); }

  std::string calls;
  std::size_t count = 0;
  std::size_t stop_at = 0;
};

std::string CallsOfRapidJson(std::string_view json, std::size_t stop_at) {
  Recorder recorder;
  recorder.stop_at = stop_at;
  rapidjson::MemoryStream stream(json.data(), json.size());
  rapidjson::Reader().Parse<rapidjson::kParseNumbersAsStringsFlag>(stream, recorder);
  return recorder.calls;
}

std::string Calls(std::string_view json, std::size_t stop_at) {
  Recorder recorder;
  recorder.stop_at = stop_at;
  ReadPayload(json, &recorder);
  return recorder.calls;
}

TEST(PayloadReader, MakesTheCallsOfRapidJson) {
  constexpr std::string_view kPayloads[] = {
      "{}",
      R"({"a":1})",
      R"({"a":-1.5e-7,"b":"text","c":true,"d":false,"e":null,"f":""})",
      R"({"a":[],"b":[1],"c":[[2,"x"],[],{}],"d":{"e":{"f":[{"g":3}]}},"h":4})",
      R"({"quote\"d":"\"","back\\":"\\","u\u001b":"\u0000\n\\\"","a:\"b":"c:,{}[]"})",
      R"({",:{}[]":",:{}[]","é":"日本 😀","\\\\":"\\\\"})",
      R"({"a":18446744073709551615,"b":"18446744073709551615"})",
  };
  for (const std::string_view json : kPayloads) {
    EXPECT_EQ(Calls(json, 0), CallsOfRapidJson(json, 0)) << json;
    EXPECT_NE(Calls(json, 0), "");
    for (std::size_t stop_at = 1; stop_at < 12; ++stop_at) {
      EXPECT_EQ(Calls(json, stop_at), CallsOfRapidJson(json, stop_at)) << json;
    }
  }
}

}  // namespace
}  // namespace tools::exporting
