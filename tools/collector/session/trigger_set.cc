#include "tools/collector/session/trigger_set.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <compare>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "libeventheader/base/utf.h"
#include "nettrace/payload.h"
#include "tools/base/text.h"

namespace collector {
namespace {

using Comparison = Trigger::Comparison;
using Condition = Trigger::Condition;

// Returns whether `order`, the order of a value relative to the condition's value, satisfies the
// comparison.
bool Holds(Comparison comparison, std::partial_ordering order) {
  switch (comparison) {
    case Comparison::kEqual:
      return std::is_eq(order);
    case Comparison::kNotEqual:
      return std::is_neq(order);
    case Comparison::kLess:
      return std::is_lt(order);
    case Comparison::kLessOrEqual:
      return std::is_lteq(order);
    case Comparison::kGreater:
      return std::is_gt(order);
    case Comparison::kGreaterOrEqual:
      return std::is_gteq(order);
  }
  return false;
}

// Compares numbers without converting either to a type that cannot represent it.
template <typename Left, typename Right>
std::partial_ordering Compare(Left left, Right right) {
  if constexpr (std::is_integral_v<Left> && std::is_integral_v<Right>) {
    if (std::cmp_less(left, right)) return std::partial_ordering::less;
    if (std::cmp_greater(left, right)) return std::partial_ordering::greater;
    return std::partial_ordering::equivalent;
  } else {
    return static_cast<long double>(left) <=> static_cast<long double>(right);
  }
}

// Compares the text of an event's field with a UTF-8 text, code point by code point.
bool IsText(std::span<const std::byte> units, bool is_utf16, std::string_view text) {
  auto expected = std::as_bytes(std::span(text));
  while (!units.empty() && !expected.empty()) {
    const char32_t c = is_utf16 ? eh::internal::DecodeUtf16(&units, /*little_endian=*/true)
                                : eh::internal::DecodeUtf8(&units);
    if (c != eh::internal::DecodeUtf8(&expected)) return false;
  }
  return units.empty() && expected.empty();
}

// Walks a payload and records which conditions of a trigger hold for at least one value in it.
class ConditionVisitor : public nettrace::PayloadVisitor {
 public:
  explicit ConditionVisitor(const std::vector<Condition>& conditions) : conditions_(conditions) {}

  bool all_hold() const { return held_ == (std::uint64_t{1} << conditions_.size()) - 1; }

  void OnName(std::string_view name) override {
    if (depth_ < path_.size()) path_[depth_] = name;
  }
  void OnBeginObject() override { ++depth_; }
  void OnEndObject() override { --depth_; }
  void OnInt(std::int64_t value) override { Number(value); }
  void OnUInt(std::uint64_t value) override { Number(value); }
  void OnSingle(float value) override {
    ForEach([value](const Condition& condition) {
      // Rounds the number of the condition to float, the precision of the field: 0.1 then equals a
      // field with 0.1f.
      const auto* const real = std::get_if<double>(&condition.value);
      if (real != nullptr) {
        return Holds(condition.comparison, Compare(value, static_cast<float>(*real)));
      }
      return NumberHolds(condition, value);
    });
  }
  void OnDouble(double value) override { Number(value); }
  void OnBool(bool value) override { Number(static_cast<std::int64_t>(value)); }
  void OnGuid(const nettrace::Guid& value) override {
    ForEach([&value](const Condition& condition) {
      return TextHolds(
          condition, [&value](const std::string& text) { return base::FormatGuid(value) == text; });
    });
  }
  void OnUtf8(std::span<const std::byte> units) override { Text(units, false); }
  void OnUtf16(std::span<const std::byte> units) override { Text(units, true); }

 private:
  template <typename T>
  static bool NumberHolds(const Condition& condition, T value) {
    const auto compare = [&condition, value](const auto& expected) {
      using Expected = std::decay_t<decltype(expected)>;
      if constexpr (std::is_same_v<Expected, std::string>) {
        return false;
      } else if constexpr (std::is_same_v<Expected, bool>) {
        return Holds(condition.comparison,
                     Compare(std::int64_t{value != 0}, static_cast<std::int64_t>(expected)));
      } else {
        return Holds(condition.comparison, Compare(value, expected));
      }
    };
    return std::visit(compare, condition.value);
  }
  template <typename IsEqual>
  static bool TextHolds(const Condition& condition, IsEqual is_equal) {
    const auto* const text = std::get_if<std::string>(&condition.value);
    if (text == nullptr) return false;
    return is_equal(*text) == (condition.comparison == Comparison::kEqual);
  }

