#include "tools/collector/convert/sample_converter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "libnettrace-writer/core/check_fields.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/varint.h"
#include "tools/base/byte_text.h"
#include "tools/base/status_macros.h"
#include "tools/collector/convert/trace_context.h"
#include "tools/collector/identity/proc_files.h"
#include "tools/trace/eventheader_keys.h"
#include "tools/trace/tracepoint_keys.h"

namespace collector {
namespace {

using nettrace::internal::traceevent::kMaxPayloadSize;

// Name of the first field of EventHeader tracepoints. It follows "u8 " in kTracepointFields.
constexpr std::string_view kEventHeaderFirstField = [] {
  std::string_view fields = eh::kTracepointFields;
  fields.remove_prefix(fields.find(' ') + 1);
  return fields.substr(0, fields.find(';'));
}();

constexpr char kTruncated[] = "the payload ends within a field";
constexpr char kTooLong[] = "the payload is longer than readers accept";
constexpr char kTooFast[] = "its process creates new kinds of events too fast";
// Approximate memory that tables and lists need for a schema or form, in bytes. The schema and form
// themselves are not included.
constexpr std::size_t kPlaces = 200;

nettrace::Guid ToGuid(std::span<const std::byte> uuid) {
  std::array<std::byte, 16> bytes;
  std::copy(uuid.begin(), uuid.end(), bytes.begin());
  return nettrace::GuidFromUuid(bytes);
}

void AppendCounted(std::span<const std::byte> bytes, std::vector<std::byte>* out) {
  out->push_back(static_cast<std::byte>(bytes.size() & 0xFF));
  out->push_back(static_cast<std::byte>(bytes.size() >> 8));
  out->insert(out->end(), bytes.begin(), bytes.end());
}

// Returns a hash of `number` and of the first and last bytes of `text`, for tables of recently used
// entries.
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

// Returns the fields of an event's header that identify its schema: all but the level.
std::uint64_t HeaderKey(eh::wire::Header header) {
  header.level = 0;
  return std::bit_cast<std::uint64_t>(header);
}

}  // namespace

std::size_t SampleConverter::SchemaHash::operator()(const SchemaKey& key) const {
  return absl::HashOf(key.header, absl::string_view(key.metadata.data(), key.metadata.size()));
}

SampleConverter::SampleConverter(TaskTracker* tasks, const SchemaShares::Limits& limits)
    : tasks_(tasks),
      shares_(
          limits, [this](SchemaShares::Entry* entry) { Forget(static_cast<Kept*>(entry)); },
          ReadProcUser),
      dotnet_(&forms_, limits),
      activities_(kRecentActivities) {
  event_.source = &current_;
}

absl::Status SampleConverter::AddTracepoint(int id, const std::string& system,
                                            const std::string& event, const std::string& format) {
  const auto index = static_cast<std::size_t>(id);
  if (index < tracepoints_.size() && tracepoints_[index] != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(TracepointSchema layout, ParseTracepointFormat(system, event, id, format));

  auto tracepoint = std::make_unique<Tracepoint>();
  tracepoint->name = event;
  tracepoint->layout = std::move(layout);
  tracepoint->provider = system;
  if (eh::ParseTracepointName(tracepoint->name) &&
      tracepoint->layout.first_field == kEventHeaderFirstField) {
    MakeEventHeader(tracepoint.get());
  } else {
    RETURN_IF_ERROR(nettrace::internal::CheckFields(tracepoint->layout.metadata.fields,
                                                    /*traceevent_compatible=*/true));
    tracepoint->bytes = forms_.Take();
    tracepoint->utf16 = forms_.Take();
    tracepoint->is_dotnet = AreDotnetFields(tracepoint->layout.metadata.fields);
    if (tracepoint->is_dotnet) {
      dotnet_.AddTracepoint(id, tracepoint->name);
      ++dotnet_tracepoints_;
    }
    if (!tracepoint->layout.kernel_addresses.empty() && !current_.kernel_symbols) {
      current_.kernel_symbols = KernelSymbols::Load();
    }
  }
  tracepoint->undecoded = forms_.Take();
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  tracepoints_[index] = std::move(tracepoint);
  return absl::OkStatus();
}

void SampleConverter::MakeEventHeader(Tracepoint* tracepoint) {
  tracepoint->is_event_header = true;
  tracepoint->recent.resize(kRecentSchemas);
  tracepoint->parts = *eh::ParseTracepointName(tracepoint->name);
  tracepoint->provider = std::string(tracepoint->parts.provider);
  tracepoint->share = shares_.AddProvider(tracepoint->provider);
}

absl::Status SampleConverter::AddRingTracepoint(int id, const std::string& name) {
  if (!eh::ParseTracepointName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tracepoint user_events:", name,
                     " is not recorded: its events come through a ring, but its name is not an "
                     "EventHeader name (Provider_LxKy)"));
  }
  const auto index = static_cast<std::size_t>(id);
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  auto tracepoint = std::make_unique<Tracepoint>();
  tracepoint->name = name;
  MakeEventHeader(tracepoint.get());
  tracepoint->undecoded = forms_.Take();
  tracepoints_[index] = std::move(tracepoint);
  return absl::OkStatus();
}

