#include "tools/nettrace/query/event_tables.h"

#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/export/payload_reader.h"
#include "tools/nettrace/query/sql_values.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_name.h"

namespace tools::query {
namespace {

// The columns of `events`, in the order of kEventColumns.
enum EventColumn : int {
  kEventNumber,
  kEventTime,
  kEventRelative,
  kEventProvider,
  kEventName,
  kEventId,
  kEventLevel,
  kEventKeyword,
  kEventOpcode,
  kEventPid,
  kEventTid,
  kEventCpu,
  kEventProcess,
  kEventThread,
  kEventActivity,
  kEventRelated,
  kEventPayload,
  kEventJson,
};
constexpr ColumnFacts kEventColumns[] = {
    {"number INTEGER", Property::kNumber},
    {"time INTEGER", Property::kTime},
    {"relative INTEGER"},
    {"provider TEXT", Property::kProvider},
    {"name TEXT", Property::kName},
    {"id INTEGER"},
    {"level INTEGER", Property::kLevel},
    {"keyword INTEGER"},
    {"opcode INTEGER"},
    {"pid INTEGER", Property::kPid},
    {"tid INTEGER", Property::kTid},
    {"cpu INTEGER"},
    {"process TEXT"},
    {"thread TEXT"},
    {"activity TEXT"},
    {"related TEXT"},
    {"payload TEXT"},
    {"json TEXT HIDDEN"},
};

// The columns of `fields`, in the order of kFieldColumns.
enum FieldColumn : int {
  kFieldNumber,
  kFieldTime,
  kFieldProvider,
  kFieldName,
  kFieldPath,
  kFieldType,
  kFieldValue,
};
constexpr ColumnFacts kFieldColumns[] = {
    {"number INTEGER", Property::kNumber},
    {"time INTEGER", Property::kTime},
    {"provider TEXT", Property::kProvider},
    {"name TEXT", Property::kName},
    {"field TEXT"},
    {"type TEXT"},
    {"value"},
};

// Collects fields. A handler of exporting::PayloadReader.
class FieldCollector : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, FieldCollector> {
 public:
  std::vector<FieldValue> Take() { return std::move(fields_); }

  bool Null() { return depth_ == 0 ? Add(FieldValue::Type::kNull, {}) : array_.Null(); }
  bool Bool(bool value) {
    if (depth_ != 0) return array_.Bool(value);
    return Add(FieldValue::Type::kBoolean, value ? "true" : "false");
  }
  bool RawNumber(const char* digits, rapidjson::SizeType size, bool /*copy*/) {
    if (depth_ != 0) return array_.RawValue(digits, size, rapidjson::kNumberType);
    return Add(FieldValue::Type::kNumber, {digits, size});
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return depth_ == 0 ? Add(FieldValue::Type::kText, {text, size}) : array_.String(text, size);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    if (depth_ != 0) return array_.Key(text, size);
    path_.resize(structs_.back());
    if (!path_.empty()) path_ += '.';
    path_.append(text, size);
    return true;
  }
  bool StartObject() {
    if (depth_ != 0) return array_.StartObject();
    structs_.push_back(path_.size());
    return true;
  }
  bool EndObject(rapidjson::SizeType /*members*/) {
    if (depth_ != 0) return array_.EndObject();
    structs_.pop_back();
    return true;
  }
  bool StartArray() {
    if (depth_++ == 0) {
      buffer_.Clear();
      array_.Reset(buffer_);
    }
    return array_.StartArray();
  }
  bool EndArray(rapidjson::SizeType /*elements*/) {
    array_.EndArray();
    if (--depth_ != 0) return true;
    return Add(FieldValue::Type::kArray, {buffer_.GetString(), buffer_.GetSize()});
  }

 private:
  bool Add(FieldValue::Type type, std::string_view text) {
    fields_.push_back({path_, type, std::string(text)});
    return true;
  }

