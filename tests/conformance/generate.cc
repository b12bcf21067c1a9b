// Writes the files that the conformance tests read: every type, label and kind of sequence point,
// threads that start and end, lost events, and sections. Usage: generate DIR
//
// types.expected, quirks.expected and account.expected have the payloads that readers must show for
// the .nettrace file with the same name, one JSON object on each line.

#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "eventheader/activity.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tests/conformance/type_cases.h"
#include "tests/support/nettrace/sectioned_sink.h"
#include "tools/trace/account.h"

namespace conformance {
namespace {

using nettrace::EventMetadata;
using nettrace::EventRow;
using nettrace::Labels;
using nettrace::MetadataId;
using nettrace::ThreadIndex;
using nettrace::ThreadInfo;
using nettrace::Type;
using nettrace::TypeCode;
using nettrace::Writer;

constexpr std::uint64_t kStart = 5'000'000'000;  // ticks

// Ends the program if a step failed: everything written here is valid.
void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "generate: " << status << "\n";
  std::exit(1);
}
template <typename T>
T Must(absl::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

nettrace::TraceInfo Info() {
  nettrace::TraceInfo info;
  info.sync_time =
      absl::FromCivil(absl::CivilSecond(2026, 11, 21, 12, 30, 45), absl::UTCTimeZone()) +
      absl::Milliseconds(678);
  info.sync_ticks = static_cast<std::int64_t>(kStart);
  info.key_values = {{"HardwareThreadCount", "4"}, {"Host", "größe"}};
  return info;
}

std::unique_ptr<Writer> Create(const std::string& path) {
  return Must(Writer::Create(Must(nettrace::FdSink::Create(path)), Info()));
}

ThreadIndex AddThread(Writer* writer, const std::string& name, std::uint64_t pid,
                      std::uint64_t tid) {
  ThreadInfo thread;
  thread.name = name;
  thread.process_id = pid;
  thread.thread_id = tid;
  return Must(writer->AddThread(thread));
}

ThreadIndex AddCpu(Writer* writer, std::uint32_t cpu) {
  ThreadInfo thread;
  thread.name = "CPU " + std::to_string(cpu);
  return Must(writer->AddThread(thread));
}

EventMetadata Numbered(const std::string& name, std::uint32_t id) {
  EventMetadata metadata;
  metadata.provider = "Conformance";
  metadata.event_id = id;
  metadata.name = name;
  metadata.level = 4;
  metadata.opcode = 0;
  metadata.fields = {{"n", Type::Simple(TypeCode::kUInt32)}};
  return metadata;
}

std::vector<std::byte> Number(std::uint32_t number) {
  const auto bytes = Payload().Put(number);
  return {bytes.bytes().begin(), bytes.bytes().end()};
}

nettrace::Guid Guid(int first) {
  nettrace::Guid guid;
  for (std::size_t i = 0; i < guid.size(); ++i) {
    guid[i] = static_cast<std::byte>(static_cast<std::size_t>(first) + i);
  }
  return guid;
}

// Each case has three events with another event between them, so that no result depends on being
// the first event.
void WriteTypes(const std::string& path, const std::vector<TypeCase>& cases) {
  std::unique_ptr<Writer> writer = Create(path + ".nettrace");
  std::ofstream expected(path + ".expected");
  EventRow row;
  row.capture_thread = row.thread = AddThread(writer.get(), "main", 100, 101);
  row.timestamp = kStart;
  const MetadataId between = Must(writer->AddMetadata(Numbered("Between", 1)));
  std::uint32_t id = 1;
  for (const TypeCase& type_case : cases) {
    EventMetadata metadata = Numbered(type_case.name, ++id);
    metadata.fields = type_case.fields;
    const MetadataId metadata_id = Must(writer->AddMetadata(metadata));
    for (std::uint32_t i = 0; i < 3; ++i) {
      row.metadata_id = metadata_id;
      row.timestamp += 10;
      Must(writer->WriteEvent(row, type_case.payload.bytes()));
      row.metadata_id = between;
      row.timestamp += 10;
      Must(writer->WriteEvent(row, Number(i)));
      expected << "{\"name\":\"" << type_case.name << "\",\"payload\":" << type_case.json << "}\n"
               << "{\"name\":\"Between\",\"payload\":{\"n\":" << i << "}}\n";
    }
  }
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
  if (!expected.flush()) Must(absl::UnknownError("writing " + path + ".expected failed"));
}

std::vector<Labels> LabelCases() {
  std::vector<Labels> cases(11);
  cases[0].activity_id = Guid(1);
  cases[1].related_activity_id = Guid(2);
  cases[2].trace_id.emplace();
  cases[2].trace_id->fill(std::byte{0x5a});
  cases[3].span_id = 0xFEDCBA9876543210;
  cases[4].opcode = 3;
  cases[5].keywords = 0x8000000000000001;
  cases[6].level = 1;
  cases[7].version = 255;
  cases[8].strings = {{"key", "größe"}, {"key", ""}, {"", "no key"}};
  cases[9].integers = {{"least", INT64_MIN}, {"greatest", INT64_MAX}, {"none", 0}};
  Labels& all = cases[10];
  all = {cases[0].activity_id, cases[1].related_activity_id,
         cases[2].trace_id,    cases[3].span_id,
         cases[4].opcode,      cases[5].keywords,
         cases[6].level,       cases[7].version,
         cases[8].strings,     cases[9].integers};
  return cases;
}

// Writes each kind of label alone, all kinds together, and events without labels between them.
void WriteLabels(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  EventMetadata metadata = Numbered("Labelled", 1);
  metadata.keywords = 0x10;
  metadata.version = 2;
  metadata.message_template = "n is {n}";
  metadata.description = "größe";
  metadata.key_values = {{"Key", "Value"}, {"Key", "Other"}};
  EventRow row;
  row.metadata_id = Must(writer->AddMetadata(metadata));
  row.capture_thread = row.thread = AddThread(writer.get(), "main", 100, 101);
  row.timestamp = kStart;
  std::uint32_t number = 0;
  for (int interval = 0; interval < 2; ++interval) {
    for (const Labels& labels : LabelCases()) {
      row.label_list_id = Must(writer->InternLabels(labels));
      Must(writer->WriteEvent(row, Number(number++)));
      row.label_list_id = nettrace::kNoLabels;
      row.timestamp += 10;
      Must(writer->WriteEvent(row, Number(number++)));
      row.timestamp += 10;
    }
    Must(writer->WriteSequencePoint(row.timestamp));
  }
  Must(writer->Finish());
}

// Writes events with names and opcodes for which TraceEvent has special rules, such as a name that
// ends in Start. Readers must show them unchanged.
void WriteNames(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  EventRow row;
  row.capture_thread = row.thread = AddThread(writer.get(), "main", 100, 101);
  row.timestamp = kStart;
  std::uint32_t id = 0;
  for (const char* name :
       {"RequestStart", "RequestStop", "Restart", "Start", "Plain", "größe", "a/b"}) {
    for (const int opcode : {0, 1, 2, 9, 10, 240, 255}) {
      EventMetadata metadata = Numbered(name, ++id);
      metadata.opcode = static_cast<std::uint8_t>(opcode);
      row.metadata_id = Must(writer->AddMetadata(metadata));
      row.timestamp += 10;
      Must(writer->WriteEvent(row, Number(id)));
    }
  }
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
}

// Writes activities of two processes: one nested in another, one that ends on another thread, one
// that ends without a beginning, and one that does not end. Related activities are open, have
// ended, or never began. The last event has more fields and longer texts than a Fuchsia trace has
// room for.
void WriteActivities(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  const ThreadIndex threads[] = {AddThread(writer.get(), "accept", 100, 101),
                                 AddThread(writer.get(), "work", 100, 102),
                                 AddThread(writer.get(), "store", 200, 201)};
  EventRow row;
  row.capture_thread = AddCpu(writer.get(), 2);
  row.processor = 2;
  row.timestamp = kStart;
  std::uint32_t number = 0;
  const auto write = [&](const char* name, int opcode, std::size_t thread,
                         std::optional<int> activity, std::optional<int> related = std::nullopt) {
    EventMetadata metadata = Numbered(name, ++number);
    metadata.opcode = static_cast<std::uint8_t>(opcode);
    row.metadata_id = Must(writer->AddMetadata(metadata));
    row.thread = threads[thread];
    Labels labels;
    if (activity) labels.activity_id = Guid(*activity);
    if (related) labels.related_activity_id = Guid(*related);
    row.label_list_id = Must(writer->InternLabels(labels));
    row.timestamp += 1000;
    Must(writer->WriteEvent(row, Number(number)));
  };
  constexpr int kStarts = 1;
  constexpr int kStops = 2;
  write("Request", kStarts, 0, 1);
  write("Parse", kStarts, 0, 1);
  write("ParseDone", kStops, 0, 1);
  write("Store", kStarts, 2, 2, /*related=*/1);
  write("Note", 0, 1, std::nullopt, /*related=*/2);
  write("StoreDone", kStops, 2, 2);
  write("Late", 0, 1, std::nullopt, /*related=*/2);
  write("Strange", 0, 1, 1, /*related=*/77);
  write("RequestDone", kStops, 1, 1);
  write("NeverBegun", kStops, 1, 1);
  write("NeverEnded", kStarts, 1, 3, /*related=*/3);
  EventMetadata wide = Numbered("Wide", ++number);
  Payload payload;
  payload.Put(number);
  for (int i = 0; i < 20; ++i) {
    wide.fields.push_back(
        {"text " + std::to_string(i), Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))});
    payload.Text(std::string(i % 2 == 0 ? 3 : 3000, static_cast<char>('a' + i)));
  }
  row.metadata_id = Must(writer->AddMetadata(wide));
  row.label_list_id = nettrace::kNoLabels;
  row.timestamp += 1000;
  Must(writer->WriteEvent(row, payload.bytes()));
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
}

