// Tests the output of `nettrace export --to ctf` and `ctf2` byte by byte. tests/conformance has
// readers of both.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tests/support/bytes.h"
#include "tools/nettrace/export/ctf/ctf_exporter.h"
#include "tools/nettrace/export/ctf/event_class.h"
#include "tools/nettrace/export/ctf/field_class.h"
#include "tools/nettrace/export/ctf/metadata_json.h"
#include "tools/nettrace/export/ctf/stream.h"
#include "tools/nettrace/export/ctf/trace_class.h"
#include "tools/nettrace/export/ctf/tsdl.h"
#include "tools/output/atomic_file.h"
#include "tools/trace/process_names.h"

namespace tools::ctf {
namespace {

using namespace std::string_literals;
using nettrace::Type;
using nettrace::TypeCode;

std::string ToText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(TsdlText, TextIsOneQuotedLine) {
  EXPECT_EQ(Quote("plain"), R"("plain")");
  EXPECT_EQ(Quote("a\"b\\c\nd\x1b"), R"("a\"b\\c\\u000ad\\u001b")");
  EXPECT_EQ(Quote("gr\xC3\xB6\xC3\x9F"
                  "e \xFF"),
            "\"gr\xC3\xB6\xC3\x9F"
            "e \xEF\xBF\xBD\"");
}

TEST(TsdlText, IdentifiersHaveLettersDigitsAndUnderscores) {
  EXPECT_EQ(Identifier("a b.c"), "a_b_c");
  EXPECT_EQ(Identifier("\xC3\xB6};"), "____");
  EXPECT_EQ(Identifier(std::string(70000, 'x')).size(), kMaxIdentifier);
}

TEST(MemberNames, DifferAlsoFromThoseOfLengths) {
  MemberNames names;
  EXPECT_EQ(names.Add("a"), "a");
  EXPECT_EQ(names.Add("a"), "a_2");
  EXPECT_EQ(names.Add("a_2"), "a_2_2");
  EXPECT_EQ(names.Add("a"), "a_3");
  EXPECT_EQ(names.Add(""), "");
  EXPECT_EQ(names.Add("n"), "n");
  EXPECT_EQ(names.Add("_n_length"), "_n_length_2") << "the length of the sequence n";
}

nettrace::EventMetadata Metadata(std::vector<nettrace::Field> fields) {
  nettrace::EventMetadata metadata;
  metadata.provider = "P";
  metadata.name = "E";
  metadata.fields = std::move(fields);
  return metadata;
}

nettrace::EventMetadata MetadataOfManyTypes() {
  nettrace::EventMetadata metadata = Metadata(
      {{"i", Type::Simple(TypeCode::kInt16)},
       {"v", Type::Simple(TypeCode::kVarUInt)},
       {"a",
        Type::Array(Type::Object({{"s", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))}}))},
       {"f", Type::FixedLengthArray(Type::Simple(TypeCode::kSingle), 3)},
       {"n", Type::Array(Type::Array(Type::Simple(TypeCode::kByte)))},
       {"a b", Type::Simple(TypeCode::kBoolean32)},
       {"a.b", Type::Simple(TypeCode::kGuid)}});
  metadata.level = 3;
  return metadata;
}

TEST(EventClass, IsDeclaredInTsdl) {
  EXPECT_EQ(TsdlOf(EventClassOf(MetadataOfManyTypes(), true)),
            "\tname = \"P:E\";\n"
            "\tloglevel = 4;\n"
            "\tfields := struct {\n"
            "\t\tint16_t _i;\n"
            "\t\tuint64_t _v;\n"
            "\t\tuint32_t __a_length;\n"
            "\t\tstruct {\n"
            "\t\t\tstring _s;\n"
            "\t\t} _a[__a_length];\n"
            "\t\tfloat32_t _f[3];\n"
            "\t\tuint32_t __n_length;\n"
            "\t\tstruct {\n"
            "\t\t\tuint32_t __value_length;\n"
            "\t\t\tuint8_t _value[__value_length];\n"
            "\t\t} _n[__n_length];\n"
            "\t\tenum : uint8_t { \"false\" = 0, \"true\" = 1 } _a_b;\n"
            "\t\tstring _a_b_2;\n"
            "\t};\n");
}