  std::vector<FieldValue> fields_;
  std::string path_;
  std::vector<std::size_t> structs_;  // for each open struct, the size of its path
  int depth_ = 0;                     // number of open arrays
  rapidjson::StringBuffer buffer_;
  base::JsonWriter array_;
};

// Returns whether the digits of a JSON number are those of an integer that SQLite can hold. If so,
// stores the integer in `*number`.
bool IsInteger(const std::string& digits, std::int64_t* number) {
  return digits.find_first_of(".eE") == digits.npos && absl::SimpleAtoi(digits, number);
}

const char* TypeName(const FieldValue& field) {
  std::int64_t number = 0;
  switch (field.type) {
    case FieldValue::Type::kNull:
      return "null";
    case FieldValue::Type::kBoolean:
      return "boolean";
    case FieldValue::Type::kNumber:
      return IsInteger(field.text, &number) ? "integer" : "real";
    case FieldValue::Type::kText:
      return "text";
    case FieldValue::Type::kArray:
      return "array";
  }
  return "null";
}

void PutPayload(Inputs::Reading& reading, sqlite3_context* to) {
  trace::PayloadJson* const payloads = reading.payloads();
  // If the payload does not match its fields, the JSON has the fields that can be read.
  payloads->Put(reading.event(), payloads->StartJson()).IgnoreError();
  PutText(to, payloads->json());
}

class FieldCursor : public Cursor {
 public:
  explicit FieldCursor(Inputs* inputs) : events_(inputs) {}

  absl::Status Start(const Conditions& conditions) override {
    RETURN_IF_ERROR(events_.Start(conditions));
    return FindFields();
  }
  absl::Status Next() override {
    if (++index_ < fields_.size()) return absl::OkStatus();
    RETURN_IF_ERROR(events_.Next());
    return FindFields();
  }
  bool is_at_end() const override { return events_.is_at_end(); }
  void Put(int column, sqlite3_context* to) override;
  std::int64_t row_id() const override {
    return (events_.row_id() << kFieldBits) + static_cast<std::int64_t>(index_);
  }

 private:
  // Bits for the index of a field. An event has fewer than 2^24 fields, because its metadata row
  // has fewer than 2^24 bytes.
  static constexpr int kFieldBits = 24;

  // Reads the fields of the current event, or of the next one that has fields.
  absl::Status FindFields() {
    for (index_ = 0; !events_.is_at_end();) {
      Inputs::Reading& reading = events_.reading();
      trace::PayloadJson* const payloads = reading.payloads();
      payloads->Put(reading.event(), payloads->StartJson()).IgnoreError();
      fields_ = FieldsOf(payloads->json());
      if (!fields_.empty()) break;
      RETURN_IF_ERROR(events_.Next());
    }
    return absl::OkStatus();
  }

