#include "tools/collector/convert/sample_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/convert/trace_context.h"
#include "tools/common/eventheader_keys.h"
#include "tools/common/tracepoint_keys.h"

namespace collector {
namespace {

using nettrace::internal::traceevent::kMaxPayloadSize;

// The name of the first field of EventHeader tracepoints, after "u8 ".
constexpr std::string_view kEventHeaderFirstField = [] {
  std::string_view fields = eh::kTracepointFields;
  fields.remove_prefix(fields.find(' ') + 1);
  return fields.substr(0, fields.find(';'));
}();

constexpr char kTruncated[] = "the payload ends within a field";
constexpr char kTooLong[] = "the payload is longer than readers take";
constexpr char kTooManySchemas[] = "the provider has too many schemas";

nettrace::Guid ToGuid(std::span<const std::byte> uuid) {
  std::array<std::byte, 16> bytes;
  std::copy(uuid.begin(), uuid.end(), bytes.begin());
  return nettrace::GuidFromUuid(bytes);
}

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void AppendCounted(std::span<const std::byte> bytes, std::vector<std::byte>* out) {
  out->push_back(static_cast<std::byte>(bytes.size() & 0xFF));
  out->push_back(static_cast<std::byte>(bytes.size() >> 8));
  out->insert(out->end(), bytes.begin(), bytes.end());
}

// A hash of `number` and the first and last bytes of `text`, for tables of what was used lately.
std::size_t QuickHash(std::uint64_t number, std::string_view text) {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  if (text.size() >= sizeof first) {
    std::memcpy(&first, text.data(), sizeof first);
    std::memcpy(&last, text.data() + text.size() - sizeof last, sizeof last);
  }
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
  return ((first ^ std::rotl(last, 7) ^ number ^ text.size()) * kOdd) >> 48;
}

}  // namespace

std::size_t SampleWriter::SchemaHash::operator()(const SchemaKey& key) const {
  return absl::HashOf(key.header, absl::string_view(key.metadata.data(), key.metadata.size()));
}

SampleWriter::SampleWriter(nettrace::Writer* writer, TaskTracker* tasks,
                           const std::vector<int>& cpus)
    : writer_(writer), tasks_(tasks), processes_(writer, tasks), activities_(kRecentActivities) {
  for (int number : cpus) cpus_.push_back(Cpu{number});
}

absl::Status SampleWriter::AddTracepoint(int id, const std::string& system,
                                         const std::string& event, const std::string& format) {
  const auto index = static_cast<std::size_t>(id);
  if (index < tracepoints_.size() && tracepoints_[index] != nullptr) return absl::OkStatus();
  absl::StatusOr<TracepointSchema> layout = ParseTracepointFormat(system, event, id, format);
  if (!layout.ok()) return layout.status();

  auto tracepoint = std::make_unique<Tracepoint>();
  tracepoint->name = event;
  tracepoint->layout = *std::move(layout);
  tracepoint->provider = system;
  const auto parts = eh::ParseTracepointName(tracepoint->name);
  if (parts && tracepoint->layout.first_field == kEventHeaderFirstField) {
    tracepoint->is_event_header = true;
    tracepoint->recent.resize(kRecentSchemas);
    tracepoint->parts = *parts;
    tracepoint->provider = std::string(parts->provider);
    tracepoint->share = &providers_[absl::AsciiStrToUpper(tracepoint->provider)];
  } else {
    absl::StatusOr<nettrace::MetadataId> row =
        AddRow(tracepoint->layout.MetadataOf(TextForm::kBytes));
    if (!row.ok()) return row.status();
    tracepoint->metadata_id = *row;
    if (!tracepoint->layout.kernel_addresses.empty() && !kernel_symbols_) {
      kernel_symbols_ = KernelSymbols::Load();
    }
  }
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  tracepoints_[index] = std::move(tracepoint);
  return absl::OkStatus();
}

absl::StatusOr<nettrace::MetadataId> SampleWriter::AddRow(nettrace::EventMetadata metadata) {
  using nettrace::internal::EventIdTable;
  const bool has_own_id =
      metadata.event_id >= 1 && metadata.event_id <= nettrace::internal::kMaxGivenEventId;
  if (!has_own_id || event_ids_.Find(metadata) != EventIdTable::Clash::kNone) {
    const std::optional<std::uint32_t> id = event_ids_.FreeId(metadata);
    if (!id) return absl::InvalidArgumentError("no event id is left");
    metadata.event_id = *id;
  }
  absl::StatusOr<nettrace::MetadataId> row = writer_->AddMetadata(metadata);
  if (row.ok()) event_ids_.Add(metadata);
  return row;
}

absl::Status SampleWriter::AddCaptureThread(Cpu* cpu) {
  nettrace::ThreadInfo info;
  info.name = absl::StrCat("CPU ", cpu->number);
  absl::StatusOr<nettrace::ThreadIndex> index = writer_->AddThread(info);
  if (index.ok()) cpu->capture_thread = *index;
  return index.status();
}

absl::Status SampleWriter::Write(std::size_t cpu_index, const SampleRecord& sample,
                                 std::uint64_t timestamp) {
  Cpu& cpu = cpus_[cpu_index];
  std::uint16_t id = 0;
  Tracepoint* tracepoint = nullptr;
  if (sample.raw.size() >= sizeof id) {
    std::memcpy(&id, sample.raw.data(), sizeof id);
    if (id < tracepoints_.size()) tracepoint = tracepoints_[id].get();
  }
  // The kernel writes the id; a sample without a known one cannot be named, only counted.
  if (tracepoint == nullptr) return AddLost(cpu_index, 1);

  if (std::exchange(labelled_, false)) labels_ = nettrace::Labels();
  nettrace::EventRow row;
  row.timestamp = std::max({timestamp, cpu.last_timestamp, interval_start_});
  if (row.timestamp != timestamp) {
    ++stats_.late;
    SetLabels().integers.emplace_back(kLateLabel, static_cast<std::int64_t>(timestamp));
  }
  cpu.last_timestamp = row.timestamp;
  row.processor = static_cast<std::uint32_t>(cpu.number);
  if (cpu.capture_thread == nettrace::kNoThread) {
    COLLECTOR_RETURN_IF_ERROR(AddCaptureThread(&cpu));
  }
  row.capture_thread = cpu.capture_thread;
  absl::StatusOr<nettrace::ThreadIndex> thread =
      sample.tid == kExitedTask
          ? tasks_->ExitedRow(sample.pid, tracepoint->layout.ReadTid(sample.raw), timestamp,
                              writer_)
          : tasks_->Row(sample.pid, sample.tid, timestamp, writer_);
  if (!thread.ok()) return thread.status();
  row.thread = *thread;

  if (!tracepoint->is_event_header) return WriteKernelEvent(tracepoint, sample.raw, &row);
  const std::size_t offset = std::min(tracepoint->layout.payload_offset, sample.raw.size());
  return WriteEventHeader(tracepoint, sample.raw.subspan(offset), &row);
}

absl::Status SampleWriter::WriteKernelEvent(Tracepoint* tracepoint,
                                            std::span<const std::byte> record,
                                            nettrace::EventRow* row) {
  const TracepointSchema& layout = tracepoint->layout;
  if (!layout.kernel_addresses.empty()) {
    COLLECTOR_RETURN_IF_ERROR(AddKernelSymbols(*tracepoint, record, row));
  }
  std::span<const std::byte> payload;
  payload_.clear();
  const RecordProgram::Outcome outcome =
      layout.program.Run(record, TextForm::kBytes, &payload_, &payload);
  if (!outcome.fits) {
    return WriteUndecoded(tracepoint, record, "the record does not match its format", row);
  }
  row->metadata_id = tracepoint->metadata_id;
  if (!outcome.non_ascii) return Emit(row, payload);

  std::span<const std::byte> utf16;
  utf16_payload_.clear();
  // Text takes up to twice the room then, and may not fit.
  if (!layout.program.Run(record, TextForm::kUtf16, &utf16_payload_, &utf16).fits) {
    return Emit(row, payload);
  }
  if (tracepoint->utf16_id == nettrace::kNoMetadata) {
    absl::StatusOr<nettrace::MetadataId> added = AddRow(layout.MetadataOf(TextForm::kUtf16));
    if (!added.ok()) return added.status();
    tracepoint->utf16_id = *added;
  }
  row->metadata_id = tracepoint->utf16_id;
  return Emit(row, utf16);
}

absl::Status SampleWriter::AddKernelSymbols(const Tracepoint& tracepoint,
                                            std::span<const std::byte> record,
                                            nettrace::EventRow* row) {
  if (!kernel_symbols_ || kernel_symbols_->empty()) return absl::OkStatus();
  KernelAddresses key;
  key.tracepoint = &tracepoint;
  const auto& fields = tracepoint.layout.kernel_addresses;
  const std::size_t count = std::min(fields.size(), KernelAddresses::kMax);
  for (std::size_t i = 0; i < count; ++i) {
    if (fields[i].offset + fields[i].size > record.size()) return absl::OkStatus();
    if (fields[i].size == sizeof(std::uint64_t)) {
      std::memcpy(&key.addresses[i], record.data() + fields[i].offset, sizeof(std::uint64_t));
    } else {
      std::uint32_t address = 0;
      std::memcpy(&address, record.data() + fields[i].offset, sizeof address);
      key.addresses[i] = address;
    }
  }
  const auto found = labels_.empty() ? symbol_lists_.find(key) : symbol_lists_.end();
  if (found != symbol_lists_.end()) {
    row->label_list_id = found->second;
    return absl::OkStatus();
  }
  const bool alone = labels_.empty();
  for (std::size_t i = 0; i < count; ++i) {
    std::string symbol = kernel_symbols_->Find(key.addresses[i], fields[i].with_offset);
    if (symbol.empty()) continue;
    SetLabels().strings.emplace_back(absl::StrCat(tools::kSymbolLabel, fields[i].field),
                                     std::move(symbol));
  }
  if (!alone) return absl::OkStatus();
  nettrace::LabelListId list = nettrace::kNoLabels;
  if (!labels_.empty()) {
    absl::StatusOr<nettrace::LabelListId> interned = writer_->InternLabels(labels_);
    if (!interned.ok()) return interned.status();
    list = *interned;
    ++labels_in_interval_;
    labels_ = nettrace::Labels();
  }
  if (symbol_lists_.size() >= kMaxSymbolLists) symbol_lists_.clear();
  symbol_lists_.emplace(key, list);
  row->label_list_id = list;
  return absl::OkStatus();
}

absl::Status SampleWriter::LabelActivity(const eh::EventView& event, nettrace::EventRow* row) {
  const auto set_ids = [&event](nettrace::Labels* labels) {
    labels->activity_id = ToGuid(event.activity_id);
    if (!event.related_id.empty()) labels->related_activity_id = ToGuid(event.related_id);
  };
  if (labelled_) {
    set_ids(&labels_);
    return absl::OkStatus();
  }
  // One activity has many events, in turns with those of others.
  const std::span<const std::byte> ids(event.activity_id.data(),
                                       event.activity_id.size() + event.related_id.size());
  ActivityLabels& recent = activities_[QuickHash(0, AsText(ids)) % kRecentActivities];
  if (recent.list == nettrace::kNoLabels || recent.interval_start != interval_start_ ||
      recent.size != ids.size() || std::memcmp(recent.ids.data(), ids.data(), ids.size()) != 0) {
    nettrace::Labels labels;
    set_ids(&labels);
    absl::StatusOr<nettrace::LabelListId> list = writer_->InternLabels(labels);
    if (!list.ok()) return list.status();
    ++labels_in_interval_;
    std::copy(ids.begin(), ids.end(), recent.ids.begin());
    recent.size = ids.size();
    recent.interval_start = interval_start_;
    recent.list = *list;
  }
  row->label_list_id = recent.list;
  return absl::OkStatus();
}

absl::Status SampleWriter::WriteEventHeader(Tracepoint* tracepoint,
                                            std::span<const std::byte> bytes,
                                            nettrace::EventRow* row) {
  eh::EventView event;
  if (const auto error = eh::ParseEvent(bytes, &event); error != eh::ParseError::kNone) {
    return WriteUndecoded(tracepoint, bytes, eh::ParseErrorText(error), row);
  }
  if (event.header.level != tracepoint->parts.level) SetLabels().level = event.header.level;

  const SchemaKey key = KeyOf(event);
  const char* reason = nullptr;
  Schema** const recent = &tracepoint->recent[QuickHash(key.header, key.metadata) % kRecentSchemas];
  Schema* schema = *recent;
  // A comparison with the schema that was used last costs less than a hash of all bytes.
  if (schema == nullptr || schema->key != key) {
    COLLECTOR_RETURN_IF_ERROR(FindSchema(tracepoint, event, key, &schema, &reason));
    if (schema != nullptr) *recent = schema;
  }
  if (schema != nullptr && schema->trace_context) LiftTraceContext(event, &SetLabels());
  if (!event.activity_id.empty()) COLLECTOR_RETURN_IF_ERROR(LabelActivity(event, row));
  if (schema == nullptr) return WriteUndecoded(tracepoint, bytes, reason, row);

  PayloadProgram::Outcome outcome;
  if (!schema->bytes.program.RunQuickly(event.data, &outcome)) {
    return WriteConverted(tracepoint, bytes, event, schema, row);
  }
  if (outcome.result == PayloadProgram::Result::kTruncated) {
    return WriteUndecoded(tracepoint, bytes, kTruncated, row);
  }
  if (outcome.consumed > kMaxPayloadSize) return WriteUndecoded(tracepoint, bytes, kTooLong, row);
  row->metadata_id = schema->bytes.metadata_id;
  return Emit(row, event.data.first(outcome.consumed));
}

absl::Status SampleWriter::WriteConverted(Tracepoint* tracepoint, std::span<const std::byte> bytes,
                                          const eh::EventView& event, Schema* schema,
                                          nettrace::EventRow* row) {
  const PayloadProgram& program = schema->bytes.program;
  payload_.clear();
  seen_.assign(schema->nullable_fields, 0);
  const bool identity = program.identity();
  const bool converts = !identity && seen_.empty();
  const PayloadProgram::Outcome outcome =
      program.Run(event.data, converts ? &payload_ : nullptr, seen_);
  if (outcome.result == PayloadProgram::Result::kTruncated) {
    return WriteUndecoded(tracepoint, bytes, kTruncated, row);
  }
  if (!outcome.non_ascii && seen_.empty()) {
    const std::span<const std::byte> payload =
        identity ? event.data.first(outcome.consumed) : std::span<const std::byte>(payload_);
    if (payload.size() > kMaxPayloadSize) return WriteUndecoded(tracepoint, bytes, kTooLong, row);
    row->metadata_id = schema->bytes.metadata_id;
    return Emit(row, payload);
  }
  absl::StatusOr<Form*> form =
      FindForm(*tracepoint, event, outcome.non_ascii ? TextForm::kUtf16 : TextForm::kBytes, schema);
  if (!form.ok()) return form.status();
  if (*form == nullptr) return WriteUndecoded(tracepoint, bytes, kTooManySchemas, row);
  payload_.clear();
  (*form)->program.Run(event.data, &payload_);
  // Text takes up to twice the room as UTF-16.
  if (payload_.size() > kMaxPayloadSize) return WriteUndecoded(tracepoint, bytes, kTooLong, row);
  row->metadata_id = (*form)->metadata_id;
  return Emit(row, payload_);
}

SampleWriter::SchemaKey SampleWriter::KeyOf(const eh::EventView& event) {
  SchemaKey key;
  key.header = std::uint64_t{event.header.opcode} << 48 | std::uint64_t{event.header.tag} << 32 |
               std::uint64_t{event.header.id} << 16 | std::uint64_t{event.header.version} << 8 |
               event.header.flags;
  key.metadata = AsText(event.metadata);
  return key;
}

absl::Status SampleWriter::FindSchema(Tracepoint* tracepoint, const eh::EventView& event,
                                      const SchemaKey& key, Schema** schema, const char** reason) {
  *schema = nullptr;
  *reason = "the metadata is malformed";
  if (const auto found = tracepoint->schemas.find(key); found != tracepoint->schemas.end()) {
    if (found->second->usable) *schema = found->second.get();
    return absl::OkStatus();
  }
  if (event.metadata.empty()) {
    *reason = "the event carries no metadata";
    return absl::OkStatus();
  }
  if (!TakeShare(*tracepoint, key.metadata.size())) {
    *reason = kTooManySchemas;
    return absl::OkStatus();
  }
  auto made = std::make_unique<Schema>();
  made->metadata = std::string(key.metadata);
  made->key = {key.header, made->metadata};
  COLLECTOR_RETURN_IF_ERROR(MakeSchema(*tracepoint, event, made.get()));
  if (made->usable) *schema = made.get();
  tracepoint->schemas.emplace(made->key, std::move(made));
  return absl::OkStatus();
}

absl::Status SampleWriter::MakeSchema(const Tracepoint& tracepoint, const eh::EventView& event,
                                      Schema* schema) {
  schema->trace_context = NamesTraceContext(event);
  absl::StatusOr<EventSchema> compiled =
      CompileEventSchema(event, tracepoint.parts, tracepoint.name, ValueForms());
  schema->usable = compiled.ok();
  if (!compiled.ok()) return absl::OkStatus();
  schema->nullable_fields = compiled->nullable_fields;
  if (schema->nullable_fields != 0) {
    schema->bytes.program = std::move(compiled->program);
    return absl::OkStatus();
  }
  COLLECTOR_RETURN_IF_ERROR(AddForm(tracepoint, event, ValueForms(), &schema->bytes));
  schema->usable = schema->bytes.usable;
  return absl::OkStatus();
}

absl::StatusOr<SampleWriter::Form*> SampleWriter::FindForm(const Tracepoint& tracepoint,
                                                           const eh::EventView& event,
                                                           TextForm text, Schema* schema) {
  Form* form = schema->nullable_fields == 0 ? &schema->utf16
                                            : FindNullableForm(tracepoint, event, text, schema);
  if (form != nullptr && form->usable && form->metadata_id == nettrace::kNoMetadata) {
    const ValueForms forms{text, std::string_view(seen_).substr(0, schema->nullable_fields)};
    COLLECTOR_RETURN_IF_ERROR(AddForm(tracepoint, event, forms, form));
  }
  return form != nullptr && form->usable ? form : nullptr;
}

SampleWriter::Form* SampleWriter::FindNullableForm(const Tracepoint& tracepoint,
                                                   const eh::EventView& event, TextForm text,
                                                   Schema* schema) {
  auto& forms = schema->forms;
  seen_ += static_cast<char>(text);
  auto found = forms.find(seen_);
  // Where each event has other nulls, the forms do not tell whether there is one; where sizes
  // change, too, they tell nothing.
  if (found == forms.end() && forms.size() >= kMaxForms) {
    std::transform(seen_.begin(), seen_.end() - 1, seen_.begin(),
                   [](char set) { return static_cast<char>(set | kSeenNull); });
    found = forms.find(seen_);
    if (found == forms.end() && forms.size() >= 2 * kMaxForms) {
      std::fill(seen_.begin(), seen_.end() - 1, '\0');
      found = forms.find(seen_);
    }
  }
  if (found == forms.end()) {
    if (!TakeShare(tracepoint, event.metadata.size())) return nullptr;
    found = forms.emplace(seen_, Form()).first;
  }
  return &found->second;
}

bool SampleWriter::TakeShare(const Tracepoint& tracepoint, std::size_t metadata_size) {
  Provider& provider = *tracepoint.share;
  if (provider.schemas >= kMaxSchemas || provider.schema_bytes + metadata_size > kMaxSchemaBytes) {
    return false;
  }
  ++provider.schemas;
  provider.schema_bytes += metadata_size;
  return true;
}

absl::Status SampleWriter::AddForm(const Tracepoint& tracepoint, const eh::EventView& event,
                                   const ValueForms& forms, Form* form) {
  absl::StatusOr<EventSchema> compiled =
      CompileEventSchema(event, tracepoint.parts, tracepoint.name, forms);
  absl::StatusOr<nettrace::MetadataId> row =
      compiled.ok() ? AddRow(compiled->metadata) : compiled.status();
  form->usable = row.ok();
  if (row.ok()) {
    form->metadata_id = *row;
    form->program = std::move(compiled->program);
    return absl::OkStatus();
  }
  // A schema that the file format cannot hold is no error of the trace.
  return absl::IsInvalidArgument(row.status()) ? absl::OkStatus() : row.status();
}

absl::Status SampleWriter::WriteUndecoded(Tracepoint* tracepoint, std::span<const std::byte> bytes,
                                          std::string_view reason, nettrace::EventRow* row) {
  ++stats_.undecoded;
  if (tracepoint->undecoded_id == nettrace::kNoMetadata) {
    nettrace::EventMetadata metadata;
    metadata.provider = tracepoint->provider;
    metadata.name = kUndecoded;
    if (tracepoint->is_event_header) {
      metadata.level = tracepoint->parts.level;
      metadata.keywords = tracepoint->parts.keyword;
    }
    metadata.fields = {
        {"Reason",
         nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kUtf8CodeUnit))},
        {"Event", nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kByte))}};
    metadata.key_values = {{tools::kKeyTracepoint, tracepoint->name}};
    absl::StatusOr<nettrace::MetadataId> id = AddRow(std::move(metadata));
    if (!id.ok()) return id.status();
    tracepoint->undecoded_id = *id;
  }
  row->metadata_id = tracepoint->undecoded_id;
  payload_.clear();
  AppendCounted(std::as_bytes(std::span(reason)), &payload_);
  // A payload must be below 64 KiB; a record is at most that long, with its common fields.
  constexpr std::size_t kMaxKept = 65000;
  AppendCounted(bytes.first(std::min(bytes.size(), kMaxKept)), &payload_);
  return Emit(row, payload_);
}