  template <typename T>
  void Number(T value) {
    ForEach([value](const Condition& condition) { return NumberHolds(condition, value); });
  }
  void Text(std::span<const std::byte> units, bool is_utf16) {
    ForEach([units, is_utf16](const Condition& condition) {
      return TextHolds(condition, [units, is_utf16](const std::string& text) {
        return IsText(units, is_utf16, text);
      });
    });
  }
  // Calls `holds` for the conditions of the current field, and records those that hold.
  template <typename HoldsFor>
  void ForEach(HoldsFor holds) {
    for (std::size_t i = 0; i < conditions_.size(); ++i) {
      const Condition& condition = conditions_[i];
      if (condition.field.size() != depth_ + 1 || (held_ >> i & 1) != 0) continue;
      if (!std::equal(condition.field.begin(), condition.field.end(), path_.begin())) continue;
      if (holds(condition)) held_ |= std::uint64_t{1} << i;
    }
  }

  const std::vector<Condition>& conditions_;
  // Names of the structs that contain the current field, then of the field, down to the depth that
  // conditions can name.
  std::array<std::string_view, Trigger::kMaxDepth> path_;
  std::size_t depth_ = 0;
  std::uint64_t held_ = 0;  // bit i is set if condition i holds
};

// Returns whether `fields` contain the field whose path begins at names[depth] and ends at the last
// name.
bool HasField(const std::vector<nettrace::Field>& fields, const std::vector<std::string>& names,
              std::size_t depth) {
  return std::any_of(fields.begin(), fields.end(), [&](const nettrace::Field& field) {
    if (field.name != names[depth]) return false;
    const nettrace::Type* type = &field.type;
    while (!type->element.empty()) type = type->element.data();
    return depth + 1 == names.size() || HasField(type->fields, names, depth + 1);
  });
}

bool MayMatch(const Trigger& trigger, const nettrace::EventMetadata& metadata) {
  if (trigger.max_level != 255 && (!metadata.level || *metadata.level > trigger.max_level)) {
    return false;
  }
  return fnmatch(trigger.provider.c_str(), metadata.provider.c_str(), 0) == 0 &&
         fnmatch(trigger.event.c_str(), metadata.name.c_str(), 0) == 0 &&
         std::all_of(trigger.where.begin(), trigger.where.end(),
                     [&metadata](const Condition& condition) {
                       return HasField(metadata.fields, condition.field, 0);
                     });
}

}  // namespace

TriggerSet::TriggerSet(std::vector<Trigger> triggers, Fire fire, absl::Duration pause)
    : triggers_(std::move(triggers)),
      fire_(std::move(fire)),
      pause_(static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(pause))) {}

std::uint32_t TriggerSet::MakePlan(Slot form, const nettrace::EventMetadata& metadata) {
  Plan plan;
  for (std::size_t i = 0; i < triggers_.size(); ++i) {
    if (MayMatch(triggers_[i], metadata)) plan.triggers.push_back(i);
  }
  if (plan.triggers.empty()) {
    plan_of_.Set(form, kNever);
    return kNever;
  }
  if (plans_.size() == kMaxPlans) {
    plans_.clear();
    plan_of_.Clear();
  }
  plan.fields = metadata.fields;
  plans_.push_back(std::move(plan));
  const auto index = static_cast<std::uint32_t>(plans_.size() - 1) + kFirstPlan;
  plan_of_.Set(form, index);
  return index;
}

void TriggerSet::CheckPlan(const Plan& plan, const ConvertedEvent& event) {
  for (const std::size_t index : plan.triggers) {
    ConditionVisitor visitor(triggers_[index].where);
    // If the payload does not match the fields, the values before the first mismatch still count.
    if (!visitor.all_hold()) {
      nettrace::VisitPayload(plan.fields, event.payload, &visitor).IgnoreError();
    }
    if (!visitor.all_hold()) continue;
    silent_until_ = event.timestamp + pause_;
    fire_(index, event.timestamp);
    return;
  }
}

}  // namespace collector