void SampleConverter::AddDotnetStreams(int id) {
  auto tracepoint = std::make_unique<Tracepoint>();
  tracepoint->name = tracepoint->provider = "EventPipe";
  tracepoint->is_dotnet = tracepoint->is_dotnet_streams = true;
  tracepoint->undecoded = forms_.Take();
  dotnet_.AddTracepoint(id, tracepoint->name);
  const auto index = static_cast<std::size_t>(id);
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  tracepoints_[index] = std::move(tracepoint);
}

void SampleConverter::AddUniversalEvent(int id, const std::string& name) {
  auto tracepoint = std::make_unique<Tracepoint>();
  tracepoint->name = name;
  tracepoint->is_universal = true;
  tracepoint->provider = std::string(nettrace::internal::traceevent::kUniversalEvents);
  nettrace::EventMetadata& metadata = tracepoint->layout.metadata;
  metadata.provider = tracepoint->provider;
  metadata.name = name;
  metadata.fields = {{"Value", nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)}};
  tracepoint->bytes = forms_.Take();
  tracepoint->undecoded = forms_.Take();
  const auto index = static_cast<std::size_t>(id);
  if (index >= tracepoints_.size()) tracepoints_.resize(index + 1);
  tracepoints_[index] = std::move(tracepoint);
}

void SampleConverter::RemoveTracepoint(int id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= tracepoints_.size() || tracepoints_[index] == nullptr) return;
  Tracepoint& tracepoint = *tracepoints_[index];
  for (auto& [key, schema] : tracepoint.schemas) {
    shares_.Remove(schema.get());
    ReleaseForms(schema.get());
  }
  for (Slot* slot : {&tracepoint.bytes, &tracepoint.utf16, &tracepoint.undecoded}) {
    forms_.Release(slot);
  }
  if (!tracepoint.layout.kernel_addresses.empty()) ForgetSymbolLists();
  if (tracepoint.share != nullptr) shares_.RemoveProvider(tracepoint.share);
  if (tracepoint.is_dotnet) dotnet_.RemoveTracepoint(id);
  if (tracepoint.is_dotnet && !tracepoint.is_dotnet_streams) --dotnet_tracepoints_;
  tracepoints_[index] = nullptr;
}

void SampleConverter::ReleaseForms(Schema* schema) {
  forms_.Release(&schema->bytes.slot);
  forms_.Release(&schema->utf16.slot);
  for (auto& [seen, form] : schema->forms) {
    shares_.Remove(form.get());
    forms_.Release(&form->form.slot);
  }
}

void SampleConverter::Forget(Kept* kept) {
  Schema* const schema = kept->schema;
  if (kept != schema) {
    auto* const form = static_cast<NullableForm*>(kept);
    forms_.Release(&form->form.slot);
    schema->forms.erase(schema->forms.find(form->seen));
    return;
  }
  ReleaseForms(schema);
  auto& schemas = schema->tracepoint->schemas;
  schemas.erase(schemas.find(schema->key));
}