nettrace::Guid NewGuid() { return nettrace::GuidFromUuid(eh::NewActivityId()); }

// Writes the events that recordings of examples/http and examples/c_service.c contain: three
// requests, each with a call of a backend, and three rounds, each related to the previous round.
// The ids are those that libeventheader makes in these services. Each event is 1 ms later than the
// previous event.
void WriteActivityPaths(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  EventRow row;
  row.capture_thread = AddCpu(writer.get(), 0);
  row.processor = 0;
  row.timestamp = kStart;
  const ThreadIndex http = AddThread(writer.get(), "http", 100, 101);
  const ThreadIndex c = AddThread(writer.get(), "c", 200, 200);
  std::uint32_t number = 0;
  const auto write = [&](const char* provider, const char* name, int opcode,
                         const nettrace::Guid& activity,
                         std::optional<nettrace::Guid> related = std::nullopt) {
    EventMetadata metadata = Numbered(name, static_cast<std::uint32_t>(opcode) + 1);
    metadata.provider = provider;
    metadata.opcode = static_cast<std::uint8_t>(opcode);
    row.metadata_id = Must(writer->AddMetadata(metadata));
    Labels labels;
    labels.activity_id = activity;
    labels.related_activity_id = related;
    row.label_list_id = Must(writer->InternLabels(labels));
    row.timestamp += 1'000'000;
    Must(writer->WriteEvent(row, Number(++number)));
  };
  row.thread = http;
  for (int i = 0; i < 3; ++i) {
    const nettrace::Guid request = NewGuid();
    const nettrace::Guid backend = NewGuid();
    write("HttpRequests", "RequestStart", 1, request);
    write("HttpBackend", "BackendStart", 1, backend, request);
    write("HttpBackend", "BackendStop", 2, backend);
    write("HttpRequests", "RequestDone", 0, request);
    write("HttpRequests", "RequestStop", 2, request);
  }
  row.thread = c;
  // Unlike in c_service.c, rounds overlap in this file, because TraceEvent finds parents only among
  // activities that are open.
  std::optional<nettrace::Guid> before;
  for (int i = 0; i < 3; ++i) {
    const nettrace::Guid round = NewGuid();
    write("ExampleC", "Round", 1, round, before);
    if (before) write("ExampleC", "Round", 2, *before);
    before = round;
  }
  write("ExampleC", "Round", 2, *before);
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
}