std::string JsonMember(const std::string& name, const std::string& field_class) {
  return R"({"name":")" + name + R"(","field-class":{)" + field_class + "}}";
}

std::string JsonInteger(const std::string& type, int bits) {
  return R"("type":"fixed-length-)" + type + R"(","length":)" + std::to_string(bits) +
         R"(,"byte-order":"little-endian","alignment":8)";
}

std::string JsonStruct(const std::string& members) {
  return R"("type":"structure","member-classes":[)" + members + "]";
}

std::string JsonArray(const std::string& name, const std::string& element) {
  return JsonMember("_" + name + "_length", JsonInteger("unsigned-integer", 32)) + "," +
         JsonMember(name, R"("type":"dynamic-length-array","length-field-location":{"path":["_)" +
                              name + R"(_length"]},"element-field-class":{)" + element + "}");
}

TEST(EventClass, IsDeclaredInJson) {
  EXPECT_EQ(
      JsonOf(EventClassOf(MetadataOfManyTypes(), true)),
      R"({"type":"event-record-class","name":"P:E",)"
      R"("attributes":{"babeltrace.org,2020":{"log-level":"warning"}},"payload-field-class":{)" +
          JsonStruct(
              JsonMember("i", JsonInteger("signed-integer", 16)) + "," +
              JsonMember("v", JsonInteger("unsigned-integer", 64)) + "," +
              JsonArray("a", JsonStruct(JsonMember("s", R"("type":"null-terminated-string")"))) +
              "," +
              JsonMember("f", R"("type":"static-length-array","length":3,"element-field-class":{)" +
                                  JsonInteger("floating-point-number", 32) + "}") +
              "," +
              JsonArray("n", JsonStruct(JsonArray("value", JsonInteger("unsigned-integer", 8)))) +
              "," + JsonMember("a b", JsonInteger("boolean", 8)) + "," +
              JsonMember("a.b", R"("type":"null-terminated-string")")) +
          "}}");
}

// Names with any bytes must be valid JSON and unique.
TEST(EventClass, NamesOfJsonAreAnyText) {
  const std::string json =
      JsonOf(EventClassOf(Metadata({{"\xFF", Type::Simple(TypeCode::kByte)},
                                    {"\xFE", Type::Simple(TypeCode::kByte)},
                                    {"\"\n\x1B", Type::Simple(TypeCode::kByte)}}),
                          true));
  for (const char* const name : {"\"\xEF\xBF\xBD\"", "\"\xEF\xBF\xBD_2\"", R"("\"\n\u001B")"}) {
    EXPECT_NE(json.find(name), json.npos) << name << " in " << json;
  }
}

TEST(EventClass, PayloadThatDoesNotFitHasAnErrorAndBytes) {
  const EventClass event = EventClassOf(MetadataOfManyTypes(), false);
  EXPECT_EQ(TsdlOf(event),
            "\tname = \"P:E\";\n\tloglevel = 4;\n\tfields := struct {\n\t\tstring _error;\n"
            "\t\tuint32_t __payload_length;\n\t\tuint8_hex_t _payload[__payload_length];\n\t};\n");
  EXPECT_NE(
      JsonOf(event).find(
          R"("type":"dynamic-length-blob","length-field-location":{"path":["_payload_length"]})"),
      std::string::npos);
}