bool SampleConverter::MayMake() {
  return shares_.MayAdd(current_.sample->pid, current_.view.metadata.size(), event_.timestamp);
}

void SampleConverter::Keep(Kept* kept, std::size_t bytes, const Schema* schema) {
  shares_.Add(kept, current_.tracepoint->share, bytes + kPlaces, schema);
  if (age_ != shares_.age()) ForgetRecent();
  kept->age = age_;
}

void SampleConverter::MarkUsed(Kept* kept) {
  if (kept->age == age_) return;
  shares_.Use(kept);
  kept->age = age_;
}

// Clears the tables of recently used schemas. Some of these schemas may have been deleted, and the
// others must be marked as used again.
void SampleConverter::ForgetRecent() {
  age_ = shares_.age();
  for (const auto& tracepoint : tracepoints_) {
    if (tracepoint == nullptr) continue;
    std::fill(tracepoint->recent.begin(), tracepoint->recent.end(), nullptr);
  }
}

[[gnu::always_inline]] inline void SampleConverter::Reset(Tracepoint* tracepoint,
                                                          const SampleRecord& sample,
                                                          std::uint64_t timestamp) {
  current_.tracepoint = tracepoint;
  current_.sample = &sample;
  event_.timestamp = timestamp;
  event_.own_labels = nullptr;
  event_.undecoded = false;
  event_.kind.labels = Slot();
  event_.stack = nullptr;
}

[[gnu::always_inline]] inline void SampleConverter::Begin(Tracepoint* tracepoint,
                                                          const SampleRecord& sample,
                                                          std::uint64_t timestamp) {
  Reset(tracepoint, sample, timestamp);
  if (sample.stack) SetStack(*sample.stack, sample.pid);
}

void SampleConverter::SetStack(const SampleStack& stack, std::uint32_t pid) {
  frames_.clear();
  bool is_kept = false;
  for (std::size_t at = 0; at + 8 <= stack.entries.size(); at += 8) {
    const auto entry = internal::Load<std::uint64_t>(stack.entries, at);
    if (entry < static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {
      if (is_kept) frames_.push_back(entry);
      continue;
    }
    // Keeps the frames of the kernel and of user space, and leaves out those of a hypervisor or a
    // guest.
    is_kept = entry == static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL) ||
              entry == static_cast<std::uint64_t>(PERF_CONTEXT_USER);
  }
  if (frames_.empty() && !stack.lacks_user_frames) return;
  const std::size_t max_frames = current_.tracepoint->max_frames;
  bool is_cut = stack.lacks_user_frames || stack.is_cut;
  if (max_frames != 0 && frames_.size() >= max_frames) {
    // The kernel does not apply the maximum to user frames that it records later than the sample,
    // or that the collector unwinds from a copy of the stack.
    frames_.resize(max_frames);
    is_cut = true;
  }
  stack_ = {frames_, pid, is_cut};
  event_.stack = &stack_;
}

[[gnu::always_inline]] inline void SampleConverter::ConvertContents(std::uint16_t id) {
  const Tracepoint& tracepoint = *current_.tracepoint;
  if (tracepoint.is_event_header) {
    ConvertEventHeader();
  } else if (tracepoint.is_dotnet) {
    ConvertDotnetEvent(id);
  } else if (!tracepoint.is_universal) {
    ConvertKernelEvent();
  } else {
    SetValue(1);
  }
}

// For most samples, the only call is the last step, a tail call. The function therefore saves no
// registers, which would be a third of its instructions.
void SampleConverter::ConvertSample(std::uint16_t id, const SampleRecord& sample,
                                    std::uint64_t timestamp) {
  Reset(tracepoints_[id].get(), sample, timestamp);
  const Slot thread = tasks_->FindRecent(sample.pid, sample.tid, timestamp, sample.cgroup);
  if (!thread.valid() || sample.tid == kExitedTask || sample.stack) [[unlikely]] {
    return ConvertUncommon(id, sample, timestamp);
  }
  event_.kind.thread = thread;
  ConvertContents(id);
}