// Writes events of six threads on four CPUs, for twenty intervals. Every third sequence point
// flushes threads, and every fifth one flushes metadata.
class Intervals {
 public:
  explicit Intervals(const std::string& path) : writer_(Create(path)) {}

  void Write() {
    for (int interval = 1; interval <= 20; ++interval) {
      Define();
      const std::uint64_t from = now_;
      // The events of one CPU come after those of the previous CPU, although their times overlap,
      // as when a recorder drains the rings one after another.
      for (std::uint32_t cpu = 0; cpu < cpus_.size(); ++cpu) WriteCpu(cpu, from);
      now_ += kTicks;
      std::uint32_t flags = 0;
      if (interval % 3 == 0) flags |= nettrace::kSequencePointFlushThreads;
      if (interval % 5 == 0) flags |= nettrace::kSequencePointFlushMetadata;
      Must(writer_->WriteSequencePoint(now_, flags));
      if ((flags & nettrace::kSequencePointFlushThreads) != 0) have_threads_ = false;
      if ((flags & nettrace::kSequencePointFlushMetadata) != 0) have_metadata_ = false;
    }
    Must(writer_->Finish());
  }

 private:
  static constexpr std::uint64_t kTicks = 1'000'000;

  void Define() {
    if (!have_threads_) {
      for (std::uint32_t cpu = 0; cpu < cpus_.size(); ++cpu)
        cpus_[cpu] = AddCpu(writer_.get(), cpu);
      for (std::uint64_t i = 0; i < threads_.size(); ++i) {
        threads_[i] = AddThread(writer_.get(), "worker " + std::to_string(i), 100 + i / 3, 200 + i);
      }
      have_threads_ = true;
    }
    if (!have_metadata_) {
      // Adds the rows in another order in each generation, so that metadata ids differ from
      // EventIds.
      for (std::uint32_t i = 0; i < kinds_.size(); ++i) {
        const std::uint32_t kind = (i + generation_) % static_cast<std::uint32_t>(kinds_.size());
        kinds_[kind] =
            Must(writer_->AddMetadata(Numbered("Kind" + std::to_string(kind), kind + 1)));
      }
      ++generation_;
      have_metadata_ = true;
    }
  }

