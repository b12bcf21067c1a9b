#include "tools/nettrace/export/fxt/fxt_exporter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/little_endian.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::fxt {
namespace {

constexpr std::uint64_t kTicksPerSecond = 1'000'000'000;
// Id of the only provider. Readers do not show its name.
constexpr std::uint64_t kProviderId = 1;

constexpr std::uint16_t kMaxStringIndex = 0x7FFF;
constexpr std::size_t kMaxString = 32'000;
// Bytes of text in the string table. Before it would exceed this, the table is cleared.
constexpr std::size_t kMaxStringsSize = std::size_t{16} << 20;
constexpr std::size_t kMaxThreadIndex = 0xFF;

void PutWord(std::uint64_t word, std::string* out) {
  char bytes[8];
  nettrace::internal::StoreLittleEndian(word, reinterpret_cast<std::byte*>(bytes));
  out->append(bytes, sizeof bytes);
}

std::uint64_t WordsOf(std::string_view text) { return (text.size() + 7) / 8; }

// Appends the text, padded to whole words.
void PutStream(std::string_view text, std::string* out) {
  out->append(text);
  out->append(WordsOf(text) * 8 - text.size(), '\0');
}

// Appends the first word of an argument whose value has `words` words.
void PutArgumentHead(ArgumentType type, std::uint16_t name, std::uint64_t in_head,
                     std::uint64_t words, std::string* out) {
  PutWord(static_cast<std::uint64_t>(type) | (1 + words) << 4 | std::uint64_t{name} << 16 |
              in_head << 32,
          out);
}

void PutWordArgument(ArgumentType type, std::uint16_t name, std::uint64_t value, std::string* out) {
  PutArgumentHead(type, name, 0, 1, out);
  PutWord(value, out);
}

// Appends a number that is given as JSON.
void PutNumberArgument(std::uint16_t name, const std::string& digits, std::string* out) {
  std::int64_t negative = 0;
  std::uint64_t positive = 0;
  double real = 0;
  if (absl::SimpleAtoi(digits, &positive)) {
    if (positive <= 0xFFFF'FFFF)
      return PutArgumentHead(ArgumentType::kUInt32, name, positive, 0, out);
    return PutWordArgument(ArgumentType::kUInt64, name, positive, out);
  }
  if (absl::SimpleAtoi(digits, &negative)) {
    if (negative >= INT32_MIN) {
      return PutArgumentHead(ArgumentType::kInt32, name, static_cast<std::uint32_t>(negative), 0,
                             out);
    }
    return PutWordArgument(ArgumentType::kInt64, name, static_cast<std::uint64_t>(negative), out);
  }
  (void)absl::SimpleAtod(digits, &real);
  PutWordArgument(ArgumentType::kDouble, name, std::bit_cast<std::uint64_t>(real), out);
}

Argument NumberOf(std::string name, std::uint64_t number) {
  return {std::move(name), Argument::Kind::kNumber, absl::StrCat(number)};
}

Argument TextOf(std::string name, std::string_view text) {
  return {std::move(name), Argument::Kind::kText, base::ValidUtf8(text)};
}

// Returns the properties of an event and then its fields. `ended` is the slice that the event ends,
// or null.
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
  if (!exported.payload_error.empty()) {
    arguments.push_back(TextOf(prefix + "error", exported.payload_error));
  }
  AppendFields(exported.payload_json, prefix, &arguments);
  return arguments;
}

// Returns nanoseconds since 1970. Perfetto reads them as signed numbers.
std::uint64_t TicksOf(absl::Time time) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(absl::ToUnixNanos(time), 0));
}

// Combines the 128 bits of an activity id into 64 bits.
std::uint64_t CorrelationOf(const nettrace::Guid& activity) {
  std::uint64_t halves[2];
  static_assert(sizeof halves == sizeof activity);
  std::memcpy(halves, activity.data(), sizeof halves);
  return halves[0] ^ std::rotl(halves[1] * 0x9E37'79B9'7F4A'7C15, 32);
}

}  // namespace

void FxtExporter::PutRecord(RecordType type, std::uint64_t head, std::string_view words) {
  PutWord(static_cast<std::uint64_t>(type) | (1 + words.size() / 8) << 4 | head, &pending_);
  pending_ += words;
}