[[gnu::noinline]] void SampleConverter::ConvertUncommon(std::uint16_t id,
                                                        const SampleRecord& sample,
                                                        std::uint64_t timestamp) {
  if (sample.stack) SetStack(*sample.stack, sample.pid);
  event_.kind.thread =
      sample.tid == kExitedTask
          ? tasks_->FindExited(sample.pid, current_.tracepoint->layout.ReadTid(sample.raw),
                               timestamp, sample.cgroup)
          : tasks_->Find(sample.pid, sample.tid, timestamp, sample.cgroup);
  ConvertContents(id);
}

const ConvertedEvent& SampleConverter::ConvertValue(int id, const SampleRecord& sample,
                                                    std::uint64_t timestamp, std::uint64_t value) {
  Begin(tracepoints_[static_cast<std::size_t>(id)].get(), sample, timestamp);
  event_.kind.thread = tasks_->Find(sample.pid, sample.tid, timestamp, sample.cgroup);
  SetValue(value);
  return event_;
}

const ConvertedEvent& SampleConverter::ConvertOfThread(int id, Slot thread,
                                                       const SampleRecord& sample,
                                                       std::uint64_t timestamp) {
  Begin(tracepoints_[static_cast<std::size_t>(id)].get(), sample, timestamp);
  event_.kind.thread = thread;
  ConvertEventHeader();
  return event_;
}

const ConvertedEvent& SampleConverter::ConvertOfStream(int id, Slot thread,
                                                       const DotnetStreamEvent& event,
                                                       const SampleRecord& sample,
                                                       std::uint64_t timestamp) {
  Begin(tracepoints_[static_cast<std::size_t>(id)].get(), sample, timestamp);
  event_.kind.thread = thread;
  if (!event.labels->empty()) SetLabels() = *event.labels;
  std::string_view reason;
  current_.dotnet_row = dotnet_.FindOfStream(id, sample.pid, event, timestamp, &reason);
  SetDotnetPayload(sample.raw, reason);
  return event_;
}

std::span<const std::byte> SampleConverter::Source::bytes() const {
  const std::size_t begin = tracepoint->is_event_header ? tracepoint->layout.payload_offset : 0;
  return sample->raw.subspan(std::min(begin, sample->raw.size()));
}

void SampleConverter::ConvertKernelEvent() {
  const Tracepoint& tracepoint = *current_.tracepoint;
  const TracepointSchema& layout = tracepoint.layout;
  const std::span<const std::byte> record = current_.sample->raw;
  if (!layout.kernel_addresses.empty()) LabelKernelSymbols();
  event_.kind.form = tracepoint.bytes;
  if (layout.program.RunQuickly(record, &event_.payload)) return;
  payload_.clear();
  const RecordProgram::Outcome outcome =
      layout.program.Run(record, TextForm::kBytes, &payload_, &event_.payload);
  if (!outcome.fits) return SetUndecoded("the record does not match its format");
  if (!outcome.non_ascii) return;

  std::span<const std::byte> utf16;
  utf16_payload_.clear();
  // In UTF-16, text takes up to twice the space that it takes in UTF-8. If it does not fit, the
  // event stays in UTF-8.
  if (!layout.program.Run(record, TextForm::kUtf16, &utf16_payload_, &utf16).fits) return;
  event_.kind.form = tracepoint.utf16;
  event_.payload = utf16;
}

void SampleConverter::Learn(std::uint16_t id, const SampleRecord& sample, std::uint64_t timestamp) {
  if (!Knows(id) || !tracepoints_[id]->is_dotnet) return;
  const std::size_t begin = std::min(tracepoints_[id]->layout.payload_offset, sample.raw.size());
  DotnetEvent event;
  std::string_view ignored;
  if (ParseDotnetEvent(sample.raw.subspan(begin), &event) != nullptr || event.metadata.empty()) {
    return;
  }
  dotnet_.Find(id, sample.pid, event, timestamp, &ignored);
}