// Any process may have written the keys Tracepoint.Field.NAME. They may repeat names and numbers,
// and may contain numbers that do not fit in the field.
TEST(EventClass, NamesOfNumbersThatFitAreAnEnum) {
  nettrace::EventMetadata metadata = Metadata({{"s", Type::Simple(TypeCode::kSByte)},
                                               {"u", Type::Simple(TypeCode::kUInt16)},
                                               {"o", Type::Simple(TypeCode::kInt32)}});
  metadata.key_values = {
      {"Tracepoint.Field.s", R"(symbol(s,1="one",1="uno",2="one",-1="minus",300="much",3="a\"b"))"},
      {"Tracepoint.Field.u", R"(hex symbol(u,7="x",65536="much"))"},
      {"Tracepoint.Field.o", R"(symbol(s,1="other"))"}};
  const EventClass event = EventClassOf(metadata, true);
  const std::string text = TsdlOf(event);
  EXPECT_NE(text.find(R"(enum : int8_t { "one" = 1, "minus" = -1, "a\"b" = 3 } _s;)"), text.npos)
      << text;
  EXPECT_NE(text.find(R"(enum : uint16_hex_t { "x" = 7 } _u;)"), text.npos) << text;
  EXPECT_NE(text.find("\t\tint32_t _o;"), text.npos) << text;
  const std::string json = JsonOf(event);
  EXPECT_NE(json.find(R"("mappings":{"one":[[1,1]],"minus":[[-1,-1]],"a\"b":[[3,3]]})"), json.npos)
      << json;
  EXPECT_NE(json.find(R"("preferred-display-base":16,"mappings":{"x":[[7,7]]})"), json.npos)
      << json;
}

constexpr EventEncoder kEncoder(Version::k1, Profile::kPlain, 8);

absl::Status Put(const nettrace::EventMetadata& metadata, const std::string& payload,
                 nettrace::internal::ByteWriter* out, const EventEncoder& encoder = kEncoder) {
  const std::vector<std::byte> bytes = tests::ToBytes(payload);
  nettrace::Event event;
  event.metadata = &metadata;
  event.payload = bytes;
  return encoder.PutPayload(event, out);
}

TEST(EventClass, PayloadIsPackedByItsFields) {
  const nettrace::EventMetadata metadata =
      Metadata({{"v", Type::Simple(TypeCode::kVarInt)},
                {"t", Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit))},
                {"o", Type::Array(Type::Object({{"b", Type::Simple(TypeCode::kBoolean32)}}))},
                {"n", Type::Array(Type::FixedLengthArray(Type::Simple(TypeCode::kUInt16), 1))},
                {"u", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))}});
  nettrace::internal::ByteWriter out;
  ASSERT_TRUE(Put(metadata,
                  "\x03"s + "\2\0\xE4\0\0\xD8"s + "\2\0\5\0\0\0\0\0\0\0"s + "\2\0\1\2\3\4"s +
                      "\4\0a\0\xFF"
                      "b"s,
                  &out)
                  .ok());
  EXPECT_EQ(ToText(out.bytes()), "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s + "\xC3\xA4\xEF\xBF\xBD\0"s +
                                     "\2\0\0\0\1\0"s + "\2\0\0\0\1\2\3\4"s +
                                     "a\xE2\x90\x80\xEF\xBF\xBD"
                                     "b\0"s);
}

TEST(EventClass, EmptyTextIsSeenAsNothing) {
  const nettrace::EventMetadata metadata =
      Metadata({{"t", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))}});
  nettrace::internal::ByteWriter out;
  ASSERT_TRUE(Put(metadata, "\0\0"s, &out).ok());
  EXPECT_EQ(ToText(out.bytes()), "\xE2\x80\x8B\0"s);
  out.Clear();
  ASSERT_TRUE(Put(metadata, "\0\0"s, &out, EventEncoder(Version::k2, Profile::kPlain, 8)).ok());
  EXPECT_EQ(ToText(out.bytes()), "\0"s) << "CTF 2 is not read by readers with that bug";
}

TEST(EventClass, PayloadThatDoesNotFitIsKeptAsBytes) {
  const nettrace::EventMetadata metadata =
      Metadata({{"a", Type::Array(Type::Simple(TypeCode::kUInt32))}});
  nettrace::internal::ByteWriter out;
  out.Fixed(std::uint8_t{1});
  const absl::Status status = Put(metadata, "\2\0\1\0\0\0\2"s, &out);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(out.size(), 1u) << "nothing of it is there";
  const std::vector<std::byte> payload = tests::ToBytes("\1\2");
  nettrace::Event event;
  event.payload = payload;
  kEncoder.PutUnfitPayload(event, "why", &out);
  EXPECT_EQ(ToText(out.bytes()), "\1why\0\2\0\0\0\1\2"s);
}

