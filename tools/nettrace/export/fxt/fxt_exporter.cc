#include "tools/nettrace/export/fxt/fxt_exporter.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/little_endian.h"
#include "tools/base/json_text.h"
#include "tools/base/short_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::fxt {
namespace {

constexpr std::uint64_t kTicksPerSecond = 1'000'000'000;
// Id of the trace's only provider, which is this program. Readers do not show its name.
constexpr std::uint64_t kProviderId = 1;

constexpr std::uint16_t kMaxStringIndex = 0x7FFF;
constexpr std::size_t kMaxString = 32'000;  // bytes of a text in the string table
// Maximum bytes of all texts in the string table. The table is cleared before it would exceed them.
constexpr std::size_t kMaxStringsSize = std::size_t{16} << 20;
constexpr std::size_t kMaxThreadIndex = 0xFF;

// Names of the arguments for the properties of an event, in the order of the arguments. ArgumentsOf
// adds further arguments if the event has an error, or ends a slice that began with another name or
// provider.
enum Property : std::size_t { kLevel, kKeywords, kOpcode, kCpu, kActivityId, kRelatedActivityId };
constexpr std::string_view kProperties[] = {"level", "keywords",   "opcode",
                                            "cpu",   "activityId", "relatedActivityId"};
// Maximum bytes of a field's name in PutFlatEvent. Such a name is never cut to kMaxName, even if
// ValidUtf8 makes three bytes of each byte and kOfStop precedes it.
constexpr std::size_t kMaxFlatName = kMaxName / 4;

Argument NumberOf(std::string name, std::uint64_t number) {
  return {std::move(name), Argument::Kind::kNumber, absl::StrCat(number)};
}

Argument TextOf(std::string name, std::string_view text) {
  return {std::move(name), Argument::Kind::kText, base::ValidUtf8(text)};
}

// Returns the arguments of an event's record: its properties, followed by its fields. `ended` is
// the slice that the event ends, or null.
std::vector<Argument> ArgumentsOf(const exporting::ExportedEvent& exported,
                                  const trace::OpenSlices::Slice* ended) {
  const nettrace::Event& event = *exported.event;
  const std::string prefix = ended != nullptr ? kOfStop : "";
  std::vector<Argument> arguments;
  arguments.reserve(kMaxArguments);
  if (ended != nullptr) {
    if (const std::string_view name = trace::EventName(*event.metadata); name != ended->name) {
      arguments.push_back(TextOf(prefix + "event", name));
    }
    if (event.metadata->provider != ended->provider) {
      arguments.push_back(TextOf(prefix + "provider", event.metadata->provider));
    }
  }
  arguments.push_back(NumberOf(prefix + "level", event.level()));
  arguments.push_back(TextOf(prefix + "keywords", base::FormatHexNumber(event.keywords())));
  if (event.opcode() != 0) arguments.push_back(NumberOf(prefix + "opcode", event.opcode()));
  if (event.processor != nettrace::kNoProcessor) {
    arguments.push_back(NumberOf(prefix + "cpu", event.processor));
  }
  if (const auto& activity = event.labels->activity_id) {
    arguments.push_back(TextOf(prefix + "activityId", base::FormatGuid(*activity)));
  }
  if (const auto& related = event.labels->related_activity_id) {
    arguments.push_back(TextOf(prefix + "relatedActivityId", base::FormatGuid(*related)));
  }
  const absl::Status status = exported.payloads->Put(event, exported.payloads->StartJson());
  if (!status.ok()) arguments.push_back(TextOf(prefix + "error", std::string(status.message())));
  AppendFields(exported.payloads->json(), prefix, &arguments);
  return arguments;
}

// Returns nanoseconds since 1970. A time before 1970 becomes 0, and the result fits a signed 64-bit
// number, because Perfetto reads times as signed numbers.
std::uint64_t TicksOf(absl::Time time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(absl::ToUnixNanos(time), 0));
}

