#include "tools/trace/common_schema.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/base/guid_text.h"
#include "tools/base/values.h"

namespace trace {
namespace {

constexpr std::string_view kVersionField = "__csver__";
constexpr std::uint64_t kVersion4 = 0x400;
constexpr std::uint64_t kMaxSeverity = 24;
constexpr std::string_view kPartA = "PartA";
constexpr std::string_view kPartB = "PartB";
constexpr std::string_view kPartC = "PartC";

enum class RecordMember : std::uint8_t {
  kVersion,
  kTypeName,
  kName,
  kBody,
  kSeverity,
  kSeverityText,
  kTime,
  kTraceId,
  kSpanId,
  kTraceFlags,
  kService,
  kServiceInstance,
};

struct KnownMember {
  std::string_view part;
  std::string_view name;
  RecordMember member;
};

// The fields and members of an event that RecordReader reads.
constexpr KnownMember kKnownMembers[] = {
    {kVersionField, "", RecordMember::kVersion},
    {kPartB, "_typeName", RecordMember::kTypeName},
    {kPartB, "name", RecordMember::kName},
    {kPartB, "body", RecordMember::kBody},
    {kPartB, "severityNumber", RecordMember::kSeverity},
    {kPartB, "severityText", RecordMember::kSeverityText},
    {kPartA, "time", RecordMember::kTime},
    {kPartA, "ext_dt_traceId", RecordMember::kTraceId},
    {kPartA, "ext_dt_spanId", RecordMember::kSpanId},
    {kPartA, "ext_dt_traceFlags", RecordMember::kTraceFlags},
    {kPartA, "ext_cloud_role", RecordMember::kService},
    {kPartA, "ext_cloud_roleInstance", RecordMember::kServiceInstance},
};

std::optional<RecordMember> FindMember(std::string_view part, std::string_view name) {
  const auto* const found = std::find_if(
      std::begin(kKnownMembers), std::end(kKnownMembers),
      [&](const KnownMember& known) { return known.part == part && known.name == name; });
  return found == std::end(kKnownMembers) ? std::nullopt : std::optional(found->member);
}

// Passes each member of PartA, PartB and PartC to an output that is selected by the name of the
// member.
class PartRouter final : public ValueOutput {
 public:
  // Returns the output that receives the value of a member, without its key; null if the value is
  // ignored. `part` is the name of a field of the event. `name` is empty if the field is not a
  // struct.
  using Select = absl::FunctionRef<ValueOutput*(std::string_view part, std::string_view name)>;

  explicit PartRouter(Select select) : select_(select) {}

  void Key(std::string_view name) override {
    if (inner_ != 0) {
      if (output_ != nullptr) output_->Key(name);
    } else if (depth_ == 0) {
      part_ = name;
      name_.clear();
    } else if (depth_ == 1) {
      name_ = name;
    } else {
      name_ = extension_;
      name_.append("_").append(name);
    }
  }
  void BeginObject(bool /*repeats_names*/) override {
    if (inner_ == 0 && depth_ == 0) {
      depth_ = 1;
    } else if (inner_ == 0 && depth_ == 1 && part_ == kPartA && name_.starts_with("ext_")) {
      depth_ = 2;
      extension_ = name_;
    } else {
      Begin([](ValueOutput* out) { out->BeginObject(true); });
    }
  }
  void EndObject(bool /*repeats_names*/) override {
    if (inner_ == 0) {
      --depth_;
    } else {
      End([](ValueOutput* out) { out->EndObject(true); });
    }
  }
  void BeginArray() override {
    Begin([](ValueOutput* out) { out->BeginArray(); });
  }
  void EndArray() override {
    End([](ValueOutput* out) { out->EndArray(); });
  }
  void Null() override {
    Put([](ValueOutput* out) { out->Null(); });
  }
  void Unreadable() override {
    Put([](ValueOutput* out) { out->Unreadable(); });
  }
  void Bool(bool value) override {
    Put([value](ValueOutput* out) { out->Bool(value); });
  }
  void Whole(std::int64_t value) override {
    Put([value](ValueOutput* out) { out->Whole(value); });
  }
  void Whole(std::uint64_t value) override {
    Put([value](ValueOutput* out) { out->Whole(value); });
  }
  void Errno(std::int64_t value) override {
    Put([value](ValueOutput* out) { out->Errno(value); });
  }
  void Single(float value) override {
    Put([value](ValueOutput* out) { out->Single(value); });
  }
  void Double(double value) override {
    Put([value](ValueOutput* out) { out->Double(value); });
  }
  void Text(std::string_view utf8) override {
    Put([utf8](ValueOutput* out) { out->Text(utf8); });
  }
  void Bytes(std::span<const std::byte> bytes) override {
    Put([bytes](ValueOutput* out) { out->Bytes(bytes); });
  }

