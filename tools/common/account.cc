#include "tools/common/account.h"

#include <algorithm>
#include <span>
#include <utility>

#include "libnettrace-writer/core/utf.h"
#include "nettrace/format.h"
#include "nettrace/payload.h"
#include "nettrace/payload_encoder.h"

namespace tools {
namespace {

using Kind = AccountEvent::Kind;

constexpr std::uint8_t kWarning = 3;
constexpr std::uint8_t kInformation = 4;

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kEventsLost:
      return "EventsLost";
    case Kind::kCpuOffline:
      return "CpuOffline";
    case Kind::kCpuOnline:
      return "CpuOnline";
    case Kind::kTracepointLeftOut:
      return "TracepointLeftOut";
    case Kind::kAccountUnknown:
      return "AccountUnknown";
  }
  return "";
}

// The fields that hold the times.
const char* SinceField(Kind kind) {
  if (kind == Kind::kEventsLost) return "From";
  return kind == Kind::kCpuOnline ? "NotRecordedSince" : "Since";
}
const char* UntilField(Kind kind) {
  return kind == Kind::kCpuOnline ? "NotRecordedUntil" : "Until";
}

bool HasCpu(Kind kind) {
  return kind == Kind::kEventsLost || kind == Kind::kCpuOffline || kind == Kind::kCpuOnline;
}
bool HasTracepoint(Kind kind) {
  return kind == Kind::kEventsLost || kind == Kind::kTracepointLeftOut;
}

std::vector<nettrace::Field> FieldsOf(Kind kind) {
  std::vector<nettrace::Field> fields;
  if (HasCpu(kind)) fields.push_back(nettrace::MakeField<std::uint32_t>("Cpu"));
  if (HasTracepoint(kind)) fields.push_back(nettrace::MakeField<std::u16string_view>("Tracepoint"));
  if (kind == Kind::kTracepointLeftOut) {
    fields.push_back(nettrace::MakeField<std::u16string_view>("Reason"));
    return fields;
  }
  if (kind == Kind::kEventsLost) fields.push_back(nettrace::MakeField<std::uint64_t>("Count"));
  fields.push_back(nettrace::MakeField<std::uint64_t>(SinceField(kind)));
  fields.push_back(nettrace::MakeField<std::uint64_t>(UntilField(kind)));
  if (kind == Kind::kCpuOnline) {
    fields.push_back(nettrace::MakeField<std::u16string_view>("Reason"));
  }
  return fields;
}

std::u16string ToUtf16(std::string_view text) {
  std::vector<std::byte> units;
  nettrace::internal::AppendUtf8AsUtf16(std::as_bytes(std::span(text)), &units);
  std::u16string result;
  for (std::size_t i = 0; i + 1 < units.size() && result.size() < kMaxAccountText; i += 2) {
    result += static_cast<char16_t>(std::to_integer<unsigned>(units[i]) |
                                    std::to_integer<unsigned>(units[i + 1]) << 8);
  }
  // A surrogate without its other half is no character.
  if (!result.empty() && (result.back() & 0xFC00) == 0xD800) result.pop_back();
  return result;
}

// Collects the values of the fields that an account's event may have.
class AccountVisitor : public nettrace::PayloadVisitor {
 public:
  explicit AccountVisitor(AccountEvent* event) : event_(event) {}

  void OnName(std::string_view name) override { name_ = name; }
  void OnUInt(std::uint64_t value) override {
    if (name_ == "Cpu") {
      event_->cpu = static_cast<std::uint32_t>(value);
    } else if (name_ == "Count") {
      event_->count = value;
    } else if (name_ == SinceField(event_->kind)) {
      event_->since = value;
    } else if (name_ == UntilField(event_->kind)) {
      event_->until = value;
    }
  }
  void OnUtf16(std::span<const std::byte> units) override {
    std::string text;
    nettrace::internal::AppendUtf16AsUtf8(
        units.first(std::min(units.size(), kMaxAccountText * sizeof(char16_t))), &text);
    if (name_ == "Tracepoint") {
      event_->tracepoint = std::move(text);
    } else if (name_ == "Reason") {
      event_->reason = std::move(text);
    }
  }
  void OnBeginObject() override {}
  void OnEndObject() override {}
  void OnBeginArray() override {}
  void OnEndArray() override {}
  void OnInt(std::int64_t) override {}
  void OnSingle(float) override {}
  void OnDouble(double) override {}
  void OnBool(bool) override {}
  void OnGuid(const nettrace::Guid&) override {}
  void OnDateTime(absl::Time) override {}
  void OnDecimal(std::span<const std::byte>) override {}
  void OnUtf8(std::span<const std::byte>) override {}

 private:
  AccountEvent* event_;
  std::string_view name_;
};

std::optional<Kind> KindOf(const nettrace::EventMetadata& metadata) {
  for (const Kind kind : {Kind::kEventsLost, Kind::kCpuOffline, Kind::kCpuOnline,
                          Kind::kTracepointLeftOut, Kind::kAccountUnknown}) {
    if (metadata.name == NameOf(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace

nettrace::EventMetadata AccountMetadata(Kind kind) {
  nettrace::EventMetadata metadata;
  metadata.provider = std::string(kAccountProvider);
  metadata.event_id = static_cast<std::uint32_t>(kind);
  metadata.name = NameOf(kind);
  metadata.fields = FieldsOf(kind);
  metadata.opcode = 0;
  metadata.level = kind == Kind::kCpuOnline ? kInformation : kWarning;
  return metadata;
}

absl::StatusOr<std::vector<std::byte>> AccountPayload(const AccountEvent& event) {
  const std::vector<nettrace::Field> fields = FieldsOf(event.kind);
  nettrace::PayloadEncoder encoder(&fields);
  if (HasCpu(event.kind)) encoder.UInt(event.cpu);
  if (HasTracepoint(event.kind)) encoder.Utf16(ToUtf16(event.tracepoint));
  if (event.kind == Kind::kTracepointLeftOut) {
    encoder.Utf16(ToUtf16(event.reason));
  } else {
    if (event.kind == Kind::kEventsLost) encoder.UInt(event.count);
    encoder.UInt(event.since).UInt(event.until);
    if (event.kind == Kind::kCpuOnline) encoder.Utf16(ToUtf16(event.reason));
  }
  const absl::StatusOr<std::span<const std::byte>> payload = encoder.Finish();
  if (!payload.ok()) return payload.status();
  return std::vector<std::byte>(payload->begin(), payload->end());
}

bool IsAccount(const nettrace::Event& event) {
  return event.processor == nettrace::kNoProcessor && event.metadata->provider == kAccountProvider;
}

std::optional<AccountEvent> ParseAccount(const nettrace::Event& event) {
  if (!IsAccount(event)) return std::nullopt;
  const std::optional<Kind> kind = KindOf(*event.metadata);
  if (!kind) return std::nullopt;
  // A later version may have more fields after these.
  const std::vector<nettrace::Field> known = FieldsOf(*kind);
  const std::vector<nettrace::Field>& fields = event.metadata->fields;
  if (fields.size() < known.size() || !std::equal(known.begin(), known.end(), fields.begin())) {
    return std::nullopt;
  }
  AccountEvent parsed;
  parsed.kind = *kind;
  AccountVisitor visitor(&parsed);
  const absl::Status visited = nettrace::VisitPayload(event.metadata->fields, event.payload,
                                                      &visitor, event.payload_encoding);
  if (!visited.ok()) return std::nullopt;
  return parsed;
}

}  // namespace tools
