#include "tools/trace/account.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "libnettrace-writer/core/utf.h"
#include "nettrace/format.h"
#include "nettrace/payload.h"
#include "nettrace/payload_encoder.h"
#include "tools/base/status_macros.h"

namespace trace {
namespace {

constexpr std::uint8_t kWarning = 3;
constexpr std::uint8_t kInformation = 4;

// The members of an AccountEvent that are fields of the event.
enum class Member { kNone, kCpu, kCount, kTracepoint, kReason, kSince, kUntil, kSection, kLost };

struct AccountField {
  Member member = Member::kNone;
  const char* name = nullptr;
};

struct Layout {
  AccountEvent::Kind kind;
  std::uint8_t level;
  const char* name;
  std::array<AccountField, 5> fields;  // unused elements are kNone
};

constexpr AccountField kCpu = {Member::kCpu, "Cpu"};
constexpr AccountField kTracepoint = {Member::kTracepoint, "Tracepoint"};
constexpr AccountField kCount = {Member::kCount, "Count"};
constexpr AccountField kFrom = {Member::kSince, "From"};
constexpr AccountField kSince = {Member::kSince, "Since"};
constexpr AccountField kNotRecordedSince = {Member::kSince, "NotRecordedSince"};
constexpr AccountField kUntil = {Member::kUntil, "Until"};
constexpr AccountField kNotRecordedUntil = {Member::kUntil, "NotRecordedUntil"};
constexpr AccountField kReason = {Member::kReason, "Reason"};
constexpr AccountField kSection = {Member::kSection, "Section"};
constexpr AccountField kEvents = {Member::kCount, "Events"};
constexpr AccountField kLost = {Member::kLost, "Lost"};

constexpr Layout kLayouts[] = {
    {AccountEvent::Kind::kEventsLost,
     kWarning,
     "EventsLost",
     {kCpu, kTracepoint, kCount, kFrom, kUntil}},
    {AccountEvent::Kind::kCpuOffline, kWarning, "CpuOffline", {kCpu, kSince, kUntil}},
    {AccountEvent::Kind::kCpuOnline,
     kInformation,
     "CpuOnline",
     {kCpu, kNotRecordedSince, kNotRecordedUntil, kReason}},
    {AccountEvent::Kind::kTracepointLeftOut, kWarning, "TracepointLeftOut", {kTracepoint, kReason}},
    {AccountEvent::Kind::kAccountUnknown, kWarning, "AccountUnknown", {kSince, kUntil}},
    {AccountEvent::Kind::kEventsDropped,
     kWarning,
     "EventsDropped",
     {kCpu, kCount, kFrom, kUntil, kReason}},
    {AccountEvent::Kind::kSectionBegan,
     kInformation,
     "SectionBegan",
     {kCpu, kSection, kEvents, kLost}},
    {AccountEvent::Kind::kTracepointMet,
     kInformation,
     "TracepointMet",
     {kTracepoint, kNotRecordedUntil}},
    {AccountEvent::Kind::kTargetCame,
     kInformation,
     "TargetCame",
     {kNotRecordedSince, kNotRecordedUntil, kReason}},
    {AccountEvent::Kind::kSamplesThrottled,
     kWarning,
     "SamplesThrottled",
     {kCpu, kCount, kFrom, kUntil}},
    {AccountEvent::Kind::kStacksSkipped, kWarning, "StacksSkipped", {kCount, kFrom, kUntil}},
    {AccountEvent::Kind::kServiceUnknown,
     kWarning,
     "ServiceUnknown",
     {kTracepoint, kSince, kUntil, kReason}},
};

const Layout& LayoutOf(AccountEvent::Kind kind) {
  return *std::find_if(std::begin(kLayouts), std::end(kLayouts),
                       [kind](const Layout& layout) { return layout.kind == kind; });
}

std::vector<nettrace::Field> FieldsOf(const Layout& layout) {
  std::vector<nettrace::Field> fields;
  for (const AccountField& field : layout.fields) {
    switch (field.member) {
      case Member::kNone:
        break;
      case Member::kCpu:
        fields.push_back(nettrace::MakeField<std::uint32_t>(field.name));
        break;
      case Member::kTracepoint:
      case Member::kReason:
        fields.push_back(nettrace::MakeField<std::u16string_view>(field.name));
        break;
      default:
        fields.push_back(nettrace::MakeField<std::uint64_t>(field.name));
    }
  }
  return fields;
}

// Returns a pointer to the member of `event`, or null if the member is not a 64-bit number.
template <typename Event>
auto* NumberOf(Member member, Event* event) {
  switch (member) {
    case Member::kCount:
      return &event->count;
    case Member::kSince:
      return &event->since;
    case Member::kUntil:
      return &event->until;
    case Member::kSection:
      return &event->section;
    case Member::kLost:
      return &event->lost;
    default:
      return static_cast<decltype(&event->count)>(nullptr);
  }
}

std::u16string ToUtf16(std::string_view text) {
  std::vector<std::byte> units;
  nettrace::internal::AppendUtf8AsUtf16(std::as_bytes(std::span(text)), &units);
  std::u16string result;
  for (std::size_t i = 0; i + 1 < units.size() && result.size() < kMaxAccountText; i += 2) {
    result += static_cast<char16_t>(std::to_integer<unsigned>(units[i]) |
                                    std::to_integer<unsigned>(units[i + 1]) << 8);
  }
  // If the limit has cut a surrogate pair, removes its first half, which is not a character.
  if (!result.empty() && (result.back() & 0xFC00) == 0xD800) result.pop_back();
  return result;
}

// Stores the values of an account event's fields in an AccountEvent.
class AccountVisitor : public nettrace::PayloadVisitor {
 public:
  AccountVisitor(const Layout& layout, AccountEvent* event) : layout_(layout), event_(event) {}