 private:
  template <typename Call>
  void Put(const Call& call) {
    if (inner_ == 0) output_ = select_(part_, name_);
    if (output_ != nullptr) call(output_);
  }
  template <typename Call>
  void Begin(const Call& call) {
    Put(call);
    ++inner_;
  }
  template <typename Call>
  void End(const Call& call) {
    --inner_;
    if (output_ != nullptr) call(output_);
  }

  const Select select_;
  int depth_ = 0;  // 1 within a part, 2 within a struct ext_... of PartA
  int inner_ = 0;  // open objects and arrays of the value of a member
  std::string part_;
  std::string name_;
  std::string extension_;          // name of the struct at depth 2
  ValueOutput* output_ = nullptr;  // output for the current value
};

// Reads the values of kKnownMembers into a LogRecord.
class RecordReader final : public ValueOutput {
 public:
  // Returns the output for a member, like PartRouter::Select.
  ValueOutput* OutputFor(std::string_view part, std::string_view name) {
    const std::optional<RecordMember> member = FindMember(part, name);
    if (!member) return nullptr;
    const unsigned bit = 1U << static_cast<unsigned>(*member);
    if ((seen_ & bit) != 0) is_valid_ = false;
    seen_ |= bit;
    member_ = *member;
    if (member_ != RecordMember::kBody) return this;
    record_.has_body = true;
    return nullptr;
  }
  // Returns the record if the event has the required members, and all known members that it has are
  // valid.
  std::optional<LogRecord> record() const {
    return is_valid_ && has_version_ && has_type_ ? std::optional(record_) : std::nullopt;
  }

  void Key(std::string_view /*name*/) override {}
  void BeginObject(bool /*repeats_names*/) override { is_valid_ = false; }
  void EndObject(bool /*repeats_names*/) override {}
  void BeginArray() override { is_valid_ = false; }
  void EndArray() override {}
  void Null() override { is_valid_ = false; }
  void Bool(bool /*value*/) override { is_valid_ = false; }
  void Double(double /*value*/) override { is_valid_ = false; }
  void Bytes(std::span<const std::byte> /*bytes*/) override { is_valid_ = false; }
  void Whole(std::int64_t value) override {
    // The conversion makes a negative number so large that no member accepts it.
    Whole(static_cast<std::uint64_t>(value));
  }
  void Whole(std::uint64_t value) override { Require(ReadNumber(value)); }
  void Text(std::string_view utf8) override { Require(ReadText(utf8)); }

 private:
  void Require(bool is_valid) { is_valid_ = is_valid_ && is_valid; }

