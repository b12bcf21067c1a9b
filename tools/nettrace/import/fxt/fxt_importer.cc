#include "tools/nettrace/import/fxt/fxt_importer.h"

#include <algorithm>
#include <limits>
#include <span>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/base/guid_text.h"
#include "tools/base/status_macros.h"
#include "tools/trace/timeline.h"

namespace tools::importing::fxt {
namespace {

using nettrace::Type;
using nettrace::TypeCode;
using tools::fxt::kLost;
using tools::fxt::kOfStop;
using tools::fxt::kProcessObject;
using tools::fxt::kProviderName;
using tools::fxt::kThreadObject;

constexpr char kFuchsia[] = "Fuchsia";
constexpr std::size_t kMaxName = 4096;
constexpr std::uint8_t kStart = 1;
constexpr std::uint8_t kStop = 2;

struct TypeFacts {
  const char* name;
  std::uint8_t opcode;
  const char* number;  // name of the field for the event's number; null if it has no number
};
constexpr TypeFacts kTypes[] = {{"instant", 0, nullptr},
                                {"counter", 0, "counter.id"},
                                {"duration begin", kStart, nullptr},
                                {"duration end", kStop, nullptr},
                                {"duration complete", 0, "duration.end"},
                                {"async begin", kStart, "async.id"},
                                {"async instant", 0, "async.id"},
                                {"async end", kStop, "async.id"},
                                {"flow begin", 0, "flow.id"},
                                {"flow step", 0, "flow.id"},
                                {"flow end", 0, "flow.id"}};

std::string NameOf(std::string_view text) { return std::string(text.substr(0, kMaxName)); }

bool IsInteger(ArgumentType type) {
  return type == ArgumentType::kInt32 || type == ArgumentType::kUInt32 ||
         type == ArgumentType::kInt64 || type == ArgumentType::kUInt64;
}

const Argument* Find(const std::vector<Argument>& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [&](const Argument& one) { return one.name == name; });
  return found == arguments.end() ? nullptr : &*found;
}

}  // namespace

std::uint64_t FxtImporter::TicksOf(std::uint64_t timestamp) const {
  constexpr std::uint64_t kMax = nettrace::internal::traceevent::kMaxEventTimestamp;
  const std::uint64_t ticks_per_second = reader_->ticks_per_second();
  if (ticks_per_second == ticks_per_second_) return std::min(timestamp, kMax);
  const absl::uint128 ticks = absl::uint128(timestamp) * ticks_per_second_ / ticks_per_second;
  return static_cast<std::uint64_t>(std::min(ticks, absl::uint128(kMax)));
}

nettrace::ThreadInfo FxtImporter::ThreadInfoOf(const Thread& thread) const {
  nettrace::ThreadInfo info;
  if (thread.process != 0) info.process_id = thread.process;
  if (thread.thread == 0) return info;
  info.thread_id = thread.thread;
  auto name = thread_names_.find(Ids(thread.process, thread.thread));
  if (name == thread_names_.end()) name = thread_names_.find(Ids(0, thread.thread));
  if (name != thread_names_.end()) info.name = name->second;
  return info;
}

absl::Status FxtImporter::CreateOutput() {
  if (output_ != nullptr) return absl::OkStatus();
  ticks_per_second_ = reader_->ticks_per_second();
  nettrace::TraceInfo info;
  // The format does not specify the time at which its clock was 0. Assumes 1970, which is true for
  // traces of `nettrace export`.
  info.sync_time = absl::UnixEpoch();
  info.ticks_per_second = static_cast<std::int64_t>(ticks_per_second_);
  ASSIGN_OR_RETURN(auto output, TraceOutput::Create(std::move(sink_), info, EventOrder::kAny));
  output_ = std::move(output);
  return absl::OkStatus();
}

absl::Status FxtImporter::Run(std::unique_ptr<nettrace::Sink> sink) {
  sink_ = std::move(sink);
  constexpr std::uint64_t kSteps = 1024;
  std::uint64_t steps = 0;
  while (true) {
    if (check_ != nullptr && steps++ % kSteps == 0) {
      RETURN_IF_ERROR(check_());
    }
    const FxtReader::Step step = reader_->Next();
    if (!reader_->status().ok() && ++damage_count_ <= kMaxDamages) {
      damages_.push_back(reader_->status());
    }
    if (step == FxtReader::Step::kEnd) break;
    RETURN_IF_ERROR(Step(step));
  }
  RETURN_IF_ERROR(CreateOutput());
  return output_->Finish();
}