FxtExporter::FxtExporter(nettrace::Sink* sink) : output_(sink) {
  PutWord(kMagic, &pending_);
  std::string words;
  constexpr std::string_view kName = kProviderName;
  PutStream(kName, &words);
  PutRecord(RecordType::kMetadata,
            kProviderInfo << 16 | kProviderId << 20 | std::uint64_t{kName.size()} << 52, words);
  PutRecord(RecordType::kMetadata, kProviderSection << 16 | kProviderId << 20, "");
  words.clear();
  PutWord(kTicksPerSecond, &words);
  PutRecord(RecordType::kInitialization, 0, words);
}

// Clears the string table if it may not have room for another record. Must be called before a
// record takes its first reference, because a cleared table reuses the indices.
void FxtExporter::MakeRoomForStrings() {
  constexpr std::size_t kMaxRefs = 2 + kMaxArguments;
  if (strings_.size() + kMaxRefs <= kMaxStringIndex &&
      strings_size_ + kMaxRefs * kMaxString <= kMaxStringsSize) {
    return;
  }
  strings_.clear();
  strings_size_ = 0;
  recent_.fill({});
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
  // The table has only valid texts that are not too long, so a text that is in it needs no changes.
  const auto in_table = strings_.find(absl::string_view(text.data(), text.size()));
  if (in_table != strings_.end()) return in_table->second;
  std::string valid = CutText(base::ValidUtf8(text), kMaxString);
  const auto index = static_cast<std::uint16_t>(strings_.size() + 1);
  const auto [entry, added] = strings_.try_emplace(std::move(valid), index);
  if (!added) return entry->second;
  const std::string& known = entry->first;
  strings_size_ += known.size();
  std::string words;
  PutStream(known, &words);
  PutRecord(RecordType::kString, std::uint64_t{index} << 16 | std::uint64_t{known.size()} << 32,
            words);
  return index;
}

std::uint8_t FxtExporter::ThreadRef(const trace::Ids& ids) {
  const auto known = threads_.find(ids);
  if (known != threads_.end()) return known->second;
  if (threads_.size() == kMaxThreadIndex) threads_.clear();
  const auto index = static_cast<std::uint8_t>(threads_.size() + 1);
  threads_.emplace(ids, index);
  std::string words;
  PutWord(ids.first, &words);
  PutWord(ids.second, &words);
  PutRecord(RecordType::kThread, std::uint64_t{index} << 16, words);
  return index;
}

// Thread 0 in `ids` stands for the process itself.
void FxtExporter::PutKernelObject(const trace::Ids& ids, std::string_view name) {
  const auto& [process, thread] = ids;
  const bool is_process = thread == 0;
  MakeRoomForStrings();
  const std::uint64_t name_ref = StringRef(name);
  std::string words;
  PutWord(is_process ? process : thread, &words);
  if (!is_process) {
    PutWordArgument(ArgumentType::kKoid, StringRef("process"), process, &words);
  }
  PutRecord(RecordType::kKernelObject,
            (is_process ? kProcessObject : kThreadObject) << 16 | name_ref << 24 |
                (is_process ? std::uint64_t{0} : std::uint64_t{1}) << 40,
            words);
}

void FxtExporter::PutArgument(const Argument& argument, std::size_t max_text, std::string* words) {
  const std::uint16_t name = StringRef(argument.name);
  switch (argument.kind) {
    case Argument::Kind::kNull:
      return PutArgumentHead(ArgumentType::kNull, name, 0, 0, words);
    case Argument::Kind::kFalse:
    case Argument::Kind::kTrue:
      return PutArgumentHead(ArgumentType::kBool, name,
                             argument.kind == Argument::Kind::kTrue ? 1 : 0, 0, words);
    case Argument::Kind::kNumber:
      return PutNumberArgument(name, argument.text, words);
    case Argument::Kind::kText:
      break;
  }
  std::string cut;
  std::string_view text = argument.text;
  if (text.size() > max_text) {
    ++texts_cut_;
    text = cut = CutText(text, max_text);
  }
  PutArgumentHead(ArgumentType::kString, name, text.empty() ? 0 : kInlineString | text.size(),
                  WordsOf(text), words);
  PutStream(text, words);
}

