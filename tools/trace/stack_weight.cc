#include "tools/trace/stack_weight.h"

#include <algorithm>
#include <cmath>

#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/payload.h"
#include "tools/trace/code_map.h"

namespace trace {
namespace {

// Finds the number in a top-level field.
class NumberFinder : public nettrace::PayloadVisitor {
 public:
  explicit NumberFinder(std::string_view field) : wanted_(field) {}
  // Returns the number; nullopt if the field has no number, a negative number, or a float of 2^63
  // or more.
  const std::optional<std::uint64_t>& number() const { return number_; }

  void OnName(std::string_view field) override { is_wanted_ = depth_ == 0 && field == wanted_; }
  void OnBeginObject() override { ++depth_; }
  void OnEndObject() override { --depth_; }
  void OnBeginArray() override { ++depth_; }
  void OnEndArray() override { --depth_; }
  void OnInt(std::int64_t value) override {
    if (is_wanted_ && depth_ == 0 && value >= 0) number_ = static_cast<std::uint64_t>(value);
  }
  void OnUInt(std::uint64_t value) override {
    if (is_wanted_ && depth_ == 0) number_ = value;
  }
  void OnSingle(float value) override { OnDouble(value); }
  void OnDouble(double value) override {
    constexpr double kMax = 0x1p63;
    if (is_wanted_ && depth_ == 0 && value >= 0 && value < kMax) {
      number_ = static_cast<std::uint64_t>(std::llround(value));
    }
  }

 private:
  const std::string_view wanted_;
  bool is_wanted_ = false;
  int depth_ = 0;
  std::optional<std::uint64_t> number_;
};

bool IsSample(const nettrace::EventMetadata& metadata, std::string_view name) {
  return metadata.provider == nettrace::internal::traceevent::kUniversalEvents &&
         metadata.name == name;
}

}  // namespace

bool IsCpuSample(const nettrace::EventMetadata& metadata) { return IsSample(metadata, "cpu"); }

bool IsOffCpu(const nettrace::EventMetadata& metadata) { return IsSample(metadata, "cswitch"); }

bool IsStackCut(const nettrace::Event& event) {
  const auto& labels = event.labels->integers;
  return std::any_of(labels.begin(), labels.end(),
                     [](const auto& label) { return label.first == kStackCutLabel; });
}

std::optional<std::uint64_t> NumberIn(const nettrace::Event& event, std::string_view field) {
  NumberFinder finder(field);
  // Ignores an error, because the number may precede the damage in the payload.
  nettrace::VisitPayload(event.metadata->fields, event.payload, &finder, event.payload_encoding)
      .IgnoreError();
  return finder.number();
}

std::optional<std::uint64_t> StackWeight(const nettrace::Event& event) {
  return IsOffCpu(*event.metadata) ? NumberIn(event, kOffCpuField) : 1;
}

}  // namespace trace
