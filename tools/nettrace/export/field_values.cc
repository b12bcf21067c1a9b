#include "tools/nettrace/export/field_values.h"

#include <charconv>
#include <utility>

#include "tools/base/text.h"

namespace tools::exporting {

absl::Status FieldValues::Read(const nettrace::Event& event, trace::PayloadJson* payloads) {
  values_.clear();
  text_.clear();
  is_flat_ = true;
  return payloads->PutMembers(event, this);
}

void FieldValues::BeginArray() {
  is_flat_ = false;
  if (depth_++ == 0) {
    json_.Clear();
    writer_.Reset(json_);
  }
  array_.BeginArray();
}

void FieldValues::EndArray() {
  array_.EndArray();
  if (--depth_ == 0) Add(Kind::kArray, {json_.GetString(), json_.GetSize()});
}

void FieldValues::Null() {
  if (depth_ != 0) return array_.Null();
  Add(Kind::kNull, {});
}

void FieldValues::Bool(bool value) {
  if (depth_ != 0) return array_.Bool(value);
  Add(value ? Kind::kTrue : Kind::kFalse, {});
}

void FieldValues::Text(std::string_view utf8) {
  if (depth_ != 0) return array_.Text(utf8);
  Add(Kind::kText, utf8);
}

void FieldValues::Bytes(std::span<const std::byte> bytes) {
  if (depth_ != 0) return array_.Bytes(bytes);
  Add(Kind::kText, base::FormatHex(bytes));
}

template <std::integral Number>
void FieldValues::AddWhole(Number value) {
  if (depth_ != 0) return array_.Whole(value);
  char digits[20];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  // In JSON, numbers that a double cannot represent exactly are texts.
  const bool is_exact = std::cmp_less_equal(value, base::kMaxExactNumber) &&
                        std::cmp_greater_equal(value, -base::kMaxExactNumber);
  Add(is_exact ? Kind::kNumber : Kind::kText,
      std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

template <std::floating_point Number>
void FieldValues::AddReal(Number value) {
  json_.Clear();
  writer_.Reset(json_);
  base::PutFloat(&writer_, value);
  std::string_view text(json_.GetString(), json_.GetSize());
  // NaN and infinities are strings, without escapes.
  const bool is_text = text.front() == '"';
  if (is_text) text = text.substr(1, text.size() - 2);
  Add(is_text ? Kind::kText : Kind::kNumber, text);
}

void FieldValues::Add(Kind kind, std::string_view text) {
  values_.push_back({kind, text_.size(), text.size()});
  text_ += text;
}

}  // namespace tools::exporting