  EventCursor events_;
  std::vector<FieldValue> fields_;
  std::size_t index_ = 0;
};

void FieldCursor::Put(int column, sqlite3_context* to) {
  const FieldValue& field = fields_[index_];
  switch (column) {
    case kFieldNumber:
      return events_.Put(kEventNumber, to);
    case kFieldTime:
      return events_.Put(kEventTime, to);
    case kFieldProvider:
      return events_.Put(kEventProvider, to);
    case kFieldName:
      return events_.Put(kEventName, to);
    case kFieldPath:
      return PutText(to, field.path);
    case kFieldType:
      return PutText(to, TypeName(field));
    case kFieldValue:
      return PutFieldValue(to, field);
    default:
      return sqlite3_result_null(to);
  }
}

template <typename T>
std::unique_ptr<Cursor> OpenCursor(Inputs* inputs) {
  return std::make_unique<T>(inputs);
}

}  // namespace

const Table kEventTable = {"events", kEventColumns, true, OpenCursor<EventCursor>};
const Table kFieldTable = {"fields", kFieldColumns, true, OpenCursor<FieldCursor>};

std::vector<FieldValue> FieldsOf(std::string_view payload) {
  FieldCollector collector;
  exporting::ReadPayload(payload, &collector);
  return collector.Take();
}

void PutFieldValue(sqlite3_context* to, const FieldValue& field) {
  std::int64_t integer = 0;
  double real = 0;
  switch (field.type) {
    case FieldValue::Type::kNull:
      return sqlite3_result_null(to);
    case FieldValue::Type::kBoolean:
      return sqlite3_result_int(to, field.text == "true" ? 1 : 0);
    case FieldValue::Type::kNumber:
      if (IsInteger(field.text, &integer)) return PutSigned(to, integer);
      return absl::SimpleAtod(field.text, &real) ? sqlite3_result_double(to, real)
                                                 : PutText(to, field.text);
    case FieldValue::Type::kText:
    case FieldValue::Type::kArray:
      return PutText(to, field.text);
  }
}

absl::Status EventCursor::Start(const Conditions& conditions) {
  conditions_ = conditions;
  is_at_end_ = conditions.is_never_met;
  if (is_at_end_) return absl::OkStatus();
  const bool reads_on =
      conditions.number && reading_ != nullptr && reading_->number() <= *conditions.number;
  if (!reads_on) {
    reading_.reset();  // so that it does not count as a reader
    ASSIGN_OR_RETURN(reading_, inputs_.Open());
    is_read_to_end_ = false;
  } else if (reading_->number() == *conditions.number && !is_read_to_end_ && Meets()) {
    return absl::OkStatus();
  }
  return Find();
}

absl::Status EventCursor::Next() {
  if (!conditions_.number) return Find();
  is_at_end_ = true;
  return absl::OkStatus();
}

absl::Status EventCursor::Find() {
  while (!is_at_end_ && !is_read_to_end_) {
    const Inputs::Reading::Step step = reading_->Next();
    if (step == Inputs::Reading::Step::kEnd) {
      is_read_to_end_ = true;
      is_at_end_ = true;
      return reading_->status();
    }
    if (step == Inputs::Reading::Step::kEvent && Meets()) return absl::OkStatus();
  }
  is_at_end_ = true;
  return absl::OkStatus();
}

bool EventCursor::Meets() {
  if (conditions_.number && reading_->number() != *conditions_.number) {
    is_at_end_ = reading_->number() > *conditions_.number;
    return false;
  }
  // Events come in the order of time, so no later event meets the condition either.
  is_at_end_ = conditions_.filter.to && reading_->time() >= *conditions_.filter.to;
  return !is_at_end_ && conditions_.filter.Passes(reading_->reader(), reading_->event());
}

void EventCursor::Put(int column, sqlite3_context* to) {
  const nettrace::Event& event = reading_->event();
  switch (column) {
    case kEventNumber:
      return PutInteger(to, reading_->number());
    case kEventTime:
      return PutTime(to, reading_->time());
    case kEventRelative:
      return PutSigned(to, reading_->relative());
    case kEventProvider:
      return PutText(to, event.metadata->provider);
    case kEventName:
      return PutText(to, trace::EventName(*event.metadata));
    case kEventId:
      return PutInteger(to, reading_->payloads()->NotesOf(*event.metadata).id);
    case kEventLevel:
      return PutInteger(to, event.level());
    case kEventKeyword:
      return PutInteger(to, event.keywords());
    case kEventOpcode:
      return PutInteger(to, event.opcode());
    case kEventPid:
      return PutOptional(to, event.thread->process_id);
    case kEventTid:
      return PutOptional(to, event.thread->thread_id);
    case kEventCpu:
      return PutOptional(to, trace::ProcessorOf(event));
    case kEventProcess:
      return PutName(to, reading_->processes().NameOf(*event.thread));
    case kEventThread:
      return event.thread->name ? PutText(to, *event.thread->name) : sqlite3_result_null(to);
    case kEventActivity:
      return PutGuid(to, event.labels->activity_id);
    case kEventRelated:
      return PutGuid(to, event.labels->related_activity_id);
    case kEventPayload:
      return PutPayload(*reading_, to);
    case kEventJson:
      return PutText(to, trace::EventToJson(reading_->reader(), event, reading_->payloads()));
    default:
      return sqlite3_result_null(to);
  }
}

}  // namespace tools::query