absl::Status FxtImporter::Step(FxtReader::Step step) {
  switch (step) {
    case FxtReader::Step::kEvent:
      return OnEvent();
    case FxtReader::Step::kContextSwitch:
      return OnContextSwitch();
    case FxtReader::Step::kLog:
      return OnLog();
    case FxtReader::Step::kKernelObject:
      OnKernelObject();
      return absl::OkStatus();
    case FxtReader::Step::kBufferFull:
      ++buffers_full_;
      return absl::OkStatus();
    case FxtReader::Step::kSkipped:
      ++skipped_;
      return absl::OkStatus();
    case FxtReader::Step::kDamaged:
    case FxtReader::Step::kEnd:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

void FxtImporter::OnKernelObject() {
  const KernelObject& object = reader_->kernel_object();
  if (object.type == kProcessObject) {
    if (process_names_.size() >= kMaxNames) process_names_.clear();
    process_names_[object.koid] = NameOf(object.name);
  } else if (object.type == kThreadObject) {
    if (thread_names_.size() >= kMaxNames) thread_names_.clear();
    thread_names_[Ids(object.process, object.koid)] = NameOf(object.name);
  }
}

void FxtImporter::PutNumber(std::string_view name, std::uint64_t number, Row* row) {
  row->metadata.fields.push_back({std::string(name), Type::Simple(TypeCode::kUInt64)});
  payload_.Fixed(number);
}

void FxtImporter::PutField(const Argument& argument, Row* row) {
  nettrace::Field& field = row->metadata.fields.emplace_back();
  field.name = NameOf(argument.name);
  // Writers choose the size of an integer by its value. Here, all integers get 64 bits, so that the
  // same kind of event always has the same fields and needs only one metadata row.
  const bool is_ours = reader_->provider_name() == kProviderName;
  switch (argument.type) {
    case ArgumentType::kNull:
    case ArgumentType::kString: {
      field.type = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
      payload_.Fixed(static_cast<std::uint16_t>(argument.text.size()));
      return payload_.Bytes(std::as_bytes(std::span(argument.text)));
    }
    case ArgumentType::kBool:
      field.type = Type::Simple(TypeCode::kBoolean8);
      return payload_.Fixed(static_cast<std::uint8_t>(argument.number));
    case ArgumentType::kDouble:
      field.type = Type::Simple(TypeCode::kDouble);
      return payload_.Fixed(argument.number);
    case ArgumentType::kInt32:
    case ArgumentType::kInt64:
      field.type = Type::Simple(TypeCode::kInt64);
      return payload_.Fixed(argument.number);
    default:
      // `nettrace export` writes non-negative values of signed fields like those of unsigned
      // fields. In its traces, all values that fit become signed, so that all values of a signed
      // field have one type.
      field.type = Type::Simple(is_ours && argument.number >> 63 == 0 ? TypeCode::kInt64
                                                                      : TypeCode::kUInt64);
      return payload_.Fixed(argument.number);
  }
}

bool FxtImporter::TakeOurs(const Argument& argument, bool is_stop, Row* row) {
  if (argument.name == "keywords" && argument.type == ArgumentType::kString) {
    std::uint64_t keywords = 0;
    if (!absl::SimpleHexAtoi(absl::string_view(argument.text.data(), argument.text.size()),
                             &keywords)) {
      return false;
    }
    if (keywords != 0) row->metadata.keywords = keywords;
    return true;
  }
  if (argument.name == "activityId" || argument.name == "relatedActivityId") {
    const auto guid = base::ParseGuid(argument.text);
    if (!guid) return false;
    auto& label =
        argument.name == "activityId" ? row->labels.activity_id : row->labels.related_activity_id;
    label = *guid;
    return true;
  }
  if (argument.type == ArgumentType::kString && is_stop) {
    if (argument.name == "event") row->metadata.name = NameOf(argument.text);
    // The argument `provider` is not used, because the category of the event is its provider, too.
    return argument.name == "event" || argument.name == "provider";
  }
  if (!IsInteger(argument.type) || argument.number > std::numeric_limits<std::uint32_t>::max()) {
    return false;
  }
  if (argument.name == "cpu") {
    row->processor = static_cast<std::uint32_t>(argument.number);
    return true;
  }
  if (argument.number > std::numeric_limits<std::uint8_t>::max()) return false;
  const auto number = static_cast<std::uint8_t>(argument.number);
  if (argument.name == "level") {
    if (number != 0) row->metadata.level = number;
    return true;
  }
  if (argument.name != "opcode") return false;
  row->metadata.opcode = number;
  return true;
}

void FxtImporter::PutType(const Event& event, Row* row) {
  const TypeFacts& type = kTypes[static_cast<std::size_t>(event.type)];
  row->metadata.key_values.emplace_back(kKeyType, type.name);
  if (type.opcode != 0) row->metadata.opcode = type.opcode;
  if (type.number == nullptr) return;
  // The number of a complete duration is the time of its end, so it is converted to ticks.
  const bool is_time = event.type == EventType::kDurationComplete;
  PutNumber(type.number, is_time ? TicksOf(event.number) : event.number, row);
}

absl::Status FxtImporter::OnEvent() {
  RETURN_IF_ERROR(CreateOutput());
  const Event& event = reader_->event();
  const bool is_ours = reader_->provider_name() == kProviderName;
  if (is_ours && event.category == trace::kArrows) return absl::OkStatus();
  if (is_ours && event.category == kLost && event.name == kLost) return OnLoss();
  Row row;
  row.metadata.provider = NameOf(event.category);
  row.metadata.name = NameOf(event.name);
  payload_.Clear();
  // `nettrace export` writes the properties of an event before its fields. A field may have the
  // name of a property. An argument is therefore a property only if it precedes the first field,
  // and no earlier argument has its name.
  std::vector<std::string_view> taken;
  const bool has_prefix = is_ours && event.type == EventType::kAsyncEnd &&
                          !event.arguments.empty() &&
                          event.arguments.front().name.starts_with(kOfStop);
  for (Argument argument : event.arguments) {
    if (has_prefix && argument.name.starts_with(kOfStop)) {
      argument.name.remove_prefix(std::string_view(kOfStop).size());
    }
    const bool is_new = std::find(taken.begin(), taken.end(), argument.name) == taken.end();
    if (is_ours && is_new && row.metadata.fields.empty() && TakeOurs(argument, has_prefix, &row)) {
      taken.push_back(argument.name);
    } else {
      PutField(argument, &row);
    }
  }
  if (!is_ours) PutType(event, &row);
  return Write(row, event.thread, event.timestamp);
}

// `nettrace export` writes a loss twice: as an instant with the count, and as a counter. Uses only
// the instant.
absl::Status FxtImporter::OnLoss() {
  const Event& event = reader_->event();
  const Argument* const count = Find(event.arguments, "count");
  if (event.type != EventType::kInstant || count == nullptr || !IsInteger(count->type)) {
    return absl::OkStatus();
  }
  const Argument* const thread = Find(event.arguments, "thread");
  nettrace::ThreadInfo capture;
  capture.name = thread == nullptr ? std::string(kLost) : NameOf(thread->text);
  return output_->AddLost(capture, count->number);
}

absl::Status FxtImporter::OnContextSwitch() {
  RETURN_IF_ERROR(CreateOutput());
  const ContextSwitch& change = reader_->context_switch();
  Row row;
  row.metadata.provider = kFuchsia;
  row.metadata.name = "ContextSwitch";
  row.processor = change.cpu;
  payload_.Clear();
  PutNumber("outgoing.process", change.outgoing.process, &row);
  PutNumber("outgoing.thread", change.outgoing.thread, &row);
  PutNumber("outgoing.state", change.outgoing_state, &row);
  PutNumber("outgoing.priority", change.outgoing_priority, &row);
  PutNumber("incoming.process", change.incoming.process, &row);
  PutNumber("incoming.thread", change.incoming.thread, &row);
  PutNumber("incoming.priority", change.incoming_priority, &row);
  return Write(row, change.outgoing, change.timestamp);
}

absl::Status FxtImporter::OnLog() {
  RETURN_IF_ERROR(CreateOutput());
  const Log& log = reader_->log();
  Row row;
  row.metadata.provider = kFuchsia;
  row.metadata.name = "Log";
  payload_.Clear();
  PutField({.type = ArgumentType::kString, .name = "message", .number = 0, .text = log.message},
           &row);
  return Write(row, log.thread, log.timestamp);
}

absl::Status FxtImporter::Write(const Row& row, const Thread& thread, std::uint64_t timestamp) {
  const nettrace::EventMetadata& metadata = row.metadata;
  const nettrace::ThreadInfo info = ThreadInfoOf(thread);
  // Each CPU has a capture thread, as in recordings. For events without a CPU, each thread has a
  // capture thread. Capture threads have names but no ids: TraceOutput must remove a capture thread
  // before an event that is earlier than its last one, and Writer::RemoveThread refuses some
  // threads with an id.
  nettrace::ThreadInfo capture;
  capture.name = row.processor != nettrace::kNoProcessor
                     ? absl::StrCat("CPU ", row.processor)
                     : absl::StrCat("thread ", thread.process, "/", thread.thread);
  const std::uint64_t ticks = TicksOf(timestamp);
  if (const auto process = process_names_.find(thread.process); process != process_names_.end()) {
    RETURN_IF_ERROR(output_->NameProcess(thread.process, process->second, ticks));
  }
  std::string key =
      absl::StrCat(metadata.provider.size(), ":", metadata.provider, metadata.name.size(), ":",
                   metadata.name, metadata.level.value_or(0), ":",
                   metadata.opcode ? *metadata.opcode + 1 : 0, ":", metadata.keywords.value_or(0));
  for (const nettrace::Field& field : metadata.fields) {
    absl::StrAppend(&key, ":", static_cast<int>(field.type.code), ":", field.name.size(), ":",
                    field.name);
  }
  for (const auto& [name, value] : metadata.key_values) absl::StrAppend(&key, ":", value);
  const auto make_row = [&] { return metadata; };
  return output_->Write({.row_key = key,
                         .make_row = make_row,
                         .thread = &info,
                         .capture = &capture,
                         .processor = row.processor,
                         .timestamp = ticks,
                         .labels = &row.labels,
                         .stack = {},
                         .payload = payload_.bytes()});
}

}  // namespace tools::importing::fxt