  std::uint32_t Random(std::uint32_t below) {
    // Does not use the distributions of std, whose results differ between standard libraries.
    return static_cast<std::uint32_t>(random_() % below);
  }

  void WriteCpu(std::uint32_t cpu, std::uint64_t from) {
    EventRow row;
    row.capture_thread = cpus_[cpu];
    row.processor = cpu;
    row.timestamp = from;
    const std::uint32_t events = Random(300);
    for (std::uint32_t i = 0; i < events; ++i) {
      // The lowest three bits are the number of the CPU, so that no two events have the same time.
      row.timestamp = (row.timestamp / 8 + 1 + Random(kTicks / 8 / 301)) * 8 + cpu;
      row.thread = threads_[Random(static_cast<std::uint32_t>(threads_.size()))];
      row.metadata_id = kinds_[Random(static_cast<std::uint32_t>(kinds_.size()))];
      Labels labels;
      if (Random(3) == 0) labels.activity_id = Guid(static_cast<int>(Random(5)));
      row.label_list_id = Must(writer_->InternLabels(labels));
      std::vector<std::uint64_t> stack(Random(4));
      for (std::uint64_t& frame : stack) frame = 0x7f0000000000 + Random(10);
      row.stack_id = Must(writer_->InternStack(stack));
      Must(writer_->WriteEvent(row, Number(number_++)));
    }
  }

  std::unique_ptr<Writer> writer_;
  std::array<ThreadIndex, 4> cpus_{};
  std::array<ThreadIndex, 6> threads_{};
  std::array<MetadataId, 5> kinds_{};
  bool have_threads_ = false;
  bool have_metadata_ = false;
  std::uint32_t generation_ = 0;
  std::uint32_t number_ = 0;
  std::uint64_t now_ = kStart;
  std::mt19937 random_{20261121};
};

// Writes these losses: 5 before a CPU's first event, 3 between events, 4 across a sequence point,
// 10 before one, 100 on a CPU without any event, and 7 after threads were flushed. The sum is 129.
void WriteLost(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  EventRow row;
  row.metadata_id = Must(writer->AddMetadata(Numbered("Survivor", 1)));
  row.timestamp = kStart;
  row.thread = AddThread(writer.get(), "main", 100, 101);
  row.capture_thread = AddCpu(writer.get(), 0);
  const ThreadIndex silent = AddCpu(writer.get(), 1);
  const auto survive = [&row, &writer](std::uint32_t number) {
    row.timestamp += 10;
    Must(writer->WriteEvent(row, Number(number)));
  };
  Must(writer->AddLost(row.capture_thread, 5));
  survive(1);
  Must(writer->AddLost(row.capture_thread, 3));
  survive(2);
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->AddLost(row.capture_thread, 4));
  survive(3);
  Must(writer->AddLost(row.capture_thread, 10));
  Must(writer->AddLost(silent, 100));
  Must(writer->WriteSequencePoint(row.timestamp, nettrace::kSequencePointFlushThreads));
  row.thread = AddThread(writer.get(), "main", 100, 101);
  row.capture_thread = AddCpu(writer.get(), 0);
  Must(writer->AddLost(row.capture_thread, 7));
  survive(4);
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
}

