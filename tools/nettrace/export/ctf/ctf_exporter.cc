#include "tools/nettrace/export/ctf/ctf_exporter.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/sha1.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/nettrace/export/ctf/metadata_json.h"
#include "tools/nettrace/export/ctf/tsdl.h"

namespace tools::ctf {
namespace {

using nettrace::internal::ByteWriter;

// Latest time, in ns since 1970. Readers store times as signed 64-bit nanoseconds.
constexpr std::int64_t kMaxTime = std::numeric_limits<std::int64_t>::max() - 1;
constexpr std::size_t kMaxEnvironment = 1024;  // entries

// Returns the id of the trace, which is the same for each export of the same trace.
Uuid UuidOf(const nettrace::TraceInfo& trace) {
  ByteWriter facts;
  facts.Fixed(absl::ToUnixNanos(trace.sync_time));
  facts.Fixed(trace.sync_ticks);
  facts.Fixed(trace.ticks_per_second);
  for (const auto& [key, value] : trace.key_values) {
    facts.String(key);
    facts.String(value);
  }
  const auto hash = nettrace::internal::Sha1(facts.bytes());
  Uuid uuid;
  std::copy_n(hash.begin(), uuid.size(), uuid.begin());
  // Marks the id as version 5 of RFC 4122, which is made from a hash.
  uuid[6] = (uuid[6] & std::byte{0x0F}) | std::byte{0x50};
  uuid[8] = (uuid[8] & std::byte{0x3F}) | std::byte{0x80};
  return uuid;
}

std::optional<std::uint32_t> CpuOf(const nettrace::Event& event) {
  if (event.processor == nettrace::kNoProcessor) return std::nullopt;
  return event.processor;
}

// Returns the CPU from the name of a capture thread, which is "CPU N" in recordings of this
// project; nullopt for other names. If a capture thread has lost all its events, the name is the
// only source of its CPU.
std::optional<std::uint32_t> CpuByName(const nettrace::ThreadInfo& thread) {
  absl::string_view name = thread.name ? absl::string_view(*thread.name) : "";
  std::uint32_t cpu = 0;
  if (!absl::ConsumePrefix(&name, "CPU ") || !absl::SimpleAtoi(name, &cpu)) return std::nullopt;
  return cpu;
}

auto EnvironmentOf(const nettrace::TraceInfo& trace, Profile profile) {
  decltype(TraceClass::environment) environment;
  if (profile == Profile::kLttng) {
    // The properties that LTTng-UST 2.13 writes, for the views that Trace Compass has for LTTng.
    environment = {{"domain", "ust"},
                   {"tracer_name", "lttng-ust"},
                   {"tracer_major", std::int64_t{2}},
                   {"tracer_minor", std::int64_t{13}},
                   {"tracer_patchlevel", std::int64_t{0}}};
  } else {
    environment = {{"tracer_name", "nettrace"}};
  }
  bool has_host = false;
  for (const auto& [key, value] : trace.key_values) {
    if (environment.size() >= kMaxEnvironment) break;
    const std::string lower = absl::AsciiStrToLower(key);
    if (!has_host && (lower == "hostname" || lower == "host")) {
      environment.emplace_back("hostname", value);
      has_host = true;
    }
    environment.emplace_back(absl::StrCat("trace_", key), value);
  }
  return environment;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(), [](char c, char form) {
    return form == '-' ? c == '-' : absl::ascii_isxdigit(static_cast<unsigned char>(c));
  });
}

// Returns the clock's id, which is that of the host's boot; "" if it is unknown. Traces from one
// boot share the clock.
std::string ClockUuidOf(const nettrace::TraceInfo& trace) {
  for (const auto& [key, value] : trace.key_values) {
    if (key == nettrace::kKeyBootId && IsUuid(value)) return value;
  }
  return "";
}

ClockOffset OffsetOf(std::int64_t nanoseconds) {
  ClockOffset offset = {nanoseconds / kNanosecondsPerSecond, nanoseconds % kNanosecondsPerSecond};
  if (offset.nanoseconds < 0) {
    offset.nanoseconds += kNanosecondsPerSecond;
    --offset.seconds;
  }
  return offset;
}

// Returns the time at which the file's clock was 0, in ns since 1970. Limits it to half of the
// range that readers support, so that the times of events remain in that range.
std::int64_t ClockStart(const nettrace::Reader& reader) {
  return std::clamp(absl::ToUnixNanos(reader.TimeOf(0)), -kMaxTime / 2, kMaxTime / 2);
}

}  // namespace

CtfExporter::CtfExporter(const nettrace::Reader& reader, Version version, Profile profile,
                         output::AtomicFolder* folder)
    : version_(version),
      folder_(folder),
      encoder_(version, profile, reader.trace().pointer_size),
      clock_start_(ClockStart(reader)) {
  trace_.uuid = UuidOf(reader.trace());
  trace_.environment = EnvironmentOf(reader.trace(), profile);
  trace_.clock_uuid = ClockUuidOf(reader.trace());
  trace_.clock_start = OffsetOf(clock_start_);
  trace_.context = ContextOf(profile);
}

std::uint64_t CtfExporter::ClockTime(absl::Time time) {
  const std::int64_t nanoseconds = absl::ToUnixNanos(time);  // limited to the range of int64
  const std::int64_t known = std::clamp(nanoseconds, clock_start_, kMaxTime);
  if (known != nanoseconds) ++events_moved_;
  return static_cast<std::uint64_t>(known) - static_cast<std::uint64_t>(clock_start_);
}