void SampleConverter::ConvertDotnetEvent(int id) {
  const std::span<const std::byte> record = current_.sample->raw;
  DotnetEvent event;
  if (const char* error = ParseDotnetEvent(
          record.subspan(std::min(current_.tracepoint->layout.payload_offset, record.size())),
          &event)) {
    return SetUndecoded(error);
  }
  if (event.activity_id || event.related_activity_id) {
    nettrace::Labels& labels = SetLabels();
    labels.activity_id = event.activity_id;
    labels.related_activity_id = event.related_activity_id;
  }
  std::string_view reason;
  current_.dotnet_row = dotnet_.Find(id, current_.sample->pid, event, event_.timestamp, &reason);
  SetDotnetPayload(event.payload, reason);
}

void SampleConverter::SetDotnetPayload(std::span<const std::byte> payload,
                                       std::string_view reason) {
  if (current_.dotnet_row == nullptr) return SetUndecoded(reason);
  if (payload.size() > kMaxPayloadSize) return SetUndecoded(kTooLong);
  if (!IsDotnetPayload(current_.dotnet_row->metadata.fields, payload)) {
    return SetUndecoded(kTruncated);
  }
  event_.kind.form = current_.dotnet_row->form;
  event_.payload = payload;
}

void SampleConverter::SetValue(std::uint64_t value) {
  payload_.resize(nettrace::internal::kVarUIntStore);
  const std::byte* const end = nettrace::internal::PutVarUInt(payload_.data(), value);
  payload_.resize(static_cast<std::size_t>(end - payload_.data()));
  event_.kind.form = current_.tracepoint->bytes;
  event_.payload = payload_;
}

bool SampleConverter::Source::ReadKernelAddresses(KernelAddresses* key) const {
  const std::span<const std::byte> record = sample->raw;
  key->tracepoint = tracepoint;
  const auto& fields = tracepoint->layout.kernel_addresses;
  for (std::size_t i = 0; i < std::min(fields.size(), KernelAddresses::kMax); ++i) {
    if (fields[i].offset + fields[i].size > record.size()) return false;
    if (fields[i].size == sizeof(std::uint64_t)) {
      std::memcpy(&key->addresses[i], record.data() + fields[i].offset, sizeof(std::uint64_t));
    } else {
      std::uint32_t address = 0;
      std::memcpy(&address, record.data() + fields[i].offset, sizeof address);
      key->addresses[i] = address;
    }
  }
  return true;
}

void SampleConverter::Source::SetKernelSymbols(const KernelAddresses& key,
                                               nettrace::Labels* labels) const {
  const auto& fields = key.tracepoint->layout.kernel_addresses;
  for (std::size_t i = 0; i < std::min(fields.size(), KernelAddresses::kMax); ++i) {
    std::string symbol = kernel_symbols->Find(key.addresses[i], fields[i].with_offset);
    if (symbol.empty()) continue;
    labels->strings.emplace_back(absl::StrCat(trace::kSymbolLabel, fields[i].field),
                                 std::move(symbol));
  }
}

void SampleConverter::LabelKernelSymbols() {
  if (!current_.kernel_symbols || current_.kernel_symbols->empty()) return;
  KernelAddresses key;
  if (!current_.ReadKernelAddresses(&key)) return;
  const auto found = symbol_lists_.find(key);
  if (found != symbol_lists_.end()) {
    event_.kind.labels = found->second;
    return;
  }
  if (symbol_lists_.size() >= kMaxSymbolLists) ForgetSymbolLists();
  nettrace::Labels symbols;
  current_.SetKernelSymbols(key, &symbols);
  if (!symbols.empty()) {
    event_.kind.labels = Slot(kRecentActivities + static_cast<std::uint32_t>(symbol_lists_.size()),
                              symbol_generation_);
  }
  symbol_lists_.emplace(key, event_.kind.labels);
}

void SampleConverter::ForgetSymbolLists() {
  symbol_lists_.clear();
  if (++symbol_generation_ == 0) symbol_generation_ = 1;
}

void SampleConverter::Source::SetActivity(nettrace::Labels* labels) const {
  labels->activity_id = ToGuid(view.activity_id);
  if (!view.related_id.empty()) labels->related_activity_id = ToGuid(view.related_id);
}