  bool ReadNumber(std::uint64_t value) {
    switch (member_) {
      case RecordMember::kVersion:
        has_version_ = value == kVersion4;
        return has_version_;
      case RecordMember::kSeverity:
        record_.severity = static_cast<std::uint8_t>(value);
        return value <= kMaxSeverity;
      case RecordMember::kTraceFlags:
        record_.trace_flags = static_cast<std::uint32_t>(value);
        return value <= 0xFFFFFFFF;
      default:
        return false;
    }
  }
  bool ReadText(std::string_view text) {
    std::uint64_t number = 0;
    switch (member_) {
      case RecordMember::kVersion:
      case RecordMember::kSeverity:
      case RecordMember::kTraceFlags:
        // A number whose field has the format hex_int comes as text.
        return text.starts_with("0x") && absl::SimpleHexAtoi(View(text), &number) &&
               ReadNumber(number);
      case RecordMember::kTypeName:
        has_type_ = text == "Log";
        return has_type_;
      case RecordMember::kName:
        record_.name = text;
        return true;
      case RecordMember::kSeverityText:
        record_.severity_text = text;
        return true;
      case RecordMember::kService:
        record_.service = text;
        return true;
      case RecordMember::kServiceInstance:
        record_.service_instance = text;
        return true;
      default:
        return ReadTimeOrId(text);
    }
  }
  bool ReadTimeOrId(std::string_view text) {
    if (member_ == RecordMember::kTime) {
      const absl::StatusOr<absl::Time> time = base::ParseTime(text);
      if (time.ok()) record_.time = *time;
      return time.ok();
    }
    // An id that is empty or zero means that the record belongs to no trace or span.
    if (text.empty()) return true;
    const std::size_t digits = member_ == RecordMember::kTraceId ? 32 : 16;
    const std::string padded = std::string(32 - digits, '0').append(text);
    const auto id = text.size() == digits ? base::ParseHex128(padded) : std::nullopt;
    if (!id) return false;
    const bool is_zero =
        std::all_of(id->begin(), id->end(), [](std::byte byte) { return byte == std::byte{0}; });
    if (is_zero) return true;
    if (member_ == RecordMember::kTraceId) {
      record_.trace_id = *id;
      return true;
    }
    std::uint64_t span = 0;
    for (const std::byte byte : *id) span = span << 8 | std::to_integer<std::uint64_t>(byte);
    record_.span_id = span;
    return true;
  }
  static absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

  RecordMember member_ = RecordMember::kVersion;  // member of the current value
  unsigned seen_ = 0;                             // a bit for each RecordMember that was read
  bool is_valid_ = true;
  bool has_version_ = false;
  bool has_type_ = false;
  LogRecord record_;
};

absl::Status Route(const nettrace::Event& event, PayloadJson* payloads, PartRouter::Select select) {
  PartRouter router(select);
  return payloads->PutMembers(event, &router);
}

}  // namespace

bool HasCommonSchema(const nettrace::EventMetadata& metadata) {
  constexpr std::string_view kNames[] = {kVersionField, kPartA, kPartB, kPartC};
  unsigned seen = 0;
  for (const nettrace::Field& field : metadata.fields) {
    const auto* const name = std::find(std::begin(kNames), std::end(kNames), field.name);
    if (name == std::end(kNames)) return false;
    const unsigned bit = 1U << (name - std::begin(kNames));
    const bool is_part = *name != kVersionField;
    if ((seen & bit) != 0 || is_part != (field.type.code == nettrace::TypeCode::kObject)) {
      return false;
    }
    seen |= bit;
  }
  return (seen & 1U) != 0 && (seen & 4U) != 0;
}

std::optional<LogRecord> ReadLogRecord(const nettrace::Event& event, PayloadJson* payloads) {
  if (payloads->is_raw() || !payloads->NotesOf(*event.metadata).has_common_schema) {
    return std::nullopt;
  }
  RecordReader reader;
  const absl::Status status =
      Route(event, payloads, [&reader](std::string_view part, std::string_view name) {
        return reader.OutputFor(part, name);
      });
  return status.ok() ? reader.record() : std::nullopt;
}

void PutLogBody(const nettrace::Event& event, PayloadJson* payloads, ValueOutput* out) {
  Route(event, payloads, [out](std::string_view part, std::string_view name) {
    return FindMember(part, name) == RecordMember::kBody ? out : nullptr;
  }).IgnoreError();
}

void PutLogAttributes(const nettrace::Event& event, PayloadJson* payloads, ValueOutput* out) {
  std::string key;
  Route(event, payloads, [out, &key](std::string_view part, std::string_view name) -> ValueOutput* {
    if (FindMember(part, name)) return nullptr;
    const bool is_plain = part == kPartC || (part == kPartB && name == "eventId");
    key = is_plain ? "" : std::string(part).append(".");
    key.append(name);
    out->Key(key);
    return out;
  }).IgnoreError();
}

std::string SeverityName(std::uint8_t severity) {
  constexpr const char* kNames[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
  if (severity == 0 || severity > kMaxSeverity) return absl::StrCat(int{severity});
  const int step = (severity - 1) % 4 + 1;
  return absl::StrCat(kNames[(severity - 1) / 4], step == 1 ? "" : absl::StrCat(step));
}

}  // namespace trace