  void OnName(std::string_view name) override {
    const auto field = std::find_if(
        layout_.fields.begin(), layout_.fields.end(),
        [name](const AccountField& each) { return each.name != nullptr && each.name == name; });
    member_ = field == layout_.fields.end() ? Member::kNone : field->member;
  }
  void OnUInt(std::uint64_t value) override {
    if (member_ == Member::kCpu) {
      event_->cpu = static_cast<std::uint32_t>(value);
    } else if (std::uint64_t* number = NumberOf(member_, event_)) {
      *number = value;
    }
  }
  void OnUtf16(std::span<const std::byte> units) override {
    std::string text;
    nettrace::internal::AppendUtf16AsUtf8(
        units.first(std::min(units.size(), kMaxAccountText * sizeof(char16_t))), &text);
    if (member_ == Member::kTracepoint) {
      event_->tracepoint = std::move(text);
    } else if (member_ == Member::kReason) {
      event_->reason = std::move(text);
    }
  }

 private:
  const Layout& layout_;
  AccountEvent* event_;
  Member member_ = Member::kNone;
};

}  // namespace

nettrace::EventMetadata AccountMetadata(AccountEvent::Kind kind) {
  const Layout& layout = LayoutOf(kind);
  nettrace::EventMetadata metadata;
  metadata.provider = std::string(kAccountProvider);
  metadata.event_id = static_cast<std::uint32_t>(kind);
  metadata.name = layout.name;
  metadata.fields = FieldsOf(layout);
  metadata.opcode = 0;
  metadata.level = layout.level;
  return metadata;
}

absl::StatusOr<std::vector<std::byte>> AccountPayload(const AccountEvent& event) {
  const Layout& layout = LayoutOf(event.kind);
  const std::vector<nettrace::Field> fields = FieldsOf(layout);
  nettrace::PayloadEncoder encoder(&fields);
  for (const AccountField& field : layout.fields) {
    if (field.member == Member::kCpu) {
      encoder.UInt(event.cpu);
    } else if (field.member == Member::kTracepoint) {
      encoder.Utf16(ToUtf16(event.tracepoint));
    } else if (field.member == Member::kReason) {
      encoder.Utf16(ToUtf16(event.reason));
    } else if (const std::uint64_t* number = NumberOf(field.member, &event)) {
      encoder.UInt(*number);
    }
  }
  ASSIGN_OR_RETURN(const std::span<const std::byte> payload, encoder.Finish());
  return std::vector<std::byte>(payload.begin(), payload.end());
}

bool IsAccount(const nettrace::Event& event) {
  return event.processor == nettrace::kNoProcessor && event.metadata->provider == kAccountProvider;
}

std::optional<AccountEvent> ParseAccount(const nettrace::Event& event) {
  if (!IsAccount(event)) return std::nullopt;
  const auto layout =
      std::find_if(std::begin(kLayouts), std::end(kLayouts),
                   [&event](const Layout& each) { return event.metadata->name == each.name; });
  if (layout == std::end(kLayouts)) return std::nullopt;
  // Compares only the known fields. Later versions of the collector may add fields after them.
  const std::vector<nettrace::Field> known = FieldsOf(*layout);
  const std::vector<nettrace::Field>& fields = event.metadata->fields;
  if (fields.size() < known.size() || !std::equal(known.begin(), known.end(), fields.begin())) {
    return std::nullopt;
  }
  AccountEvent parsed;
  parsed.kind = layout->kind;
  AccountVisitor visitor(*layout, &parsed);
  const absl::Status visited = nettrace::VisitPayload(event.metadata->fields, event.payload,
                                                      &visitor, event.payload_encoding);
  if (!visited.ok()) return std::nullopt;
  return parsed;
}

}  // namespace trace