absl::Status SampleWriter::Emit(nettrace::EventRow* row, std::span<const std::byte> payload) {
  if (labelled_ && !labels_.empty()) {
    absl::StatusOr<nettrace::LabelListId> labels = writer_->InternLabels(labels_);
    if (!labels.ok()) return labels.status();
    row->label_list_id = *labels;
    ++labels_in_interval_;
  }
  ++events_in_interval_;
  return writer_->WriteEvent(*row, payload);
}

absl::Status SampleWriter::AddLost(std::size_t cpu_index, std::uint64_t count) {
  Cpu& cpu = cpus_[cpu_index];
  if (cpu.capture_thread == nettrace::kNoThread) {
    COLLECTOR_RETURN_IF_ERROR(AddCaptureThread(&cpu));
  }
  return writer_->AddLost(cpu.capture_thread, count);
}

absl::Status SampleWriter::WriteSequencePoint(std::uint64_t timestamp) {
  COLLECTOR_RETURN_IF_ERROR(processes_.Write(timestamp));
  const bool flush = tasks_->rows() >= kThreadRowsPerFlush;
  COLLECTOR_RETURN_IF_ERROR(
      writer_->WriteSequencePoint(timestamp, flush ? nettrace::kSequencePointFlushThreads : 0));
  if (flush) {
    tasks_->ForgetRows();
    processes_.ForgetRows();
    for (Cpu& cpu : cpus_) cpu.capture_thread = nettrace::kNoThread;
  }
  // What ended in this interval is kept for another one: an event may be later than its thread's
  // end.
  tasks_->DropEnded(interval_start_);
  interval_start_ = timestamp;
  symbol_lists_.clear();
  labels_in_interval_ = 0;
  events_in_interval_ = 0;
  return absl::OkStatus();
}

}  // namespace collector
