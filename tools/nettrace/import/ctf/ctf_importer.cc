#include "tools/nettrace/import/ctf/ctf_importer.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>
#include <span>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/base/guid_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/nettrace/import/ctf/metadata_text.h"
#include "tools/nettrace/import/ctf/tsdl_parser.h"
#include "tools/trace/tracepoint_keys.h"

namespace tools::importing::ctf {
namespace {

constexpr std::int64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr std::size_t kMaxKeyValues = 1024;
constexpr std::size_t kMaxText = 4096;       // bytes of a thread's name or a key's value
constexpr std::size_t kMaxNotes = 16 << 10;  // bytes of the notes of a metadata row; see NotesOf
constexpr std::size_t kMaxNoteNames = 256;
// The text that `nettrace export` writes in place of a missing text.
constexpr std::string_view kNone = "-";

std::optional<nettrace::Guid> GuidOf(const Captured& captured, Role role) {
  if (!captured.Has(role)) return std::nullopt;
  return base::ParseGuid(captured.Text(role));
}

nettrace::Labels LabelsOf(const Captured& captured) {
  nettrace::Labels labels;
  labels.activity_id = GuidOf(captured, Role::kActivity);
  labels.related_activity_id = GuidOf(captured, Role::kRelatedActivity);
  if (captured.Has(Role::kTraceId))
    labels.trace_id = base::ParseHex128(captured.Text(Role::kTraceId));
  std::uint64_t span = 0;
  if (captured.Has(Role::kSpanId) && captured.Text(Role::kSpanId).size() == 16 &&
      absl::SimpleHexAtoi(captured.Text(Role::kSpanId), &span)) {
    labels.span_id = span;
  }
  labels.strings = captured.labels;
  return labels;
}

std::optional<std::uint64_t> IdOf(const Captured& captured, Role role) {
  const auto id = static_cast<std::int64_t>(captured.Number(role));
  if (!captured.Has(role) || id < 0) return std::nullopt;
  return static_cast<std::uint64_t>(id);
}

std::optional<std::string> NameOf(const Captured& captured, Role role) {
  if (!captured.Has(role)) return std::nullopt;
  const std::string& text = captured.Text(role);
  if (text == kNone || text.empty()) return std::nullopt;
  return text.substr(0, kMaxText);
}

// Lowest value of the marks that perf inserts between the frames of the kernel and of the process.
// All higher values are also marks and not addresses.
constexpr std::uint64_t kPerfMarks = PERF_CONTEXT_MAX;

// Returns the notes of a metadata row: key-value pairs that state whether to show the numbers in a
// field in hexadecimal or by the names of an enum.
nettrace::KeyValues NotesOf(const Node& fields) {
  nettrace::KeyValues notes;
  std::size_t size = 0;
  for (const Node& field : fields.children) {
    if (field.is_hidden || field.is_bool || !trace::IsNoteName(field.name)) continue;
    trace::TracepointNote note;
    note.hex = field.is_hex;
    if (field.kind == Kind::kEnum) {
      trace::SymbolPiece call;
      call.kind = trace::SymbolPiece::Kind::kCall;
      call.text = "symbol";
      trace::SymbolPiece& itself = call.arguments.emplace_back();
      itself.kind = trace::SymbolPiece::Kind::kField;
      itself.text = field.name;
      for (const EnumRange& range : *field.ranges) {
        if (range.low != range.high || call.names.size() == kMaxNoteNames) continue;
        call.names.emplace_back(range.low, range.name);
      }
      if (!call.names.empty()) note.pieces.push_back(std::move(call));
    }
    if (note.empty()) continue;
    std::string text = trace::FormatTracepointNote(note);
    size += text.size() + field.name.size();
    if (size > kMaxNotes) break;
    notes.emplace_back(absl::StrCat(trace::kKeyTracepointField, field.name), std::move(text));
  }
  return notes;
}

// Adds the entries of the trace's environment to the keys of the Trace block. If `nettrace export`
// wrote the trace, adds only the entries that were keys of the exported file.
void AddKeyValues(const Metadata& metadata, bool is_ours, nettrace::KeyValues* key_values) {
  for (const auto& [name, value] : metadata.environment) {
    absl::string_view key = name;
    if (is_ours && !absl::ConsumePrefix(&key, "trace_")) continue;
    if (key_values->size() == kMaxKeyValues) return;
    const bool is_known = std::any_of(key_values->begin(), key_values->end(),
                                      [&](const auto& entry) { return entry.first == key; });
    if (!is_known) key_values->emplace_back(std::string(key), value.substr(0, kMaxText));
  }
}

void AppendNumber(std::uint64_t number, std::string* key) {
  key->append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename T>
std::optional<T> UnlessZero(std::uint64_t number) {
  return number == 0 ? std::nullopt : std::optional(static_cast<T>(number));
}

}  // namespace

absl::Status CtfImporter::AddTrace(std::string_view metadata, std::vector<NamedFile> streams) {
  ASSIGN_OR_RETURN(const std::string text, MetadataText(metadata));
  ASSIGN_OR_RETURN(Metadata parsed, ParseTsdl(text));
  auto trace = std::make_unique<Trace>();
  trace->metadata = std::move(parsed);
  ASSIGN_OR_RETURN(Layout layout, MakeLayout(trace->metadata));
  trace->layout = std::move(layout);
  trace->decoder = std::make_unique<Decoder>(trace->layout.is_ours, trace->layout.event_slots);
  if (streams_.size() + streams.size() > kMaxStreams) {
    return absl::InvalidArgumentError(
        absl::StrCat("with the streams of this trace, there are more than ", kMaxStreams,
                     " streams; import the traces one by one, and use 'nettrace merge'"));
  }
  for (NamedFile& stream : streams) {
    streams_.push_back(
        {static_cast<std::uint32_t>(traces_.size()),
         std::make_unique<StreamReader>(std::move(stream.name), std::move(stream.file),
                                        &trace->metadata, &trace->layout, trace->decoder.get())});
  }
  traces_.push_back(std::move(trace));
  return absl::OkStatus();
}

void CtfImporter::OnDamage(const absl::Status& status) {
  if (++damage_count_ <= kMaxDamages) damages_.push_back(status);
}

bool CtfImporter::Next(Stream* stream) {
  const std::uint64_t before = stream->reader->offset();
  const bool has_event =
      stream->reader->Next([this](const absl::Status& status) { OnDamage(status); });
  bytes_read_ += stream->reader->offset() - before;
  return has_event;
}

std::uint64_t CtfImporter::packets_missing() const {
  std::uint64_t count = 0;
  for (const Stream& stream : streams_) count += stream.reader->packets_missing();
  return count;
}

std::uint64_t CtfImporter::moved() const {
  std::uint64_t count = 0;
  for (const Stream& stream : streams_) count += stream.reader->moved();
  return count;
}

absl::Status CtfImporter::Create(std::unique_ptr<nettrace::Sink> sink, std::int64_t first_time) {
  // Rounds down to whole milliseconds, because a NetTrace file stores the sync time in
  // milliseconds.
  const std::int64_t remainder =
      (first_time % kNanosecondsPerMillisecond + kNanosecondsPerMillisecond) %
      kNanosecondsPerMillisecond;
  const bool fits = first_time >= std::numeric_limits<std::int64_t>::min() + remainder;
  start_ = fits ? first_time - remainder : first_time;
  nettrace::TraceInfo info;
  info.sync_time = absl::FromUnixNanos(start_);
  for (const auto& trace : traces_) {
    AddKeyValues(trace->metadata, trace->layout.is_ours, &info.key_values);
  }
  ASSIGN_OR_RETURN(auto output, TraceOutput::Create(std::move(sink), info, EventOrder::kByTime));
  output_ = std::move(output);
  return absl::OkStatus();
}

std::uint64_t CtfImporter::TicksOf(std::int64_t time) const {
  const std::uint64_t ticks = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(start_);
  return std::min(ticks, nettrace::internal::traceevent::kMaxEventTimestamp);
}

absl::Status CtfImporter::CheckNow() {
  constexpr std::uint64_t kSteps = 1024;
  if (check_ == nullptr || steps_++ % kSteps != 0) return absl::OkStatus();
  return check_(std::exchange(bytes_read_, 0));
}

absl::Status CtfImporter::Run(std::unique_ptr<nettrace::Sink> sink) {
  using Entry = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    RETURN_IF_ERROR(CheckNow());
    if (Next(&streams_[i])) queue.emplace(streams_[i].reader->time(), i);
  }
  absl::Status status = Create(std::move(sink), queue.empty() ? 0 : queue.top().first);
  if (!status.ok()) return status;
  while (!queue.empty()) {
    if (status = CheckNow(); !status.ok()) return status;
    Stream* const stream = &streams_[queue.top().second];
    const std::size_t place = queue.top().second;
    queue.pop();
    if (status = WriteLoss(stream); !status.ok()) return status;
    if (status = WriteEvent(stream); !status.ok()) return status;
    if (Next(stream)) queue.emplace(stream->reader->time(), place);
  }
  for (Stream& stream : streams_) {
    if (status = WriteLoss(&stream); !status.ok()) return status;
  }
  return output_->Finish();
}

namespace {

// Returns the capture thread of the events of a stream. It stands for the CPU of the stream, or for
// the stream if it has no CPU.
nettrace::ThreadInfo CaptureOf(const StreamReader& stream) {
  nettrace::ThreadInfo capture;
  capture.name = stream.cpu() ? absl::StrCat("CPU ", *stream.cpu())
                              : base::Printable(stream.name()).substr(0, kMaxText);
  return capture;
}

}  // namespace

absl::Status CtfImporter::WriteLoss(Stream* stream) {
  const std::uint64_t lost = stream->reader->TakeLost();
  return lost == 0 ? absl::OkStatus() : output_->AddLost(CaptureOf(*stream->reader), lost);
}

void CtfImporter::SetKey(const Stream& stream) {
  const Decoder& decoder = *traces_[stream.trace]->decoder;
  const Captured& captured = decoder.captured();
  key_.clear();
  AppendNumber(std::uint64_t{stream.trace} << 32 | stream.reader->event_class().number, &key_);
  for (const Role role : {Role::kLevel, Role::kOpcode, Role::kVersion, Role::kKeywords}) {
    AppendNumber(captured.Number(role), &key_);
  }
  for (const std::uint32_t choice : decoder.choices()) AppendNumber(choice, &key_);
}

nettrace::EventMetadata CtfImporter::MakeRow(const Stream& stream) const {
  Decoder& decoder = *traces_[stream.trace]->decoder;
  const Captured& captured = decoder.captured();
  const EventClass& event = stream.reader->event_class();
  nettrace::EventMetadata row;
  row.provider = event.provider;
  row.name = event.name;
  row.level = event.level;
  if (captured.Has(Role::kLevel) && (event.level || captured.Number(Role::kLevel) != 0)) {
    row.level = static_cast<std::uint8_t>(captured.Number(Role::kLevel));
  }
  row.opcode = UnlessZero<std::uint8_t>(captured.Number(Role::kOpcode));
  row.version = UnlessZero<std::uint8_t>(captured.Number(Role::kVersion));
  row.keywords = UnlessZero<std::uint64_t>(captured.Number(Role::kKeywords));
  std::size_t next = 0;
  std::vector<nettrace::Field> contexts;
  for (const std::optional<Node>* const context :
       {&stream.reader->stream_class().event_context, &event.context}) {
    if (!*context) continue;
    for (nettrace::Field& field : FieldsOf(**context, decoder.choices(), &next)) {
      field.name = absl::StrCat("context.", field.name);
      contexts.push_back(std::move(field));
    }
  }
  if (event.fields) {
    row.fields = FieldsOf(*event.fields, decoder.choices(), &next);
    row.key_values = NotesOf(*event.fields);
  }
  std::move(contexts.begin(), contexts.end(), std::back_inserter(row.fields));
  return row;
}

absl::Status CtfImporter::WriteEvent(Stream* stream) {
  StreamReader& reader = *stream->reader;
  Decoder& decoder = *traces_[stream->trace]->decoder;
  context_.Clear();
  fields_.Clear();
  if (!reader.ReadEvent(&context_, &fields_,
                        [this](const absl::Status& status) { OnDamage(status); })) {
    return absl::OkStatus();
  }
  Captured& captured = decoder.captured();
  std::erase_if(captured.frames, [](std::uint64_t frame) { return frame >= kPerfMarks; });
  nettrace::ThreadInfo thread;
  thread.process_id = IdOf(captured, Role::kPid);
  thread.thread_id = IdOf(captured, Role::kTid);
  thread.name = NameOf(captured, Role::kThread);
  const nettrace::ThreadInfo capture = CaptureOf(reader);
  const nettrace::Labels labels = LabelsOf(captured);
  const std::uint64_t timestamp = TicksOf(reader.time());
  fields_.Bytes(context_.bytes());
  if (!decoder.unfit().empty()) return output_->Refuse(capture, decoder.unfit());
  const std::optional<std::string> process = NameOf(captured, Role::kProcess);
  if (process && thread.process_id &&
      reader.event_class().provider == nettrace::internal::traceevent::kUniversalSystem) {
    output_->NoteProcess(*thread.process_id, *process);
  } else if (process && thread.process_id) {
    RETURN_IF_ERROR(output_->NameProcess(*thread.process_id, *process, timestamp));
  }
  std::uint32_t processor = reader.cpu().value_or(nettrace::kNoProcessor);
  if (captured.Has(Role::kCpu)) processor = static_cast<std::uint32_t>(captured.Number(Role::kCpu));
  SetKey(*stream);
  const auto make_row = [&] { return MakeRow(*stream); };
  return output_->Write({.row_key = key_,
                         .make_row = make_row,
                         .thread = &thread,
                         .capture = &capture,
                         .processor = processor,
                         .timestamp = timestamp,
                         .labels = &labels,
                         .stack = captured.frames,
                         .payload = fields_.bytes()});
}

}  // namespace tools::importing::ctf
