// Reads the values of payloads for formats that have a place for each field: csv and fxt.
#ifndef TOOLS_NETTRACE_EXPORT_FIELD_VALUES_H_
#define TOOLS_NETTRACE_EXPORT_FIELD_VALUES_H_

#include <rapidjson/stringbuffer.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/base/json_text.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/value_output.h"

namespace tools::exporting {

// The values of one payload, in the order of its fields. An array is one value. A struct has a
// value for each of its members. One FieldValues can read all events, to save allocations.
class FieldValues final : private trace::ValueOutput {
 public:
  enum class Kind : std::uint8_t { kNull, kFalse, kTrue, kNumber, kText, kArray };
  struct Value {
    Kind kind = Kind::kNull;
    std::size_t begin = 0;  // offset of its text in text_
    std::size_t size = 0;
  };

  // Replaces the stored values by the values of the event's fields, in the form of `nettrace dump
  // --json`. If the payload does not match its fields, stores the values that can be read, and
  // returns an error.
  absl::Status Read(const nettrace::Event& event, trace::PayloadJson* payloads);

  const std::vector<Value>& values() const { return values_; }
  // Returns the digits of a number in JSON syntax, a text, or the JSON of an array; "" for other
  // kinds. The result is valid until the next call of Read.
  std::string_view TextOf(const Value& value) const {
    return std::string_view(text_).substr(value.begin, value.size);
  }
  // Returns whether no field of the last payload is a struct or an array.
  bool is_flat() const { return is_flat_; }

 private:
  void Key(std::string_view name) override {
    if (depth_ != 0) array_.Key(name);
  }
  void BeginObject(bool repeats_names) override {
    is_flat_ = false;
    if (depth_ != 0) array_.BeginObject(repeats_names);
  }
  void EndObject(bool repeats_names) override {
    if (depth_ != 0) array_.EndObject(repeats_names);
  }
  void BeginArray() override;
  void EndArray() override;
  void Null() override;
  void Bool(bool value) override;
  void Whole(std::int64_t value) override { AddWhole(value); }
  void Whole(std::uint64_t value) override { AddWhole(value); }
  void Single(float value) override {
    if (depth_ != 0) return array_.Single(value);
    AddReal(value);
  }
  void Double(double value) override {
    if (depth_ != 0) return array_.Double(value);
    AddReal(value);
  }
  void Text(std::string_view utf8) override;
  void Bytes(std::span<const std::byte> bytes) override;

  template <std::integral Number>
  void AddWhole(Number value);
  template <std::floating_point Number>
  void AddReal(Number value);
  void Add(Kind kind, std::string_view text);

  std::vector<Value> values_;
  std::string text_;  // text of all values
  bool is_flat_ = true;
  int depth_ = 0;  // number of open arrays
  // The JSON of the array that is being read, or of a number.
  rapidjson::StringBuffer json_;
  base::JsonWriter writer_;
  trace::JsonValueOutput array_{trace::ValueStyle::kForPrograms, &writer_};
};

}  // namespace tools::exporting

#endif  // TOOLS_NETTRACE_EXPORT_FIELD_VALUES_H_