// Writes three sections in which the same ids and indices mean different rows, with 5 lost events
// in the first section and 3 in the last. Makes one file with all sections, and one for each.
void WriteSections(const std::string& path) {
  const auto sections = std::make_shared<nettrace::testing::Sections>();
  const std::unique_ptr<Writer> writer =
      Must(Writer::Create(std::make_unique<nettrace::testing::SectionedSink>(sections), Info()));
  EventRow row;
  row.timestamp = kStart;
  const auto write = [&row, &writer](std::uint32_t number) {
    row.timestamp += 10;
    Must(writer->WriteEvent(row, Number(number)));
  };
  row.metadata_id = Must(writer->AddMetadata(Numbered("First", 1)));
  row.capture_thread = AddCpu(writer.get(), 0);
  row.thread = AddThread(writer.get(), "main", 100, 101);
  write(1);
  Must(writer->AddLost(row.capture_thread, 5));
  write(2);
  Must(writer->StartSection(row.timestamp));
  row.metadata_id = Must(writer->AddMetadata(Numbered("Second", 2)));
  row.thread = AddThread(writer.get(), "other", 200, 201);
  row.capture_thread = AddCpu(writer.get(), 1);
  write(3);
  const EventRow before = row;
  row.metadata_id = Must(writer->AddMetadata(Numbered("First", 1)));
  row.thread = AddThread(writer.get(), "main", 100, 101);
  write(4);
  Must(writer->StartSection(row.timestamp));
  row.metadata_id = Must(writer->AddMetadata(Numbered("First", 1)));
  row.thread = row.capture_thread = AddCpu(writer.get(), 0);
  if (row.metadata_id != before.metadata_id || row.thread != before.thread) {
    Must(absl::InternalError("the ids of a section do not start again"));
  }
  Must(writer->AddLost(row.capture_thread, 3));
  write(5);
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
  const auto save = [](const std::string& name, const std::string& bytes) {
    std::ofstream file(name, std::ios::binary);
    if (!(file << bytes).flush()) Must(absl::UnknownError("writing " + name + " failed"));
  };
  save(path + ".nettrace", sections->bytes);
  for (std::size_t i = 0; i < sections->starts.size(); ++i) {
    save(path + "-" + std::to_string(i) + ".nettrace", sections->Stream(i));
  }
}