// A folder for traces, and the contents of the files of a trace.
class ExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("export-ctf-" + std::to_string(getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Trace() const { return folder_ / "trace"; }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Trace() + "/" + name, std::ios::binary).rdbuf();
    return text.str();
  }

  // Returns the 8-byte number at offset `at` of a stream's file.
  static std::uint64_t Number(const std::string& file, std::size_t at) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      number |= std::uint64_t{static_cast<unsigned char>(file.at(at + i))} << 8 * i;
    }
    return number;
  }
  struct Packet {
    std::uint64_t begin, end, bytes, number, lost;
    friend bool operator==(const Packet&, const Packet&) = default;
  };
  static std::vector<Packet> Packets(const std::string& file) {
    constexpr std::size_t kContext = 4 + 16 + 4 + 8;  // After the header.
    std::vector<Packet> packets;
    for (std::size_t at = 0; at < file.size(); at += packets.back().bytes) {
      EXPECT_EQ(file.substr(at, 4), "\xC1\x1F\xFC\xC1");
      const std::size_t context = at + kContext;
      EXPECT_EQ(Number(file, context + 16), Number(file, context + 24)) << "no padding";
      packets.push_back({Number(file, context), Number(file, context + 8),
                         Number(file, context + 24) / 8, Number(file, context + 32),
                         Number(file, context + 40)});
    }
    return packets;
  }

  std::filesystem::path folder_;
};

TEST_F(ExportTest, PacketsAreBoundedAndLossesBetweenThem) {
  output::AtomicFolder folder(Trace());
  ASSERT_TRUE(folder.Create({}).ok());
  Stream stream(Uuid{}, 7, 3, &folder);
  ASSERT_TRUE(stream.AddLoss(5, 2).ok());
  const std::vector<std::byte> fields(Stream::kPacketSize / 2 - 12);
  for (std::uint64_t time = 10; time < 15; ++time)
    ASSERT_TRUE(stream.AddEvent(time, 1, fields).ok());
  ASSERT_TRUE(stream.AddLoss(15, 3).ok());
  ASSERT_TRUE(stream.Flush().ok());
  ASSERT_TRUE(folder.Keep().ok());
  constexpr std::uint64_t kEmpty = 4 + 16 + 4 + 8 + 6 * 8 + 4;
  constexpr std::uint64_t kFull = kEmpty + Stream::kPacketSize;
  constexpr std::uint64_t kHalf = kEmpty + Stream::kPacketSize / 2;
  EXPECT_EQ(Packets(Read("stream-7")), (std::vector<Packet>{{5, 5, kEmpty, 0, 0},
                                                            {5, 5, kEmpty, 1, 2},
                                                            {10, 11, kFull, 2, 2},
                                                            {12, 13, kFull, 3, 2},
                                                            {14, 14, kHalf, 4, 2},
                                                            {15, 15, kEmpty, 5, 5}}));
}

