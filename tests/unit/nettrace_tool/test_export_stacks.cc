// Tests the exports of stacks: folded, speedscope and pprof.
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/unit/nettrace_tool/stacks_trace.h"
#include "tools/nettrace/export/export_feed.h"
#include "tools/nettrace/export/stacks/stacks_exporter.h"

namespace tools::stacks {
namespace {

using nettrace::Bytes;
using stacks_trace::Function;
using stacks_trace::kName;
using stacks_trace::Mapping;
using stacks_trace::Sale;
using stacks_trace::Stream;
using stacks_trace::Switch;
using stacks_trace::Text;
using stacks_trace::TraceEvent;
using stacks_trace::WithCode;

struct Exported {
  absl::Status status;
  std::string bytes;
  std::string remark;
};

Exported Export(const std::vector<TraceEvent>& events, Format format,
                Weight weight = Weight::kAutomatic, const std::string& field = "",
                const trace::EventFilter& selected = {}) {
  const Bytes stream = Stream(events);
  trace::EventFilter filter = selected;
  filter.processes = trace::EventFilter::Added::kHidden;
  nettrace::MemorySink sink;
  ExportFeed feed(filter, trace::PayloadStyle::kForPrograms,
                  nettrace::testing::OpenBytes(stream.span()));
  StacksExporter exporter(feed.reader(), format, weight, field, &sink);
  Exported exported;
  exported.status = feed.Run(&exporter);
  exported.bytes.assign(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
  exported.remark = exporter.Remark();
  return exported;
}

TEST(ExportFolded, SumsEventsWithTheSameFunctions) {
  const Exported exported =
      Export(WithCode({Sale(1), Sale(2), Sale(1), Sale(4), Sale(3), Sale(0)}), Format::kFolded);
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  EXPECT_EQ(exported.bytes,
            "shop;shop!main;shop!shop::Send() 3\n"
            "shop;shop!main;vmlinux!write 1\n"
            "shop;0x9000;shop+0x340 1\n");
  EXPECT_EQ(exported.remark, "1 event without a stack left out");
}

TEST(ExportFolded, NamesFunctionsThatTheFileDescribesAfterTheEvents) {
  const Exported exported =
      Export({Mapping(1, 0x1000, 0x1fff, "a"), Sale(1), Sale(2),
              Function(1, 0x1100, 0x11ff, "late"), Sale(1), Function(1, 0x1200, 0x1204, "first")},
             Format::kFolded);
  EXPECT_EQ(exported.bytes, "pid 4242;a!first;a!late 3\n");
}

TEST(ExportFolded, ReplacesTheCharactersThatSeparateFrames) {
  const Exported exported = Export({{kName, Text("a;b\nc")},
                                    Mapping(1, 0x1000, 0x1fff, "x;y"),
                                    Function(1, 0x1100, 0x11ff, "f\n(;)"),
                                    Function(1, 0x1200, 0x12ff, "g h"),
                                    Sale(1)},
                                   Format::kFolded);
  EXPECT_EQ(exported.bytes, "a:b\\u000ac;x:y!g h;x:y!f\\u000a(:) 1\n");
}

TEST(ExportFolded, SumsTimesOffTheCpuOrEventsOrAField) {
  EXPECT_EQ(Export(WithCode({Switch(1, 500), Switch(2, 70), Switch(4, 0)}), Format::kFolded).bytes,
            "shop;shop!main;shop!shop::Send() 570\n");
  EXPECT_EQ(
      Export(WithCode({Switch(1, 500), Switch(2, 70), Sale(4)}), Format::kFolded, Weight::kEvents)
          .bytes,
      "shop;shop!main;shop!shop::Send() 2\nshop;shop!main;vmlinux!write 1\n");
  const Exported by_price = Export(WithCode({Switch(1, 500), Sale(2, 70), Sale(4, 6)}),
                                   Format::kFolded, Weight::kField, "Price");
  EXPECT_EQ(by_price.bytes,
            "shop;shop!main;shop!shop::Send() 70\nshop;shop!main;vmlinux!write 6\n");
  EXPECT_EQ(by_price.remark, "1 event without a number to sum left out");
}

TEST(ExportFolded, RefusesSumsOfTimesAndEvents) {
  const Exported exported = Export(WithCode({Switch(1, 500), Sale(1)}), Format::kFolded);
  EXPECT_EQ(exported.status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(exported.status.message().find("--weight events"), std::string_view::npos)
      << exported.status;
}

TEST(ExportStacks, RefusesAFileWithoutStacks) {
  for (const Format format : {Format::kFolded, Format::kSpeedscope, Format::kPprof}) {
    const Exported exported = Export({Sale(0), Sale(0)}, format);
    EXPECT_EQ(exported.status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(exported.status.message(),
              "none of 2 events has a stack; record stacks with 'nettrace record --stacks'");
    EXPECT_EQ(exported.bytes, "");
  }
  const Exported no_field = Export({Sale(1)}, Format::kFolded, Weight::kField, "Size");
  EXPECT_NE(no_field.status.message().find("number in the field Size"), std::string_view::npos)
      << no_field.status;
}

TEST(ExportStacks, TakesTheCodeFromEventsThatTheFilterDoesNotSelect) {
  trace::EventFilter filter;
  filter.events = {"Sale"};
  EXPECT_EQ(
      Export(WithCode({Sale(1), Switch(1, 5)}), Format::kFolded, Weight::kAutomatic, "", filter)
          .bytes,
      "shop;shop!main;shop!shop::Send() 1\n");
}

TEST(ExportSpeedscope, HasAProfileForEachKindOfEvent) {
  const Exported exported =
      Export(WithCode({Sale(1), Sale(2), Switch(4, 80), Sale(3)}), Format::kSpeedscope);
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  const std::string frames = R"json("frames":[{"name":"shop"},{"name":"shop!main",)json"
                             R"json("file":"/opt/shop"},{"name":"shop!shop::Send()",)json"
                             R"json("file":"/opt/shop"},{"name":"vmlinux!write",)json"
                             R"json("file":"vmlinux"},{"name":"0x9000"},)json"
                             R"json({"name":"shop+0x340","file":"/opt/shop"}])json";
  EXPECT_EQ(exported.bytes,
            R"({"$schema":"https://www.speedscope.app/file-format-schema.json",)"
            R"("exporter":"nettrace","shared":{)" +
                frames +
                R"(},"profiles":[{"type":"sampled","name":"Shop:Sale","unit":"none",)"
                R"("samples":[[0,1,2],[0,4,5]],"weights":[2,1],"startValue":0,"endValue":3},)"
                R"({"type":"sampled","name":"Universal.Events:cswitch","unit":"nanoseconds",)"
                R"("samples":[[0,1,3]],"weights":[80],"startValue":0,"endValue":80}]})"
                "\n");
}

TEST(ExportSpeedscope, SumsDoNotOverflow) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  const Exported exported = Export(WithCode({Sale(1, kMost), Sale(1, kMost, 2), Sale(4, kMost)}),
                                   Format::kSpeedscope, Weight::kField, "Price");
  EXPECT_NE(exported.bytes.find(R"("weights":[18446744073709551615,18446744073709551615],)"
                                R"("startValue":0,"endValue":18446744073709551615)"),
            std::string::npos)
      << exported.bytes;
}

std::string Unzip(const std::string& bytes) {
  std::string text(1 << 20, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<unsigned>(bytes.size());
  stream.next_out = reinterpret_cast<unsigned char*>(text.data());
  stream.avail_out = static_cast<unsigned>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

// A field of a message: a number, or the bytes of a text, list or message.
struct ProtoField {
  std::uint64_t number = 0;
  std::string bytes;
};
using Fields = std::multimap<std::uint64_t, ProtoField>;

std::uint64_t TakeVarint(std::string_view* bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes->front());
    bytes->remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

Fields Parse(std::string_view bytes) {
  Fields fields;
  while (!bytes.empty()) {
    const std::uint64_t tag = TakeVarint(&bytes);
    ProtoField field{TakeVarint(&bytes), ""};
    EXPECT_TRUE((tag & 7) == 0 || (tag & 7) == 2);
    if ((tag & 7) == 2) {
      field.bytes = bytes.substr(0, field.number);
      bytes.remove_prefix(std::min<std::size_t>(field.number, bytes.size()));
    }
    fields.emplace(tag >> 3, std::move(field));
  }
  return fields;
}

std::vector<std::uint64_t> ParseNumbers(std::string_view bytes) {
  std::vector<std::uint64_t> numbers;
  while (!bytes.empty()) numbers.push_back(TakeVarint(&bytes));
  return numbers;
}

TEST(ExportPprof, HasSamplesWithLocationsValuesAndLabels) {
  const Exported exported =
      Export(WithCode({Sale(1), Sale(1), Switch(4, 80), Sale(3, 1, 2)}), Format::kPprof);
  ASSERT_TRUE(exported.status.ok()) << exported.status;
  const Fields profile = Parse(Unzip(exported.bytes));
  std::vector<std::string> texts;
  for (auto [at, end] = profile.equal_range(6); at != end; ++at) texts.push_back(at->second.bytes);
  ASSERT_EQ(texts.front(), "");
  const auto text = [&](const Fields& fields, std::uint64_t field) {
    return fields.contains(field) ? texts.at(fields.find(field)->second.number) : "";
  };
  const auto number = [](const Fields& fields, std::uint64_t field) {
    return fields.contains(field) ? fields.find(field)->second.number : 0;
  };
  std::vector<std::string> types;
  for (auto [at, end] = profile.equal_range(1); at != end; ++at) {
    const Fields type = Parse(at->second.bytes);
    types.push_back(text(type, 1) + "/" + text(type, 2));
  }
  EXPECT_EQ(types, (std::vector<std::string>{"samples/count", "off-cpu/nanoseconds"}));
  EXPECT_EQ(text(profile, 14), "samples");
  EXPECT_EQ(texts.at(ParseNumbers(profile.find(13)->second.bytes).at(0)), "0 events lost");
  std::map<std::uint64_t, std::string> functions;
  for (auto [at, end] = profile.equal_range(5); at != end; ++at) {
    const Fields function = Parse(at->second.bytes);
    functions[number(function, 1)] = text(function, 2) + "|" + text(function, 3);
  }
  std::map<std::uint64_t, std::string> mappings;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (auto [at, end] = profile.equal_range(3); at != end; ++at) {
    const Fields mapping = Parse(at->second.bytes);
    mappings[number(mapping, 1)] = text(mapping, 5) + "@" + text(mapping, 6);
    ranges[number(mapping, 1)] = {number(mapping, 2), number(mapping, 3)};
  }
  std::map<std::uint64_t, std::string> locations;
  std::map<std::string, std::uint64_t> starts;  // addresses of functions
  for (auto [at, end] = profile.equal_range(4); at != end; ++at) {
    const Fields location = Parse(at->second.bytes);
    const std::uint64_t mapping = number(location, 2);
    std::string code = mappings[mapping] + " ";
    code += location.contains(4) ? functions[number(Parse(location.find(4)->second.bytes), 1)]
                                 : std::to_string(number(location, 3));
    locations[number(location, 1)] = code;
    if (location.contains(4)) starts[code] = number(location, 3);
    if (mapping == 0) continue;
    EXPECT_GE(number(location, 3), ranges[mapping].first);
    EXPECT_LT(number(location, 3), ranges[mapping].second);
  }
  EXPECT_EQ(starts, (std::map<std::string, std::uint64_t>{
                        {"/opt/shop@b1ed main|main", 0x240},
                        {"/opt/shop@b1ed shop::Send()|shop::Send()", 0x140},
                        {"vmlinux@ write|write", 0xffffffff81000000}}));
  std::vector<std::string> samples;
  for (auto [at, end] = profile.equal_range(2); at != end; ++at) {
    const Fields sample = Parse(at->second.bytes);
    std::string line;
    for (const std::uint64_t id : ParseNumbers(sample.find(1)->second.bytes)) {
      line += locations[id] + ";";
    }
    for (const std::uint64_t value : ParseNumbers(sample.find(2)->second.bytes)) {
      line += " " + std::to_string(value);
    }
    for (auto [label_at, label_end] = sample.equal_range(3); label_at != label_end; ++label_at) {
      const Fields label = Parse(label_at->second.bytes);
      line += " " + text(label, 1) + "=" + text(label, 2);
      if (label.contains(3)) line += std::to_string(number(label, 3));
    }
    samples.push_back(line);
  }
  const std::string main = "/opt/shop@b1ed main|main;";
  EXPECT_EQ(samples,
            (std::vector<std::string>{
                "/opt/shop@b1ed shop::Send()|shop::Send();" + main +
                    " 2 0 process=shop pid=4242 thread=worker tid=4243 event=Shop:Sale",
                "vmlinux@ write|write;" + main +
                    " 1 80 process=shop pid=4242 thread=worker tid=4243"
                    " event=Universal.Events:cswitch",
                // The address of the caller is that of the call before the return address 0x9000.
                "/opt/shop@b1ed 832; 36863; 1 0 process=shop pid=4242 thread=worker tid=4244"
                " event=Shop:Sale"}));
}

}  // namespace
}  // namespace tools::stacks