void SampleConverter::LabelActivity() {
  const eh::EventView& event = current_.view;
  if (event_.own_labels != nullptr) return current_.SetActivity(&labels_);
  // Remembers the ids of several activities, because events of different activities alternate.
  const std::span<const std::byte> ids(event.activity_id.data(),
                                       event.activity_id.size() + event.related_id.size());
  const auto index =
      static_cast<std::uint32_t>(QuickHash(0, base::AsText(ids)) % kRecentActivities);
  ActivityLabels& recent = activities_[index];
  if (recent.size != ids.size() || std::memcmp(recent.ids.data(), ids.data(), ids.size()) != 0) {
    std::copy(ids.begin(), ids.end(), recent.ids.begin());
    recent.size = ids.size();
    if (++recent.generation == 0) recent.generation = 1;
  }
  event_.kind.labels = Slot(index, recent.generation);
}

nettrace::Labels SampleConverter::Source::ListedLabels(const ConvertedEvent& event) const {
  nettrace::Labels labels;
  if (!event.kind.labels.valid()) return labels;
  if (event.kind.labels.index() < kRecentActivities) {
    SetActivity(&labels);
  } else if (KernelAddresses key; ReadKernelAddresses(&key)) {
    SetKernelSymbols(key, &labels);
  }
  return labels;
}

SampleConverter::Schema* SampleConverter::ParseEventHeader(std::span<const std::byte> bytes) {
  eh::EventView& event = current_.view;
  if (const auto error = eh::ParseEvent(bytes, &event); error != eh::ParseError::kNone) {
    SetUndecoded(eh::ParseErrorText(error));
    return nullptr;
  }
  Tracepoint& tracepoint = *current_.tracepoint;
  if (event.header.level != tracepoint.parts.level) SetLabels().level = event.header.level;

  const SchemaKey key = {HeaderKey(event.header), base::AsText(event.metadata)};
  std::string_view reason;
  Schema** const recent = &tracepoint.recent[QuickHash(key.header, key.metadata) % kRecentSchemas];
  Schema* schema = *recent;
  // Comparing with one recently used schema costs less than hashing all bytes of the metadata.
  if (schema == nullptr || schema->key != key) {
    schema = FindSchema(key, &reason);
    if (schema != nullptr) *recent = schema;
  }
  if (schema != nullptr && schema->trace_context) LiftTraceContext(event, &SetLabels());
  if (!event.activity_id.empty()) LabelActivity();
  if (schema == nullptr) {
    SetUndecoded(reason);
    return nullptr;
  }
  const bool has_labels = event_.own_labels != nullptr || event_.kind.labels.valid();
  if (!has_labels && schema->view.metadata.empty()) RememberStart(bytes, schema);
  return schema;
}

void SampleConverter::RememberStart(std::span<const std::byte> bytes, Schema* schema) {
  const eh::EventView& event = current_.view;
  if (event.metadata.data() != bytes.data() + kStart ||
      event.data.data() != event.metadata.data() + event.metadata.size()) {
    return;
  }
  std::copy_n(bytes.begin(), kStart, schema->start.begin());
  schema->view = event;
  schema->view.metadata = std::as_bytes(std::span(schema->metadata));
  schema->view.data = {};
}

inline SampleConverter::Schema* SampleConverter::FindByStart(
    std::span<const std::byte> bytes) const {
  if (bytes.size() < kStart) return nullptr;
  eh::wire::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  eh::wire::ExtensionHeader extension;
  std::memcpy(&extension, bytes.data() + sizeof header, sizeof extension);
  // If the event has no extension, these bytes are data that may look like one. The comparison with
  // `start` then fails, because kFlagExtension is not set in the event's header.
  if (extension.kind != eh::kExtensionMetadata || extension.size > bytes.size() - kStart) {
    return nullptr;
  }
  const std::string_view metadata = base::AsText(bytes.subspan(kStart, extension.size));
  Schema* const schema =
      current_.tracepoint->recent[QuickHash(HeaderKey(header), metadata) % kRecentSchemas];
  const bool is_same = schema != nullptr &&
                       std::memcmp(bytes.data(), schema->start.data(), kStart) == 0 &&
                       metadata == schema->metadata;
  return is_same ? schema : nullptr;
}

