// Prints the bytes of the worked examples in docs/format, in hexadecimal:
//
//   worked_examples eventheader    the event
//   worked_examples json           the same event as JSON
//   worked_examples nettrace       a file with that event
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "eventheader/eh.h"
#include "eventheader/json_formatter.h"
#include "eventheader/testing/recording_transport.h"
#include "eventheader/tracepoint_name.h"
#include "libnettrace-writer/core/event_ids.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/event_schema.h"

namespace {

constinit eh::Provider provider("MyCompany_MyService");
constexpr eh::Event<provider, "RequestDone", eh::Traits{.keyword = 0x1},
                    eh::Field<"path", std::string_view>, eh::Field<"status", std::int32_t>,
                    eh::Field<"ms", std::span<const std::uint16_t>>>
    request_done;

eh::RecordingTransport::Record RecordEvent() {
  eh::ActivityId id;
  for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(0x11 * i);
  const std::array<std::uint16_t, 2> ms = {3, 400};
  eh::RecordingTransport transport;
  provider.SetTransport(&transport);
  request_done.Write(eh::Activity{id}, "/a", 200, ms);
  provider.SetTransport(nullptr);
  return transport.Take().at(0);
}

// Writes the file that `nettrace record` makes of two events that equal `record`. Both come from
// one CPU, which has lost three events between them.
absl::Status WriteFile(const eh::RecordingTransport::Record& record,
                       std::unique_ptr<nettrace::Sink> sink) {
  eh::EventView event;
  const auto name = eh::ParseTracepointName(record.tracepoint);
  if (!name || eh::ParseEvent(record.event, &event) != eh::ParseError::kNone) {
    return absl::InternalError("the event cannot be parsed");
  }
  auto schema =
      collector::CompileEventSchema(event, *name, record.tracepoint, collector::ValueForms());
  if (!schema.ok()) return schema.status();
  if (!schema->program.identity()) return absl::InternalError("the payload is not copied as it is");
  schema->metadata.event_id = nettrace::internal::HashedEventId(
      schema->metadata.name, schema->metadata.fields, event.header.opcode);

  nettrace::TraceInfo info;
  info.sync_time = absl::FromCivil(absl::CivilSecond(2026, 11, 21, 10, 0, 0), absl::UTCTimeZone());
  info.sync_ticks = 1000;
  info.key_values = {{"HardwareThreadCount", "2"}, {"SystemPageSize", "4096"}};
  auto writer = nettrace::Writer::Create(std::move(sink), info);
  if (!writer.ok()) return writer.status();
  const auto metadata = (*writer)->AddMetadata(schema->metadata);
  if (!metadata.ok()) return metadata.status();
  nettrace::ThreadInfo cpu;
  cpu.name = "CPU 1";
  const auto capture_thread = (*writer)->AddThread(cpu);
  if (!capture_thread.ok()) return capture_thread.status();
  nettrace::ThreadInfo worker;
  worker.name = "worker";
  worker.process_id = 300;
  worker.thread_id = 301;
  const auto thread = (*writer)->AddThread(worker);
  if (!thread.ok()) return thread.status();
  nettrace::Labels labels;
  std::array<std::byte, 16> uuid;
  std::copy(event.activity_id.begin(), event.activity_id.end(), uuid.begin());
  labels.activity_id = nettrace::GuidFromUuid(uuid);
  const auto list = (*writer)->InternLabels(labels);
  if (!list.ok()) return list.status();

  nettrace::EventRow row{.metadata_id = *metadata,
                         .capture_thread = *capture_thread,
                         .thread = *thread,
                         .processor = 1,
                         .timestamp = 1500,
                         .label_list_id = *list};
  absl::Status status = (*writer)->WriteEvent(row, event.data);
  row.timestamp = 1700;
  status.Update((*writer)->WriteEvent(row, event.data));
  status.Update((*writer)->AddLost(*capture_thread, 3));
  row.timestamp = 2000;
  status.Update((*writer)->WriteEvent(row, event.data));
  status.Update((*writer)->WriteSequencePoint(3000));
  status.Update((*writer)->Finish());
  return status;
}

std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string Json(const eh::RecordingTransport::Record& record) {
  eh::EventView event;
  std::string text;
  if (eh::ParseEvent(record.event, &event) == eh::ParseError::kNone) {
    eh::AppendEventJson(event, provider.name(), &text);
  }
  return text;
}

std::string File(const eh::RecordingTransport::Record& record) {
  std::vector<std::byte> bytes;
  const absl::Status status =
      WriteFile(record, std::make_unique<nettrace::CallbackSink>(
                            [&bytes](std::span<const std::byte> more, std::size_t* taken) {
                              bytes.insert(bytes.end(), more.begin(), more.end());
                              *taken = more.size();
                              return absl::OkStatus();
                            }));
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? Hex(bytes) : "";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  const eh::RecordingTransport::Record record = RecordEvent();
  const std::string text = what == "eventheader" ? Hex(record.event)
                           : what == "json"      ? Json(record)
                           : what == "nettrace"  ? File(record)
                                                 : "";
  std::printf("%s\n", text.c_str());
  return text.empty() ? 1 : 0;
}