// Returns the 64-bit id of an asynchronous event, computed from the 128 bits of an activity id.
std::uint64_t CorrelationOf(const nettrace::Guid& activity) {
  std::uint64_t halves[2];
  static_assert(sizeof halves == sizeof activity);
  std::memcpy(halves, activity.data(), sizeof halves);
  return halves[0] ^ std::rotl(halves[1] * 0x9E37'79B9'7F4A'7C15, 32);
}

}  // namespace

void FxtExporter::PutRecord(RecordType type, std::uint64_t head, const RecordWords& words) {
  std::byte first[sizeof(std::uint64_t)];
  nettrace::internal::StoreLittleEndian(
      static_cast<std::uint64_t>(type) | (1 + words.size()) << 4 | head, first);
  std::string& out = *output_.text();
  out.append(reinterpret_cast<const char*>(first), sizeof first);
  out.append(words.bytes());
}

FxtExporter::FxtExporter(nettrace::Sink* sink) : output_(sink) {
  RecordWords& words = other_words_;
  words.Put(kMagic);
  output_.text()->append(words.bytes());
  constexpr std::string_view kName = kProviderName;
  words.Clear();
  words.PutStream(kName);
  PutRecord(RecordType::kMetadata,
            kProviderInfo << 16 | kProviderId << 20 | std::uint64_t{kName.size()} << 52, words);
  words.Clear();
  PutRecord(RecordType::kMetadata, kProviderSection << 16 | kProviderId << 20, words);
  words.Put(kTicksPerSecond);
  PutRecord(RecordType::kInitialization, 0, words);
}

// Clears the string table if it may not have room for the texts of another record. Must be called
// before a record takes its first reference, because a cleared table reuses the indices.
void FxtExporter::MakeRoomForStrings() {
  constexpr std::size_t kMaxRefs = 2 + kMaxArguments;
  if (strings_.size() + kMaxRefs <= kMaxStringIndex &&
      strings_size_ + kMaxRefs * kMaxString <= kMaxStringsSize) {
    return;
  }
  strings_.clear();
  strings_size_ = 0;
  recent_.fill({});
  rows_.clear();
  last_metadata_ = nullptr;
  property_refs_ = {};
}

std::uint16_t FxtExporter::StringRef(std::string_view text) {
  if (text.empty()) return 0;
  constexpr std::size_t kMaxRecent = 64;
  const std::size_t place = text.size() + 5 * static_cast<unsigned char>(text.front()) +
                            3 * static_cast<unsigned char>(text.back());
  RecentRef& recent = recent_[place % recent_.size()];
  if (recent.text == text) return recent.reference;
  const std::uint16_t reference = FindOrAddString(text);
  if (text.size() <= kMaxRecent) recent = {std::string(text), reference};
  return reference;
}

std::uint16_t FxtExporter::FindOrAddString(std::string_view text) {
  // All texts in the table are valid UTF-8 and at most kMaxString bytes long. A text that is found
  // in it therefore needs no changes.
  const auto in_table = strings_.find(absl::string_view(text.data(), text.size()));
  if (in_table != strings_.end()) return in_table->second;
  std::string valid = CutText(base::ValidUtf8(text), kMaxString);
  const auto index = static_cast<std::uint16_t>(strings_.size() + 1);
  const auto [entry, added] = strings_.try_emplace(std::move(valid), index);
  if (!added) return entry->second;
  const std::string& known = entry->first;
  strings_size_ += known.size();
  other_words_.Clear();
  other_words_.PutStream(known);
  PutRecord(RecordType::kString, std::uint64_t{index} << 16 | std::uint64_t{known.size()} << 32,
            other_words_);
  return index;
}

std::uint8_t FxtExporter::ThreadRef(const trace::Ids& ids) {
  RecentThread& recent = recent_threads_[(ids.first * 7 + ids.second) % recent_threads_.size()];
  if (recent.reference != 0 && recent.ids == ids) return recent.reference;
  if (const auto known = threads_.find(ids); known != threads_.end()) {
    recent = {ids, known->second};
    return known->second;
  }
  if (threads_.size() == kMaxThreadIndex) {
    threads_.clear();
    recent_threads_.fill({});
  }
  const auto index = static_cast<std::uint8_t>(threads_.size() + 1);
  threads_.emplace(ids, index);
  other_words_.Clear();
  other_words_.Put(ids.first);
  other_words_.Put(ids.second);
  PutRecord(RecordType::kThread, std::uint64_t{index} << 16, other_words_);
  return index;
}