// Writes one event of each kind with which a recorder describes the recording (AccountEvent). The
// payloads that readers must show are in the file with the same name that ends with .expected.
void WriteAccount(const std::string& path) {
  using trace::AccountEvent;
  using Kind = AccountEvent::Kind;
  std::unique_ptr<Writer> writer = Create(path + ".nettrace");
  std::ofstream expected(path + ".expected");
  EventRow row;
  ThreadInfo collector;
  collector.name = "collector";
  row.capture_thread = row.thread = Must(writer->AddThread(collector));
  row.processor = nettrace::kNoProcessor;
  row.timestamp = kStart;
  const std::uint64_t since = 1'795'319'466'500'931'407;
  const std::uint64_t until = since + 1;
  const std::pair<AccountEvent, const char*> cases[] = {
      {{Kind::kEventsLost, 255, UINT64_MAX, "user_events:Größe_L4K1", "", since, until},
       R"("EventsLost","payload":{"Cpu":255,"Tracepoint":"user_events:Größe_L4K1",)"
       R"("Count":"18446744073709551615","From":"1795319466500931407","Until":"1795319466500931408"})"},
      {{Kind::kCpuOffline, 3, 0, "", "", since, 0},
       R"("CpuOffline","payload":{"Cpu":3,"Since":"1795319466500931407","Until":0})"},
      {{Kind::kCpuOnline, 3, 0, "", "", since, until},
       R"("CpuOnline","payload":{"Cpu":3,"NotRecordedSince":"1795319466500931407",)"
       R"("NotRecordedUntil":"1795319466500931408","Reason":""})"},
      {{Kind::kTracepointLeftOut, 0, 0, "ftrace:function", "größer als erlaubt"},
       R"("TracepointLeftOut","payload":{"Tracepoint":"ftrace:function",)"
       R"("Reason":"größer als erlaubt"})"},
      {{Kind::kAccountUnknown, 0, 0, "", "", since, until},
       R"("AccountUnknown","payload":{"Since":"1795319466500931407",)"
       R"("Until":"1795319466500931408"})"},
      {{Kind::kEventsDropped, 3, 7, "", "the output is full", since, until},
       R"("EventsDropped","payload":{"Cpu":3,"Count":7,"From":"1795319466500931407",)"
       R"("Until":"1795319466500931408","Reason":"the output is full"})"},
      {{Kind::kSectionBegan, 3, 7, "", "", 0, 0, 2, 9},
       R"("SectionBegan","payload":{"Cpu":3,"Section":2,"Events":7,"Lost":9})"},
      {{Kind::kTracepointMet, 0, 0, "user_events:A_L4K1", "", 0, until},
       R"("TracepointMet","payload":{"Tracepoint":"user_events:A_L4K1",)"
       R"("NotRecordedUntil":"1795319466500931408"})"},
      {{Kind::kTargetCame, 0, 0, "", "", since, until},
       R"("TargetCame","payload":{"NotRecordedSince":"1795319466500931407",)"
       R"("NotRecordedUntil":"1795319466500931408","Reason":""})"},
      {{Kind::kSamplesThrottled, 3, 7, "", "", since, until},
       R"("SamplesThrottled","payload":{"Cpu":3,"Count":7,"From":"1795319466500931407",)"
       R"("Until":"1795319466500931408"})"},
      {{Kind::kStacksSkipped, 0, 7, "", "", since, until},
       R"("StacksSkipped","payload":{"Count":7,"From":"1795319466500931407",)"
       R"("Until":"1795319466500931408"})"},
      {{Kind::kServiceUnknown, 0, 0, "ring:7", "it was killed", since, until},
       R"("ServiceUnknown","payload":{"Tracepoint":"ring:7","Since":"1795319466500931407",)"
       R"("Until":"1795319466500931408","Reason":"it was killed"})"},
  };
  for (const auto& [event, json] : cases) {
    row.metadata_id = Must(writer->AddMetadata(trace::AccountMetadata(event.kind)));
    row.timestamp += 10;
    Must(writer->WriteEvent(row, Must(trace::AccountPayload(event))));
    expected << "{\"name\":" << json << "}\n";
  }
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
  if (!expected.flush()) Must(absl::UnknownError("writing " + path + ".expected failed"));
}

// The fields of an event and their values.
class Fields {
 public:
  template <typename T>
  Fields& Number(const std::string& name, TypeCode code, T value) {
    fields_.push_back({name, Type::Simple(code)});
    payload_.Put(value);
    return *this;
  }
  Fields& Text(const std::string& name, std::string_view text) {
    fields_.push_back({name, Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))});
    payload_.Text(text);
    return *this;
  }
  Fields& Struct(const std::string& name, const Fields& members) {
    fields_.push_back({name, Type::Object(members.fields_)});
    for (const std::byte byte : members.payload_.bytes()) payload_.Put(byte);
    return *this;
  }
  const std::vector<nettrace::Field>& fields() const { return fields_; }
  std::span<const std::byte> payload() const { return payload_.bytes(); }

 private:
  std::vector<nettrace::Field> fields_;
  Payload payload_;
};

Fields Version(std::uint16_t version = 0x400) {
  return Fields().Number("__csver__", TypeCode::kUInt16, version);
}

Fields PartB(std::uint16_t severity, std::string_view type = "Log") {
  return Fields().Text("_typeName", type).Number("severityNumber", TypeCode::kUInt16, severity);
}