void SampleConverter::ConvertEventHeader() {
  const std::span<const std::byte> bytes = current_.bytes();
  // Most events begin with the same bytes as an earlier event, and then need not be parsed.
  Schema* schema = FindByStart(bytes);
  if (schema != nullptr) {
    current_.view = schema->view;
    current_.view.data = bytes.subspan(kStart + schema->metadata.size());
  } else {
    schema = ParseEventHeader(bytes);
    if (schema == nullptr) return;
  }

  PayloadProgram::Outcome outcome;
  const std::span<const std::byte> data = current_.view.data;
  if (!schema->bytes.program.RunQuickly(data, &outcome)) return ConvertByForm(schema);
  if (outcome.result == PayloadProgram::Result::kTruncated) return SetUndecoded(kTruncated);
  if (outcome.consumed > kMaxPayloadSize) return SetUndecoded(kTooLong);
  current_.forms = ValueForms();
  event_.kind.form = schema->bytes.slot;
  event_.payload = data.first(outcome.consumed);
}

void SampleConverter::ConvertByForm(Schema* schema) {
  const eh::EventView& event = current_.view;
  const PayloadProgram& program = schema->bytes.program;
  payload_.clear();
  seen_.assign(schema->nullable_fields, 0);
  const bool identity = program.identity();
  const bool converts = !identity && seen_.empty();
  const PayloadProgram::Outcome outcome =
      program.Run(event.data, converts ? &payload_ : nullptr, seen_);
  if (outcome.result == PayloadProgram::Result::kTruncated) return SetUndecoded(kTruncated);
  if (!outcome.non_ascii && seen_.empty()) {
    const std::span<const std::byte> payload =
        identity ? event.data.first(outcome.consumed) : std::span<const std::byte>(payload_);
    if (payload.size() > kMaxPayloadSize) return SetUndecoded(kTooLong);
    current_.forms = ValueForms();
    event_.kind.form = schema->bytes.slot;
    event_.payload = payload;
    return;
  }
  const Form* const form =
      FindForm(outcome.non_ascii ? TextForm::kUtf16 : TextForm::kBytes, schema);
  if (form == nullptr) return SetUndecoded(kTooFast);
  payload_.clear();
  form->program.Run(event.data, &payload_);
  // In UTF-16, text takes up to twice the space, so the payload may be too long.
  if (payload_.size() > kMaxPayloadSize) return SetUndecoded(kTooLong);
  event_.kind.form = form->slot;
  event_.payload = payload_;
}

SampleConverter::Schema* SampleConverter::FindSchema(const SchemaKey& key,
                                                     std::string_view* reason) {
  Tracepoint& tracepoint = *current_.tracepoint;
  *reason = "the metadata is malformed";
  if (const auto found = tracepoint.schemas.find(key); found != tracepoint.schemas.end()) {
    MarkUsed(found->second.get());
    return found->second->usable ? found->second.get() : nullptr;
  }
  if (key.metadata.empty()) {
    *reason = "the event carries no metadata";
    return nullptr;
  }
  if (!MayMake()) {
    *reason = kTooFast;
    return nullptr;
  }
  auto made = std::make_unique<Schema>();
  Schema* const schema = made.get();
  schema->schema = schema;
  schema->tracepoint = &tracepoint;
  schema->metadata = std::string(key.metadata);
  schema->key = {key.header, schema->metadata};
  MakeSchema(schema);
  tracepoint.schemas.emplace(schema->key, std::move(made));
  // The program counts twice, because a second program may be needed later, for text in UTF-16.
  Keep(schema, sizeof(Schema) + schema->metadata.size() + 2 * schema->bytes.program.bytes(),
       nullptr);
  return schema->usable ? schema : nullptr;
}

void SampleConverter::MakeSchema(Schema* schema) {
  const Tracepoint& tracepoint = *current_.tracepoint;
  schema->trace_context = NamesTraceContext(current_.view);
  absl::StatusOr<EventSchema> compiled =
      CompileEventSchema(current_.view, tracepoint.parts, tracepoint.name, ValueForms());
  schema->usable = compiled.ok();
  if (!compiled.ok()) return;
  schema->nullable_fields = compiled->nullable_fields;
  schema->bytes.program = std::move(compiled->program);
  if (schema->nullable_fields == 0) schema->bytes.slot = forms_.Take();
}

