// Shows the events of hostile files in the order of time and in every style, as JSON and as text.
// The JSON must be one valid line. Neither form may have control characters.
#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "nettrace/time_ordered_reader.h"
#include "tools/trace/code_map.h"
#include "tools/trace/event_json.h"
#include "tools/trace/payload_json.h"

namespace {

// Requires that the text has neither C0 nor C1 control characters, and does not override the
// direction of text.
void RequirePrintable(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7F) __builtin_trap();
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (c == 0xC2 && next < 0xA0) __builtin_trap();
  }
  if (text.find("\u202e") != std::string::npos) __builtin_trap();
}

void RequireLineOfJson(const std::string& text) {
  RequirePrintable(text);
  rapidjson::Document document;
  // Iterative, because types may be nested deeper than the stack of an instrumented parser allows.
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      text.data(), text.size());
  if (document.HasParseError() || !document.IsObject()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto opened = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
  if (!opened.ok()) return 0;
  nettrace::TimeOrderedReader steps(*std::move(opened), {.max_memory = 10'000});
  const nettrace::Reader& reader = steps.reader();
  trace::PayloadJson raw(trace::PayloadStyle::kRaw);
  trace::PayloadJson for_programs(trace::PayloadStyle::kForPrograms);
  trace::PayloadJson for_people(trace::PayloadStyle::kForPeople);
  trace::CodeMap code;
  using Step = nettrace::Reader::Step;
  // A small file may have very many events; a few thousand are enough.
  int events = 0;
  for (Step step = steps.Next(); step != Step::kEnd && events < 4096; step = steps.Next()) {
    if (step == Step::kSequencePoint) {
      for (trace::PayloadJson* payloads : {&raw, &for_programs, &for_people}) {
        payloads->ForgetRows();
      }
    }
    if (step != Step::kEvent) continue;
    ++events;
    const nettrace::Event& event = steps.event();
    RequireLineOfJson(trace::EventToJson(reader, event, &raw));
    code.OnEvent(event);
    std::string line;
    trace::AppendEventJson(reader, event, &for_programs, &line, &code);
    RequireLineOfJson(line);
    RequirePrintable(trace::EventToText(reader, event, /*verbose=*/true, &for_people));
  }
  return 0;
}