// Returns log records as the exporters of OpenTelemetry to user_events write them, and events that
// resemble log records, but are none.
std::vector<Fields> CommonSchemaCases() {
  constexpr std::string_view kTrace = "0af7651916cd43dd8448eb211c80319c";
  constexpr std::string_view kSpan = "b7ad6b7169203331";
  const Fields ids = Fields().Text("traceId", kTrace).Text("spanId", kSpan);
  const Fields cloud = Fields().Text("role", "shop").Text("roleInstance", "shop-3");
  const Fields attributes = Fields()
                                .Text("user", "größe")
                                .Number("paid", TypeCode::kBoolean8, std::uint8_t{1})
                                .Number("price", TypeCode::kDouble, 1.5)
                                .Text("thread.id", "t")
                                .Text("message", "m")
                                .Struct("s", Fields().Text("a", "b"));
  const Fields twice = Fields().Text("user", "ann").Text("user", "bob");
  return {
      Version().Struct("PartB", PartB(9)),
      Version()
          .Struct("PartB", PartB(10).Text("severityText", "INFO2").Text("body", "text\n"))
          .Struct("PartC", attributes),
      Version()
          .Struct("PartA", Fields()
                               .Text("time", "2026-11-21T10:00:00.123456789+00:00")
                               .Struct("ext_dt", ids)
                               .Struct("ext_cloud", cloud))
          .Struct("PartC", twice)
          .Struct("PartB", PartB(17)
                               .Number("body", TypeCode::kInt64, std::int64_t{-5})
                               .Number("eventId", TypeCode::kInt64, std::int64_t{33})
                               .Text("name", "PaymentFailed")),
      Version()
          .Struct("PartA", Fields()
                               .Text("name", "Log")
                               .Text("ext_dt_traceId", kTrace)
                               .Text("ext_dt_spanId", kSpan)
                               .Number("ext_dt_traceFlags", TypeCode::kByte, std::uint8_t{1}))
          .Struct("PartB", PartB(0).Text("name", "Shop.Orders").Struct("body", attributes)),
      // Events with a wrong version, severity, type or member, which are not log records.
      Version(0x401).Struct("PartB", PartB(9)),
      Version().Struct("PartB", PartB(25)),
      Version().Struct("PartB", PartB(9, "Span")),
      Version().Struct("PartB", PartB(9)).Text("more", "x"),
      Version().Struct("PartC", attributes),
      Version().Struct("PartB", PartB(9).Number("name", TypeCode::kByte, std::uint8_t{1})),
      Version().Struct("PartA", Fields().Text("ext_dt_traceId", "0af7")).Struct("PartB", PartB(9)),
  };
}

void WriteCommonSchema(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  EventRow row;
  row.capture_thread = row.thread = AddThread(writer.get(), "main", 100, 101);
  row.timestamp = kStart;
  Labels labels;
  labels.trace_id = Guid(1);
  labels.span_id = 7;
  labels.activity_id = Guid(2);
  const nettrace::LabelListId with_ids = Must(writer->InternLabels(labels));
  const std::vector<Fields> cases = CommonSchemaCases();
  std::vector<MetadataId> ids;
  for (const Fields& fields : cases) {
    EventMetadata metadata = Numbered("Log", static_cast<std::uint32_t>(ids.size() + 1));
    metadata.fields = fields.fields();
    ids.push_back(Must(writer->AddMetadata(metadata)));
  }
  for (int repetition = 0; repetition < 3; ++repetition) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      row.metadata_id = ids[i];
      row.timestamp += 10;
      if (repetition == 1) row.label_list_id = with_ids;
      Must(writer->WriteEvent(row, cases[i].payload()));
    }
    row.label_list_id = nettrace::kNoLabels;
  }
  Must(writer->WriteSequencePoint(row.timestamp));
  Must(writer->Finish());
}

void WriteEmpty(const std::string& path) {
  std::unique_ptr<Writer> writer = Create(path);
  Must(writer->WriteSequencePoint(kStart));
  Must(writer->Finish());
}

}  // namespace
}  // namespace conformance

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::cerr << "usage: generate DIR\n";
    return 2;
  }
  const std::string folder = argv[1];
  conformance::WriteTypes(folder + "/types", conformance::TypeCases());
  conformance::WriteTypes(folder + "/quirks", conformance::QuirkCases());
  conformance::WriteActivities(folder + "/activities.nettrace");
  conformance::WriteActivityPaths(folder + "/activity-paths.nettrace");
  conformance::WriteLabels(folder + "/labels.nettrace");
  conformance::WriteNames(folder + "/names.nettrace");
  conformance::Intervals(folder + "/intervals.nettrace").Write();
  conformance::WriteLost(folder + "/lost.nettrace");
  conformance::WriteSections(folder + "/sections");
  conformance::WriteAccount(folder + "/account");
  conformance::WriteCommonSchema(folder + "/common-schema.nettrace");
  conformance::WriteEmpty(folder + "/empty.nettrace");
  return 0;
}