void FxtExporter::PutEvent(const EventHead& head, const std::vector<Argument>& arguments,
                           std::optional<std::uint64_t> number) {
  MakeRoomForStrings();
  const std::uint64_t thread = ThreadRef(head.ids);
  const std::uint64_t category = StringRef(head.category);
  const std::uint64_t name = StringRef(head.name);
  std::string words;
  PutWord(TicksOf(head.time), &words);
  const auto texts = static_cast<std::size_t>(std::count_if(
      arguments.begin(), arguments.end(),
      [](const Argument& argument) { return argument.kind == Argument::Kind::kText; }));
  for (const Argument& argument : arguments) {
    PutArgument(argument, texts == 0 ? 0 : kMaxText / texts, &words);
  }
  if (number) PutWord(*number, &words);
  PutRecord(RecordType::kEvent,
            static_cast<std::uint64_t>(head.type) << 16 | std::uint64_t{arguments.size()} << 20 |
                thread << 24 | category << 32 | name << 48,
            words);
}

void FxtExporter::PutArrow(const trace::OpenSlices::Slice& from,
                           const exporting::ExportedEvent& to) {
  // Readers attach the ends of a flow to the durations that are open on their threads, and sort all
  // records by time. Therefore, each end gets a short duration around it.
  ++arrows_;
  const EventHead begin = {EventType::kDurationBegin, from.begin, from.ids, kArrows, from.name};
  const EventHead end = {EventType::kDurationBegin, to.time, trace::IdsOf(*to.event->thread),
                         kArrows, trace::EventName(*to.event->metadata)};
  for (auto [head, flow] :
       {std::pair(begin, EventType::kFlowBegin), std::pair(end, EventType::kFlowEnd)}) {
    PutEvent(head);
    head.type = flow;
    PutEvent(head, {}, arrows_);
    head.type = EventType::kDurationEnd;
    PutEvent(head);
  }
}

absl::Status FxtExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  const trace::Ids ids = trace::IdsOf(*event.thread);
  const trace::Ids process = {ids.first, 0};
  if (ids.first != 0 && names_.Changes(process, exported.process)) {
    PutKernelObject(process, exported.process);
  }
  if (ids.second != 0 && event.thread->name && names_.Changes(ids, *event.thread->name)) {
    PutKernelObject(ids, *event.thread->name);
  }
  const auto& related = event.labels->related_activity_id;
  const trace::OpenSlices::Slice* const from = related ? slices_.Innermost(*related) : nullptr;
  if (from != nullptr) PutArrow(*from, exported);
  EventHead head = {EventType::kInstant, exported.time, ids, event.metadata->provider,
                    trace::EventName(*event.metadata)};
  std::optional<std::uint64_t> correlation;
  std::optional<trace::OpenSlices::Slice> ended;
  if (trace::BeginsActivity(event)) {
    slices_.Begin(event, exported.time);
    head.type = EventType::kAsyncBegin;
  } else if (trace::EndsActivity(event)) {
    ended = slices_.End(event);
  }
  if (ended) {
    head.type = EventType::kAsyncEnd;
    head.name = ended->name;
  }
  if (head.type != EventType::kInstant) correlation = CorrelationOf(*event.labels->activity_id);
  PutEvent(head, ArgumentsOf(exported, ended ? &*ended : nullptr), correlation);
  return WritePending();
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
  PutEvent({EventType::kCounter, loss.time, ids, kLost, kLost}, {NumberOf("events", lost_)}, 0);
  return WritePending();
}

std::string FxtExporter::Remark() const {
  if (texts_cut_ == 0) return "";
  return absl::StrCat(texts_cut_,
                      " texts were shortened, because they exceed the size of an fxt record");
}

absl::Status FxtExporter::WritePending() {
  absl::Status status = output_.Write(pending_);
  pending_.clear();
  return status;
}

absl::Status FxtExporter::Finish() {
  RETURN_IF_ERROR(WritePending());
  return output_.Flush();
}

}  // namespace tools::fxt
