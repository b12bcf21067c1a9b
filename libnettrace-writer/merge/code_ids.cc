#include "libnettrace-writer/merge/code_ids.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/payload.h"
#include "nettrace/payload_encoder.h"

namespace nettrace::internal {
namespace {

bool IsId(std::string_view field) {
  return field == "Id" || field == "MappingId" || field == "MetadataId";
}

// Encodes the values of a payload again. Each id becomes id * `factor` + `added`, except the id 0,
// which means that there is no object. Supports only fields that are integers, Booleans or text.
class Copier : public PayloadVisitor {
 public:
  Copier(PayloadEncoder* encoder, std::uint64_t factor, std::uint64_t added)
      : encoder_(*encoder), factor_(factor), added_(added) {}

  bool is_supported() const { return is_supported_; }

  void OnName(std::string_view field) override { is_id_ = IsId(field); }
  void OnUInt(std::uint64_t value) override {
    const bool changes = is_id_ && value != 0;
    if (changes && value > (std::numeric_limits<std::uint64_t>::max() - added_) / factor_) {
      is_supported_ = false;
    }
    encoder_.UInt(changes ? value * factor_ + added_ : value);
  }
  void OnInt(std::int64_t value) override { encoder_.Int(value); }
  void OnBool(bool value) override { encoder_.Bool(value); }
  void OnUtf8(std::span<const std::byte> units) override {
    encoder_.Utf8({reinterpret_cast<const char*>(units.data()), units.size()});
  }
  void OnUtf16(std::span<const std::byte> units) override {
    std::u16string text(units.size() / sizeof(char16_t), u'\0');
    std::memcpy(text.data(), units.data(), text.size() * sizeof(char16_t));
    encoder_.Utf16(text);
  }
  void OnBeginObject() override { is_supported_ = false; }
  void OnBeginArray() override { is_supported_ = false; }
  void OnSingle(float /*value*/) override { is_supported_ = false; }
  void OnDouble(double /*value*/) override { is_supported_ = false; }
  void OnGuid(const Guid& /*value*/) override { is_supported_ = false; }
  void OnDateTime(absl::Time /*utc*/) override { is_supported_ = false; }
  void OnDecimal(std::span<const std::byte> /*bytes*/) override { is_supported_ = false; }

 private:
  PayloadEncoder& encoder_;
  const std::uint64_t factor_;
  const std::uint64_t added_;
  bool is_id_ = false;
  bool is_supported_ = true;
};

}  // namespace

std::optional<std::vector<std::byte>> CodeIds::Encode(const Event& event, bool with_new_ids) const {
  const std::vector<Field>& fields = traceevent::FieldsOfPayload(*event.metadata);
  PayloadEncoder encoder(&fields);
  Copier copier(&encoder, with_new_ids ? streams_ : 1, with_new_ids ? stream_ : 0);
  const absl::Status status = VisitPayload(fields, event.payload, &copier, event.payload_encoding);
  if (!status.ok() || !copier.is_supported()) return std::nullopt;
  const auto payload = encoder.Finish();
  if (!payload.ok()) return std::nullopt;
  return std::vector<std::byte>(payload->begin(), payload->end());
}

std::span<const std::byte> CodeIds::PayloadOf(const Event& event) {
  const EventMetadata& metadata = *event.metadata;
  if (streams_ < 2 || metadata.provider != traceevent::kUniversalSystem) return event.payload;
  if (std::none_of(metadata.fields.begin(), metadata.fields.end(),
                   [](const Field& field) { return IsId(field.name); })) {
    return event.payload;
  }
  const auto unchanged = Encode(event, /*with_new_ids=*/false);
  if (!unchanged || unchanged->size() > event.payload.size() ||
      !std::equal(unchanged->begin(), unchanged->end(), event.payload.begin())) {
    return event.payload;
  }
  auto changed = Encode(event, /*with_new_ids=*/true);
  if (!changed) return event.payload;
  payload_ = *std::move(changed);
  // Some writers append values that the fields do not describe. These bytes are copied unchanged.
  const auto rest = event.payload.subspan(unchanged->size());
  payload_.insert(payload_.end(), rest.begin(), rest.end());
  return payload_;
}

}  // namespace nettrace::internal