// Returns a reader of an empty trace. The tests need only its clock and `info`.
std::unique_ptr<nettrace::Reader> Open(const nettrace::TraceInfo& info) {
  auto sink = std::make_unique<nettrace::MemorySink>();
  nettrace::MemorySink* const memory = sink.get();
  auto writer = nettrace::Writer::Create(std::move(sink), info);
  EXPECT_TRUE(writer.ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  const auto bytes = memory->bytes();
  auto reader = nettrace::Reader::Open(
      std::make_unique<nettrace::MemorySource>(std::vector<std::byte>(bytes.begin(), bytes.end())));
  EXPECT_TRUE(reader.ok());
  return *std::move(reader);
}

constexpr char kBootId[] = "1bbb42ea-aa1b-4e54-8ac0-6b23a2bd6a16";

class CtfExporterTest : public ExportTest {
 protected:
  void SetUp() override {
    ExportTest::SetUp();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    info.sync_ticks = 1'000'000'000;
    info.key_values = {{"Host", "h\"ost"}, {"a b", "x"}, {"a.b", "y"}, {"BootId", kBootId}};
    reader_ = Open(info);
    folder_of_trace_ = std::make_unique<output::AtomicFolder>(Trace());
    ASSERT_TRUE(folder_of_trace_->Create({}).ok());
    Start(Version::k1);
    metadata_ = Metadata({});
  }
  void Start(Version version) {
    exporter_ =
        std::make_unique<CtfExporter>(*reader_, version, Profile::kPlain, folder_of_trace_.get());
  }

  absl::Status Add(std::uint64_t ticks, std::uint32_t cpu) {
    nettrace::Event event;
    event.metadata = &metadata_;
    event.thread = event.capture_thread = &thread_;
    event.labels = &labels_;
    event.timestamp = ticks;
    event.processor = cpu;
    exporting::ExportedEvent exported;
    exported.event = &event;
    exported.time = reader_->TimeOf(ticks);
    return exporter_->OnEvent(exported);
  }
  void Finish() {
    ASSERT_TRUE(exporter_->Finish().ok());
    ASSERT_TRUE(folder_of_trace_->Keep().ok());
  }
  std::ptrdiff_t FilesOfTrace() const {
    return std::distance(std::filesystem::directory_iterator(Trace()), {});
  }

  std::unique_ptr<nettrace::Reader> reader_;
  std::unique_ptr<output::AtomicFolder> folder_of_trace_;
  std::unique_ptr<CtfExporter> exporter_;
  nettrace::EventMetadata metadata_;
  nettrace::ThreadInfo thread_;
  nettrace::Labels labels_;
};

TEST_F(CtfExporterTest, LateEventIsInAnotherStreamOfItsCpu) {
  for (const std::uint64_t ticks : {100, 200, 150, 150, 300, 160}) {
    ASSERT_TRUE(Add(ticks, 2).ok());
  }
  Finish();
  EXPECT_EQ(FilesOfTrace(), 3);
  const std::vector<Packet> first = Packets(Read("stream-0"));
  const std::vector<Packet> second = Packets(Read("stream-1"));
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(first[0].begin, 100u);
  EXPECT_EQ(first[0].end, 300u);
  EXPECT_EQ(second[0].begin, 150u);
  EXPECT_EQ(second[0].end, 160u);
}

TEST_F(CtfExporterTest, TimeThatRunsBackwardsEndsWithARemedy) {
  absl::Status status;
  for (std::uint64_t ticks = 1000; status.ok() && ticks > 0; --ticks) status = Add(ticks, 0);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_NE(status.message().find("nettrace repair"), absl::string_view::npos) << status;
}

TEST_F(CtfExporterTest, MetadataHasEachKindOnceAndTheClock) {
  ASSERT_TRUE(Add(100, 0).ok());
  exporter_->OnRowsEnd(true);
  ASSERT_TRUE(Add(100, 1).ok());
  ASSERT_TRUE(Add(100, nettrace::kNoProcessor).ok());
  Finish();
  const std::string metadata = Read("metadata");
  EXPECT_TRUE(metadata.starts_with("/* CTF 1.8 */\n"));
  const auto has = [&metadata](const char* text) { return metadata.find(text) != metadata.npos; };
  EXPECT_TRUE(
      has("freq = 1000000000;\n\toffset_s = 1799999999;\n\toffset = 0;\n\tabsolute = TRUE;"))
      << metadata;
  EXPECT_TRUE(has("\tuuid = \"1bbb42ea-aa1b-4e54-8ac0-6b23a2bd6a16\";\n\tdescription")) << metadata;
  EXPECT_TRUE(has("hostname = \"h\\\"ost\";\n\ttrace_Host = \"h\\\"ost\";\n\ttrace_a_b = \"x\";\n"))
      << metadata;
  EXPECT_TRUE(has("event {\n\tid = 0;\n\tstream_id = 0;\n\tname = \"P:E\";")) << metadata;
  EXPECT_TRUE(has("event {\n\tid = 0;\n\tstream_id = 1;\n\tname = \"P:E\";")) << metadata;
  EXPECT_FALSE(has("\tid = 1;\n\tstream_id")) << metadata;
}

TEST_F(CtfExporterTest, MetadataOfCtf2IsASequenceOfJsonTexts) {
  Start(Version::k2);
  ASSERT_TRUE(Add(100, 0).ok());
  ASSERT_TRUE(Add(100, nettrace::kNoProcessor).ok());
  Finish();
  const std::string metadata = Read("metadata");
  EXPECT_TRUE(metadata.starts_with("\x1E{\"type\":\"preamble\",\"version\":2,\"uuid\":["));
  EXPECT_EQ(std::count(metadata.begin(), metadata.end(), '\x1E'), 7);
  EXPECT_EQ(std::count(metadata.begin(), metadata.end(), '\n'), 7);
  const auto has = [&metadata](const char* text) { return metadata.find(text) != metadata.npos; };
  EXPECT_TRUE(
      has(R"("origin":"unix-epoch","offset-from-origin":{"seconds":1799999999,"cycles":0})"))
      << metadata;
  EXPECT_TRUE(has(R"("hostname":"h\"ost","trace_Host":"h\"ost","trace_a b":"x","trace_a.b":"y",)"))
      << metadata;
  EXPECT_TRUE(has(R"("uid":"1bbb42ea-aa1b-4e54-8ac0-6b23a2bd6a16","description":)")) << metadata;
  EXPECT_TRUE(has(R"(]},"data-stream-class-id":0,"id":0})")) << metadata;
  EXPECT_TRUE(has(R"(]},"data-stream-class-id":1,"id":0})")) << metadata;
}

// The boot id comes from the file, so it may be any text.
TEST(CtfExporter, IgnoresAnInvalidBootId) {
  for (const char* const id : {"", "1bbb42ea", "1bbb42ea-aa1b-4e54-8ac0-6b23a2bd6a1\"",
                               "1bbb42eaaaa1b-4e54-8ac0-6b23a2bd6a16a"}) {
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    info.key_values = {{"BootId", id}};
    const std::string path =
        std::string(::testing::TempDir()) + "/boot-id-" + std::to_string(getpid());
    output::AtomicFolder folder(path);
    ASSERT_TRUE(folder.Create({}).ok());
    CtfExporter exporter(*Open(info), Version::k1, Profile::kPlain, &folder);
    ASSERT_TRUE(exporter.Finish().ok());
    ASSERT_TRUE(folder.Keep().ok());
    std::ostringstream text;
    text << std::ifstream(path + "/metadata").rdbuf();
    std::filesystem::remove_all(path);
    EXPECT_NE(text.str().find("name = \"trace_clock\";\n\tdescription"), std::string::npos) << id;
  }
}

TEST_F(CtfExporterTest, LeavesNoFilesUnlessKept) {
  ASSERT_TRUE(Add(100, 0).ok());
  ASSERT_TRUE(exporter_->Finish().ok());
  folder_of_trace_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST(ProcessNames, AreFromTheLastEventUntilTheProcessEnds) {
  trace::ProcessNames names;
  nettrace::EventMetadata metadata =
      Metadata({{"NamespaceId", Type::Simple(TypeCode::kVarUInt)},
                {"Name", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))}});
  metadata.provider = "Universal.System";
  nettrace::ThreadInfo thread;
  thread.process_id = 7;
  nettrace::Event event;
  event.metadata = &metadata;
  event.thread = &thread;
  const auto tell = [&](const char* name, const std::string& payload) {
    const std::vector<std::byte> bytes = tests::ToBytes(payload);
    metadata.name = name;
    event.payload = bytes;
    names.OnEvent(event);
  };
  EXPECT_EQ(names.NameOf(thread), "");
  tell("ExistingProcess", "\1\2\0sh"s);
  EXPECT_EQ(names.NameOf(thread), "sh");
  tell("ProcessCreate", "\1\2\0ls"s);
  EXPECT_EQ(names.NameOf(thread), "ls");
  EXPECT_EQ(names.NameOf({}), "");
  tell("ProcessExit", "");
  EXPECT_EQ(names.NameOf(thread), "");
}

}  // namespace
}  // namespace tools::ctf