// Appends the name of a thread, or of a process if the thread in `ids` is 0.
void FxtExporter::PutKernelObject(const trace::Ids& ids, std::string_view name) {
  const auto& [process, thread] = ids;
  const bool is_process = thread == 0;
  MakeRoomForStrings();
  const std::uint64_t name_ref = StringRef(name);
  words_.Clear();
  words_.Put(is_process ? process : thread);
  if (!is_process) words_.PutWordArgument(ArgumentType::kKoid, StringRef("process"), process);
  PutRecord(RecordType::kKernelObject,
            (is_process ? kProcessObject : kThreadObject) << 16 | name_ref << 24 |
                (is_process ? std::uint64_t{0} : std::uint64_t{1}) << 40,
            words_);
}

void FxtExporter::PutArgument(const Argument& argument, std::size_t max_text) {
  const std::uint16_t name = StringRef(argument.name);
  switch (argument.kind) {
    case Argument::Kind::kNull:
      return words_.PutArgumentHead(ArgumentType::kNull, name, 0, 0);
    case Argument::Kind::kFalse:
    case Argument::Kind::kTrue:
      return words_.PutArgumentHead(ArgumentType::kBool, name,
                                    argument.kind == Argument::Kind::kTrue ? 1 : 0, 0);
    case Argument::Kind::kNumber:
      return words_.PutNumber(name, argument.text);
    case Argument::Kind::kText:
      break;
  }
  std::string cut;
  std::string_view text = argument.text;
  if (text.size() > max_text) {
    ++texts_cut_;
    text = cut = CutText(text, max_text);
  }
  words_.PutText(name, text);
}

void FxtExporter::PutEvent(const EventHead& head, const std::vector<Argument>& arguments) {
  MakeRoomForStrings();
  const EventRefs refs = {ThreadRef(head.ids), StringRef(head.category), StringRef(head.name)};
  words_.Clear();
  words_.Put(TicksOf(head.time));
  const auto texts = static_cast<std::size_t>(std::count_if(
      arguments.begin(), arguments.end(),
      [](const Argument& argument) { return argument.kind == Argument::Kind::kText; }));
  for (const Argument& argument : arguments) {
    PutArgument(argument, texts == 0 ? 0 : kMaxText / texts);
  }
  EndEvent(head, refs, arguments.size());
}

void FxtExporter::EndEvent(const EventHead& head, const EventRefs& refs, std::size_t arguments) {
  if (head.number) words_.Put(*head.number);
  PutRecord(RecordType::kEvent,
            static_cast<std::uint64_t>(head.type) << 16 | std::uint64_t{arguments} << 20 |
                std::uint64_t{refs.thread} << 24 | std::uint64_t{refs.category} << 32 |
                std::uint64_t{refs.name} << 48,
            words_);
}

FxtExporter::Row& FxtExporter::RowOf(const nettrace::EventMetadata& metadata) {
  if (last_metadata_ == &metadata) return *last_row_;
  const auto [entry, added] = rows_.try_emplace(&metadata);
  Row& row = entry->second;
  if (added) {
    const auto has_own_name = [](const nettrace::Field& field) {
      return field.name.size() <= kMaxFlatName &&
             std::find(std::begin(kProperties), std::end(kProperties), field.name) ==
                 std::end(kProperties);
    };
    row.is_flat = metadata.fields.size() <= kMaxArguments &&
                  std::all_of(metadata.fields.begin(), metadata.fields.end(), has_own_name);
    for (auto& refs : row.refs) refs.resize(row.is_flat ? metadata.fields.size() : 0);
  }
  last_metadata_ = &metadata;
  last_row_ = &row;
  return row;
}

