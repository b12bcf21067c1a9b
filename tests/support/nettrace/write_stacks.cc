// Writes a trace of samples of CPU time with stacks: `write_stacks FILE SAMPLES DIFFERENT`. The
// stacks of samples repeat after DIFFERENT samples. The traced program has 1,000 functions, and the
// trace names every second one.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"

namespace {

constexpr std::uint64_t kBase = 0x555500000000;
constexpr std::uint64_t kFunctions = 1000;
constexpr std::uint64_t kFunctionSize = 64;             // bytes
constexpr std::uint64_t kEventsOfInterval = 50'000;     // less than WriterOptions::max_stacks
constexpr std::uint64_t kTicksBetweenSamples = 10'000;  // ns

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "write_stacks: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

nettrace::Field Number(const char* name) {
  return {name, nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)};
}
nettrace::Field Text(const char* name) {
  return {name, nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kUtf8CodeUnit))};
}

nettrace::EventMetadata Kind(const char* provider, std::uint32_t id, const char* name,
                             std::vector<nettrace::Field> fields) {
  nettrace::EventMetadata metadata;
  metadata.provider = provider;
  metadata.event_id = id;
  metadata.name = name;
  metadata.opcode = 0;
  metadata.fields = std::move(fields);
  return metadata;
}

// Returns the address of a call in the function.
std::uint64_t AddressIn(std::uint64_t function) {
  return kBase + function % kFunctions * kFunctionSize + 32;
}

void WriteCode(nettrace::Writer* writer, nettrace::EventRow row) {
  const nettrace::EventMetadata mapping =
      Kind("Universal.System", 3, "ProcessMapping",
           {Number("Id"), Number("StartAddress"), Number("EndAddress"), Number("FileOffset"),
            Text("FileName"), Number("MetadataId")});
  nettrace::PayloadEncoder payload(&mapping.fields);
  row.metadata_id = *writer->AddMetadata(mapping);
  payload.UInt(1).UInt(kBase).UInt(kBase + kFunctions * kFunctionSize - 1).UInt(0);
  Require(writer->WriteEvent(row, *payload.Utf8("/opt/shop/shop").UInt(0).Finish()));
  const nettrace::EventMetadata symbol =
      Kind("Universal.System", 4, "ProcessSymbol",
           {Number("Id"), Number("MappingId"), Number("StartAddress"), Number("EndAddress"),
            Text("Name")});
  row.metadata_id = *writer->AddMetadata(symbol);
  nettrace::PayloadEncoder function(&symbol.fields);
  for (std::uint64_t i = 0; i < kFunctions; i += 2) {
    const std::uint64_t first = kBase + i * kFunctionSize;
    function.UInt(i + 1).UInt(1).UInt(first).UInt(first + kFunctionSize - 1);
    Require(writer->WriteEvent(row, *function.Utf8(absl::StrCat("Shop::Step", i)).Finish()));
  }
}

void WriteSamples(std::uint64_t samples, std::uint64_t different, nettrace::Writer* writer,
                  nettrace::EventRow row) {
  const nettrace::EventMetadata cpu = Kind("Universal.Events", 2, "cpu", {Number("Value")});
  row.metadata_id = *writer->AddMetadata(cpu);
  nettrace::PayloadEncoder payload(&cpu.fields);
  const auto one = *payload.UInt(1).Finish();
  const std::vector<std::byte> value(one.begin(), one.end());
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t number = i % different;
    // The functions near the root change seldom, as in programs.
    const std::array<std::uint64_t, 8> stack = {AddressIn(number),
                                                AddressIn(number / 1'000),
                                                AddressIn(number / 1'000'000),
                                                AddressIn(1),
                                                AddressIn(2),
                                                AddressIn(3),
                                                AddressIn(4),
                                                AddressIn(5)};
    row.stack_id = *writer->InternStack(stack);
    row.timestamp += kTicksBetweenSamples;
    Require(writer->WriteEvent(row, value));
    if (i % kEventsOfInterval == kEventsOfInterval - 1) {
      Require(writer->WriteSequencePoint(row.timestamp));
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::uint64_t samples = 0;
  std::uint64_t different = 0;
  if (count != 4 || !absl::SimpleAtoi(arguments[2], &samples) ||
      !absl::SimpleAtoi(arguments[3], &different) || different == 0) {
    std::fprintf(stderr, "usage: write_stacks FILE SAMPLES DIFFERENT\n");
    return 2;
  }
  auto sink = nettrace::FdSink::Create(arguments[1]);
  Require(sink.status());
  nettrace::TraceInfo info;
  info.sync_time = absl::FromUnixSeconds(1'700'000'000);
  info.ticks_per_second = 1'000'000'000;
  auto writer = nettrace::Writer::Create(*std::move(sink), info);
  Require(writer.status());
  nettrace::ThreadInfo thread;
  thread.process_id = thread.thread_id = 42;
  nettrace::EventRow row;
  row.thread = row.capture_thread = *(*writer)->AddThread(thread);
  row.timestamp = 1;
  WriteCode(writer->get(), row);
  WriteSamples(samples, different, writer->get(), row);
  Require((*writer)->Finish());
  return 0;
}