absl::StatusOr<Stream*> CtfExporter::StreamAt(const Cpu& cpu, std::uint64_t time) {
  std::vector<Stream*>& streams = streams_of_cpu_[cpu];
  for (Stream* const stream : streams) {
    if (stream->last_time() <= time) return stream;
  }
  if (streams.size() == kMaxStreamsOfCpu) {
    return absl::UnimplementedError(
        "too many events are out of order for CTF; write a sorted file with 'nettrace repair', "
        "and export that");
  }
  if (streams_.size() == kMaxStreams) {
    return absl::UnimplementedError(
        absl::StrCat("the trace needs more than ", kMaxStreams,
                     " streams, the maximum of an export to CTF; each CPU needs one, and more if "
                     "its events are out of order; sort the file with 'nettrace repair', or "
                     "export fewer events with --provider or --event"));
  }
  streams_.push_back(std::make_unique<Stream>(trace_.uuid, streams_.size(), cpu, folder_));
  return streams.emplace_back(streams_.back().get());
}

absl::StatusOr<std::uint32_t> CtfExporter::ClassOf(const nettrace::EventMetadata& metadata,
                                                   bool with_fields, std::uint32_t stream_class) {
  std::optional<std::uint32_t>& id =
      classes_of_row_[&metadata].ids[stream_class][with_fields ? 1 : 0];
  if (id) return *id;
  std::vector<const std::string*>& declarations = trace_.event_classes[stream_class];
  const EventClass event_class = EventClassOf(metadata, with_fields);
  const auto [entry, added] = classes_[stream_class].try_emplace(
      version_ == Version::k1 ? TsdlOf(event_class) : JsonOf(event_class),
      static_cast<std::uint32_t>(declarations.size()));
  if (added) {
    metadata_size_ += entry->first.size();
    if (metadata_size_ > kMaxMetadata) {
      return absl::UnimplementedError(absl::StrCat(
          "too many kinds of events: their declarations have more than ", kMaxMetadata,
          " bytes, and readers of CTF would need too much memory; export fewer with --provider or "
          "--event"));
    }
    declarations.push_back(&entry->first);
  }
  id = entry->second;
  return *id;
}

absl::Status CtfExporter::PutEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  const Cpu cpu = CpuOf(event);
  cpu_of_thread_[event.capture_thread_index] = cpu;
  const std::uint64_t time = ClockTime(exported.time);
  ASSIGN_OR_RETURN(Stream* const stream, StreamAt(cpu, time));
  fields_.Clear();
  encoder_.PutContext(event, exported.process, &fields_);
  const absl::Status unfit = encoder_.PutPayload(event, &fields_);
  if (!unfit.ok()) encoder_.PutUnfitPayload(event, std::string(unfit.message()), &fields_);
  ASSIGN_OR_RETURN(const std::uint32_t event_class,
                   ClassOf(*event.metadata, unfit.ok(), stream->stream_class()));
  const std::size_t before = stream->buffered();
  absl::Status status = stream->AddEvent(time, event_class, fields_.bytes());
  buffered_ += stream->buffered() - before;  // decreases (modulo 2^64) if a packet was written
  return status;
}

absl::Status CtfExporter::OnEvent(const exporting::ExportedEvent& event) {
  RETURN_IF_ERROR(PutEvent(event));
  return buffered_ > kMaxBuffered ? FlushStreams() : absl::OkStatus();
}

absl::Status CtfExporter::OnLoss(const trace::Loss& loss) {
  const auto known = cpu_of_thread_.find(loss.capture_thread_index);
  const Cpu cpu = loss.next != nullptr            ? CpuOf(*loss.next)
                  : known != cpu_of_thread_.end() ? known->second
                                                  : CpuByName(*loss.capture_thread);
  const std::uint64_t time = ClockTime(loss.time);
  ASSIGN_OR_RETURN(Stream* const stream, StreamAt(cpu, time));
  const std::size_t before = stream->buffered();
  absl::Status status = stream->AddLoss(time, loss.count);
  buffered_ += stream->buffered() - before;
  return status;
}

void CtfExporter::OnRowsEnd(bool threads_too) {
  classes_of_row_.clear();
  if (threads_too) cpu_of_thread_.clear();
}

absl::Status CtfExporter::FlushStreams() {
  for (const std::unique_ptr<Stream>& stream : streams_) {
    RETURN_IF_ERROR(stream->Flush());
  }
  buffered_ = 0;
  return absl::OkStatus();
}

absl::Status CtfExporter::Finish() {
  if (streams_.empty()) {
    // CTF 2 requires a stream, even in a trace without events.
    ASSIGN_OR_RETURN(Stream* const stream, StreamAt(std::nullopt, 0));
    RETURN_IF_ERROR(stream->AddLoss(0, 0));
  }
  RETURN_IF_ERROR(FlushStreams());
  const std::string metadata = version_ == Version::k1 ? TsdlOf(trace_) : JsonOf(trace_);
  return folder_->Append("metadata", std::as_bytes(std::span(metadata)));
}

std::string CtfExporter::Remark() const {
  if (events_moved_ == 0) return "";
  return absl::StrCat(base::Counted(events_moved_, "timestamp"),
                      " out of the range of CTF readers ", events_moved_ == 1 ? "was" : "were",
                      " changed to the nearest time in that range");
}

}  // namespace tools::ctf