std::uint16_t FxtExporter::KnownRef(std::string_view prefix, std::string_view text,
                                    std::uint16_t* reference) {
  if (*reference != 0) return *reference;
  if (prefix.empty()) return *reference = StringRef(text);
  const std::string name = absl::StrCat(std::string(prefix), base::ValidUtf8(text));
  return *reference = StringRef(name);
}

void FxtExporter::PutProperties(const EventHead& head, const nettrace::Event& event) {
  const std::string_view prefix = head.ended != nullptr ? kOfStop : "";
  auto& refs = property_refs_[head.ended != nullptr ? 1 : 0];
  const auto ref = [&](Property property) {
    return KnownRef(prefix, kProperties[property], &refs[property]);
  };
  const auto put_guid = [&](Property property, const std::optional<nettrace::Guid>& guid) {
    if (!guid) return;
    text_.clear();
    base::AppendGuid(*guid, &text_);
    words_.PutText(ref(property), text_);
  };
  words_.PutUnsigned(ref(kLevel), event.level());
  base::ShortText<18> keywords;
  keywords.Add("0x");
  keywords.AddNumber(event.keywords(), 16);
  words_.PutText(ref(kKeywords), keywords.text());
  if (event.opcode() != 0) words_.PutUnsigned(ref(kOpcode), event.opcode());
  if (event.processor != nettrace::kNoProcessor) words_.PutUnsigned(ref(kCpu), event.processor);
  put_guid(kActivityId, event.labels->activity_id);
  put_guid(kRelatedActivityId, event.labels->related_activity_id);
}

bool FxtExporter::PutFlatEvent(const EventHead& head, const exporting::ExportedEvent& exported) {
  using Kind = exporting::FieldValues::Kind;
  const nettrace::Event& event = *exported.event;
  const nettrace::EventMetadata& metadata = *event.metadata;
  if (head.ended != nullptr && (trace::EventName(metadata) != head.ended->name ||
                                metadata.provider != head.ended->provider)) {
    return false;
  }
  MakeRoomForStrings();
  Row& row = RowOf(metadata);
  if (!row.is_flat || exported.payloads->NotesOf(metadata).repeats_names ||
      !values_.Read(event, exported.payloads).ok() || !values_.is_flat()) {
    return false;
  }
  const std::vector<exporting::FieldValues::Value>& values = values_.values();
  const std::size_t ids =
      (event.labels->activity_id ? 1u : 0u) + (event.labels->related_activity_id ? 1u : 0u);
  const std::size_t arguments = values.size() + 2 + (event.opcode() != 0 ? 1u : 0u) +
                                (event.processor != nettrace::kNoProcessor ? 1u : 0u) + ids;
  std::size_t texts = 1 + ids;
  std::size_t longest = 0;
  for (const auto& value : values) {
    if (value.kind != Kind::kText) continue;
    ++texts;
    longest = std::max(longest, value.size);
  }
  if (arguments > kMaxArguments || longest > kMaxText / texts) return false;

  const std::uint8_t thread = ThreadRef(head.ids);
  const std::uint16_t category = KnownRef("", head.category, &row.category);
  const std::uint16_t name =
      head.ended != nullptr ? StringRef(head.name) : KnownRef("", head.name, &row.name);
  words_.Clear();
  words_.Put(TicksOf(head.time));
  PutProperties(head, event);
  const std::string_view prefix = head.ended != nullptr ? kOfStop : "";
  auto& refs = row.refs[head.ended != nullptr ? 1 : 0];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t field = KnownRef(prefix, metadata.fields[i].name, &refs[i]);
    switch (values[i].kind) {
      case Kind::kNull:
        words_.PutArgumentHead(ArgumentType::kNull, field, 0, 0);
        break;
      case Kind::kFalse:
      case Kind::kTrue:
        words_.PutArgumentHead(ArgumentType::kBool, field, values[i].kind == Kind::kTrue ? 1 : 0,
                               0);
        break;
      case Kind::kNumber:
        words_.PutNumber(field, values_.TextOf(values[i]));
        break;
      case Kind::kText:
        words_.PutText(field, values_.TextOf(values[i]));
        break;
      case Kind::kArray:  // does not occur, because the values are flat
        break;
    }
  }
  EndEvent(head, {thread, category, name}, arguments);
  return true;
}

