#include "tools/nettrace/query/event_tables.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/query/sql_values.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_name.h"
#include "tools/trace/hosts.h"

namespace tools::query {
namespace {

// Collects fields. A handler of exporting::ReadPayload.
class FieldCollector : public exporting::FieldHandler<FieldCollector> {
 public:
  std::vector<FieldValue> Take() { return std::move(fields_); }

  bool Value(FieldValue::Type type, std::string_view text) {
    fields_.push_back({path_, type, std::string(text)});
    return true;
  }
  bool Member(std::string_view name) {
    path_.resize(structs_.back());
    if (!path_.empty()) path_ += '.';
    path_ += name;
    return true;
  }
  bool BeginStruct() {
    structs_.push_back(path_.size());
    return true;
  }
  bool EndStruct() {
    structs_.pop_back();
    return true;
  }

 private:
  std::vector<FieldValue> fields_;
  std::string path_;
  std::vector<std::size_t> structs_;  // for each open struct, the size of its path
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

// A column: its name, and the function that passes its value in a row of Source to SQLite.
template <typename Source>
struct Column {
  ColumnFacts facts;
  void (*put)(Source& source, sqlite3_context* to);
};

template <typename Source, std::size_t kCount>
constexpr std::array<ColumnFacts, kCount> FactsOf(const Column<Source> (&columns)[kCount]) {
  std::array<ColumnFacts, kCount> facts = {};
  for (std::size_t i = 0; i < kCount; ++i) facts[i] = columns[i].facts;
  return facts;
}

using Reading = Inputs::Reading;

// The columns that events and fields have in common.
constexpr Column<Reading> kNumber = {
    {"number INTEGER", Property::kNumber},
    [](Reading& reading, sqlite3_context* to) { PutInteger(to, reading.number()); }};
constexpr Column<Reading> kTime = {
    {"time INTEGER", Property::kTime},
    [](Reading& reading, sqlite3_context* to) { PutTime(to, reading.time()); }};
constexpr Column<Reading> kProvider = {
    {"provider TEXT", Property::kProvider},
    [](Reading& reading, sqlite3_context* to) { PutText(to, reading.event().metadata->provider); }};
constexpr Column<Reading> kName = {{"name TEXT", Property::kName},
                                   [](Reading& reading, sqlite3_context* to) {
                                     PutText(to, trace::EventName(*reading.event().metadata));
                                   }};

void PutPayload(Reading& reading, sqlite3_context* to) {
  trace::PayloadJson* const payloads = reading.payloads();
  // If the payload does not match its fields, the JSON has the fields that can be read.
  payloads->Put(reading.event(), payloads->StartJson()).IgnoreError();
  PutText(to, payloads->json());
}

constexpr Column<Reading> kEventColumns[] = {
    kNumber,
    kTime,
    {{"relative INTEGER"},
     [](Reading& reading, sqlite3_context* to) { PutSigned(to, reading.relative()); }},
    kProvider,
    kName,
    {{"id INTEGER"},
     [](Reading& reading, sqlite3_context* to) {
       PutInteger(to, reading.payloads()->NotesOf(*reading.event().metadata).id);
     }},
    {{"level INTEGER", Property::kLevel},
     [](Reading& reading, sqlite3_context* to) { PutInteger(to, reading.event().level()); }},
    {{"keyword INTEGER"},
     [](Reading& reading, sqlite3_context* to) { PutInteger(to, reading.event().keywords()); }},
    {{"opcode INTEGER"},
     [](Reading& reading, sqlite3_context* to) { PutInteger(to, reading.event().opcode()); }},
    {{"pid INTEGER", Property::kPid},
     [](Reading& reading, sqlite3_context* to) {
       PutOptional(to, reading.event().thread->process_id);
     }},
    {{"tid INTEGER", Property::kTid},
     [](Reading& reading, sqlite3_context* to) {
       PutOptional(to, reading.event().thread->thread_id);
     }},
    {{"cpu INTEGER"},
     [](Reading& reading, sqlite3_context* to) {
       PutOptional(to, trace::ProcessorOf(reading.event()));
     }},
    {{"process TEXT"},
     [](Reading& reading, sqlite3_context* to) {
       PutName(to, reading.processes().NameOf(*reading.event().thread));
     }},
    {{"thread TEXT"},
     [](Reading& reading, sqlite3_context* to) {
       const std::optional<std::string>& name = reading.event().thread->name;
       return name ? PutText(to, *name) : sqlite3_result_null(to);
     }},
    {{"activity TEXT"},
     [](Reading& reading, sqlite3_context* to) {
       PutGuid(to, reading.event().labels->activity_id);
     }},
    {{"related TEXT"},
     [](Reading& reading, sqlite3_context* to) {
       PutGuid(to, reading.event().labels->related_activity_id);
     }},
    {{"host TEXT"},
     [](Reading& reading, sqlite3_context* to) {
       PutName(to, trace::HostNameOf(*reading.event().thread));
     }},
    {{"payload TEXT"}, PutPayload},
    {{"json TEXT HIDDEN"},
     [](Reading& reading, sqlite3_context* to) {
       PutText(to, trace::EventToJson(reading.reader(), reading.event(), reading.payloads()));
     }},
};
constexpr auto kEventFacts = FactsOf(kEventColumns);

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
  Reading& reading() { return events_.reading(); }
  const FieldValue& field() const { return fields_[index_]; }
  std::int64_t row_id() const override {
    return (events_.row_id() << kFieldBits) + static_cast<std::int64_t>(index_);
  }

 private:
  // Bits of a row id for the index of a field. An event has fewer than 2^24 fields, because its
  // metadata row has fewer than 2^24 bytes.
  static constexpr int kFieldBits = 24;

  // Reads the fields of the current event, or of the next event that has fields.
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

// Returns a column of the table `fields` from kColumn, a column of the table `events`. Each field
// of an event has the value of the event in this column.
template <const Column<Reading>& kColumn>
constexpr Column<FieldCursor> OfEvent() {
  return {kColumn.facts,
          [](FieldCursor& fields, sqlite3_context* to) { kColumn.put(fields.reading(), to); }};
}

constexpr Column<FieldCursor> kFieldColumns[] = {
    OfEvent<kNumber>(),
    OfEvent<kTime>(),
    OfEvent<kProvider>(),
    OfEvent<kName>(),
    {{"field TEXT"},
     [](FieldCursor& fields, sqlite3_context* to) { PutText(to, fields.field().path); }},
    {{"type TEXT"},
     [](FieldCursor& fields, sqlite3_context* to) { PutText(to, TypeName(fields.field())); }},
    {{"value"},
     [](FieldCursor& fields, sqlite3_context* to) { PutFieldValue(to, fields.field()); }},
};
constexpr auto kFieldFacts = FactsOf(kFieldColumns);

void FieldCursor::Put(int column, sqlite3_context* to) { kFieldColumns[column].put(*this, to); }

template <typename T>
std::unique_ptr<Cursor> OpenCursor(Inputs* inputs) {
  return std::make_unique<T>(inputs);
}

}  // namespace

const Table kEventTable = {"events", kEventFacts, true, OpenCursor<EventCursor>};
const Table kFieldTable = {"fields", kFieldFacts, true, OpenCursor<FieldCursor>};

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
    // Ends the previous reading first, because Open fails if there are kMaxReaders readings.
    reading_.reset();
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

void EventCursor::Put(int column, sqlite3_context* to) { kEventColumns[column].put(*reading_, to); }

}  // namespace tools::query