SampleConverter::Form* SampleConverter::FindForm(TextForm text, Schema* schema) {
  Form* const form = schema->nullable_fields == 0 ? &schema->utf16 : FindNullableForm(text, schema);
  if (form == nullptr) return nullptr;
  current_.forms = {text, std::string_view(seen_).substr(0, schema->nullable_fields)};
  if (form->slot.valid()) return form;
  const Tracepoint& tracepoint = *current_.tracepoint;
  absl::StatusOr<EventSchema> compiled =
      CompileEventSchema(current_.view, tracepoint.parts, tracepoint.name, current_.forms);
  // Compiling cannot fail here: a schema that compiles for one form compiles for all forms.
  if (!compiled.ok()) return nullptr;
  form->program = std::move(compiled->program);
  form->slot = forms_.Take();
  return form;
}

SampleConverter::Form* SampleConverter::FindNullableForm(TextForm text, Schema* schema) {
  auto& forms = schema->forms;
  seen_ += static_cast<char>(text);
  auto found = forms.find(seen_);
  // Limits the number of forms if nearly every event has different values. From kMaxForms on, a new
  // form does not distinguish whether a field is null. From 2 * kMaxForms on, it does not
  // distinguish sizes either.
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
    if (!MayMake()) return nullptr;
    auto made = std::make_unique<NullableForm>();
    made->schema = schema;
    made->seen = seen_;
    NullableForm* const form = made.get();
    forms.emplace(seen_, std::move(made));
    Keep(form, sizeof(NullableForm) + 2 * seen_.size() + schema->bytes.program.bytes(), schema);
    return &form->form;
  }
  MarkUsed(found->second.get());
  return &found->second->form;
}

void SampleConverter::SetUndecoded(std::string_view reason) {
  event_ = current_.AsUndecoded(event_, reason, &undecoded_payload_);
}

ConvertedEvent SampleConverter::Source::AsUndecoded(const ConvertedEvent& event,
                                                    std::string_view reason,
                                                    std::vector<std::byte>* payload) const {
  payload->clear();
  AppendCounted(std::as_bytes(std::span(reason)), payload);
  // A payload must be smaller than 64 KiB. A record, with its common fields, may have that size, so
  // only the first kMaxKept bytes of the event are kept.
  constexpr std::size_t kMaxKept = 65000;
  AppendCounted(bytes().first(std::min(bytes().size(), kMaxKept)), payload);
  ConvertedEvent undecoded = event;
  undecoded.kind.form = tracepoint->undecoded;
  undecoded.undecoded = true;
  undecoded.payload = *payload;
  return undecoded;
}

nettrace::EventMetadata SampleConverter::Source::MetadataFor(const ConvertedEvent& event) const {
  if (event.undecoded) return UndecodedMetadata(*tracepoint);
  if (tracepoint->is_dotnet) return dotnet_row->metadata;
  if (!tracepoint->is_event_header) {
    const TextForm text =
        event.kind.form == tracepoint->utf16 ? TextForm::kUtf16 : TextForm::kBytes;
    return tracepoint->layout.MetadataFor(text);
  }
  absl::StatusOr<EventSchema> compiled =
      CompileEventSchema(view, tracepoint->parts, tracepoint->name, forms);
  // Compiling cannot fail here: the same schema was compiled when the form was made.
  return compiled.ok() ? std::move(compiled->metadata) : UndecodedMetadata(*tracepoint);
}

nettrace::EventMetadata SampleConverter::UndecodedMetadata(const Tracepoint& tracepoint) {
  nettrace::EventMetadata metadata;
  metadata.provider = tracepoint.provider;
  metadata.name = kUndecoded;
  if (tracepoint.is_event_header) {
    metadata.level = tracepoint.parts.level;
    metadata.keywords = tracepoint.parts.keyword;
  }
  metadata.fields = {
      {"Reason", nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kUtf8CodeUnit))},
      {"Event", nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kByte))}};
  metadata.key_values = {{trace::kKeyTracepoint, tracepoint.name}};
  return metadata;
}

}  // namespace collector