void FxtExporter::PutArrow(const trace::OpenSlices::Slice& from, const trace::Ids& to_ids,
                           const exporting::ExportedEvent& to) {
  // Readers attach each end of a flow to the duration that is open on the thread of that end. An
  // instant is no duration, so each end gets a duration of length 0 around it. The first duration
  // may be written late, because readers sort all records by time.
  ++arrows_;
  const EventHead begin = {EventType::kDurationBegin, from.begin, from.ids, trace::kArrows,
                           from.name};
  const EventHead end = {EventType::kDurationBegin, to.time, to_ids, trace::kArrows,
                         trace::EventName(*to.event->metadata)};
  for (auto [head, flow] :
       {std::pair(begin, EventType::kFlowBegin), std::pair(end, EventType::kFlowEnd)}) {
    PutEvent(head);
    head.type = flow;
    head.number = arrows_;
    PutEvent(head);
    head.type = EventType::kDurationEnd;
    head.number.reset();
    PutEvent(head);
  }
}

absl::Status FxtExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  const trace::Ids ids = host_ids_.IdsOf(*event.thread);
  const trace::Ids process = {ids.first, 0};
  if (ids.first != 0 && names_.Changes(process, exported.process)) {
    PutKernelObject(process, host_ids_.NameOf(*event.thread, exported.process));
  }
  if (ids.second != 0 && event.thread->name && names_.Changes(ids, *event.thread->name)) {
    PutKernelObject(ids, *event.thread->name);
  }
  const auto& related = event.labels->related_activity_id;
  const trace::OpenSlices::Slice* const from = related ? slices_.Innermost(*related) : nullptr;
  if (from != nullptr) PutArrow(*from, ids, exported);
  EventHead head = {EventType::kInstant, exported.time, ids, event.metadata->provider,
                    trace::EventName(*event.metadata)};
  std::optional<trace::OpenSlices::Slice> ended;
  if (trace::BeginsActivity(event)) {
    slices_.Begin(event, exported.time, ids);
    head.type = EventType::kAsyncBegin;
  } else if (trace::EndsActivity(event)) {
    ended = slices_.End(event);
  }
  if (ended) {
    head.type = EventType::kAsyncEnd;
    head.name = ended->name;
    head.ended = &*ended;
  }
  if (head.type != EventType::kInstant) head.number = CorrelationOf(*event.labels->activity_id);
  if (!PutFlatEvent(head, exported)) PutEvent(head, ArgumentsOf(exported, head.ended));
  return output_.Appended();
}

absl::Status FxtExporter::OnLoss(const trace::Loss& loss) {
  const trace::Ids ids = {kLossesId, kLossesId};
  for (const trace::Ids& object : {trace::Ids{kLossesId, 0}, ids}) {
    if (names_.Changes(object, kLost)) PutKernelObject(object, kLost);
  }
  std::vector<Argument> arguments = {NumberOf("count", loss.count)};
  if (loss.capture_thread->name) {
    arguments.push_back(TextOf("thread", *loss.capture_thread->name));
  }
  PutEvent({EventType::kInstant, loss.time, ids, kLost, kLost}, arguments);
  lost_ += loss.count;
  PutEvent({EventType::kCounter, loss.time, ids, kLost, kLost, 0}, {NumberOf("events", lost_)});
  return output_.Appended();
}

std::string FxtExporter::Remark() const {
  if (texts_cut_ == 0) return "";
  return absl::StrCat("shortened ", base::Counted(texts_cut_, "text"),
                      ", because the size of an fxt record is limited");
}

void FxtExporter::OnRowsEnd(bool /*threads_too*/) {
  rows_.clear();
  last_metadata_ = nullptr;
}

absl::Status FxtExporter::Finish() { return output_.Flush(); }

}  // namespace tools::fxt
