// The interface through which the values of payloads are written with their types, for example as
// OTLP, and its implementation for JSON.
#ifndef TOOLS_TRACE_VALUE_OUTPUT_H_
#define TOOLS_TRACE_VALUE_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/base/json_members.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/field_value.h"

namespace trace {

// Receives the values of a payload, in the order of its fields. Views are valid only during the
// call. A value is an object, an array, or a call of one of the functions from Null() on. Within
// an object, a call of Key() precedes each value. If `repeats_names`, several members of an object
// may have the same key.
class ValueOutput {
 public:
  virtual ~ValueOutput() = default;
  // Receives the name of the next member, which may be any bytes.
  virtual void Key(std::string_view name) = 0;
  virtual void BeginObject(bool repeats_names) = 0;
  virtual void EndObject(bool repeats_names) = 0;
  virtual void BeginArray() = 0;
  virtual void EndArray() = 0;
  virtual void Null() = 0;
  virtual void Unreadable() { Null(); }  // for a value that cannot be read
  virtual void Bool(bool value) = 0;
  virtual void Whole(std::int64_t value) = 0;
  virtual void Whole(std::uint64_t value) = 0;
  virtual void Errno(std::int64_t value) { Whole(value); }
  virtual void Single(float value) { Double(double{value}); }
  virtual void Double(double value) = 0;
  virtual void Text(std::string_view utf8) = 0;  // valid UTF-8
  virtual void Bytes(std::span<const std::byte> bytes) = 0;
};

// Writes the values as JSON. See field_value.h for the forms.
class JsonValueOutput final : public ValueOutput {
 public:
  // `json` must outlive this object.
  JsonValueOutput(ValueStyle style, base::JsonWriter* json) : style_(style), json_(json) {}

  void Key(std::string_view name) override {
    if (merged_.empty()) return base::PutKey(json_, name);
    merged_.back()->EndValue();
    merged_.back()->name = name;
  }
  void BeginObject(bool repeats_names) override {
    if (repeats_names) {
      json_ = &merged_.emplace_back(std::make_unique<MergedObject>(json_))->value;
    } else {
      json_->StartObject();
    }
  }
  void EndObject(bool repeats_names) override {
    if (!repeats_names) {
      json_->EndObject();
      return;
    }
    merged_.back()->EndValue();
    json_ = merged_.back()->outer;
    merged_.back()->members.Put(json_);
    merged_.pop_back();
  }
  void BeginArray() override { json_->StartArray(); }
  void EndArray() override { json_->EndArray(); }
  void Null() override { json_->Null(); }
  void Unreadable() override { PutUnreadable(style_, json_); }
  void Bool(bool value) override { json_->Bool(value); }
  void Whole(std::int64_t value) override { PutWholeNumber(value, style_, json_); }
  void Whole(std::uint64_t value) override { PutWholeNumber(value, style_, json_); }
  void Errno(std::int64_t value) override;
  void Single(float value) override { base::PutFloat(json_, value); }
  void Double(double value) override { base::PutFloat(json_, value); }
  void Text(std::string_view utf8) override {
    if (base::IsPlainInJson(utf8)) return json_->PlainString(utf8);
    json_->String(utf8.data(), static_cast<rapidjson::SizeType>(utf8.size()));
  }
  void Bytes(std::span<const std::byte> bytes) override {
    json_->PlainString(base::FormatHex(bytes));
  }

 private:
  // An object that is being written, in which several members may have the same name. Their values
  // are merged into an array. Either all objects of an event are of this kind, or none.
  struct MergedObject {
    explicit MergedObject(base::JsonWriter* outer_writer) : outer(outer_writer) {}
    // If a JSON value was written to `value`, moves it to `members`.
    void EndValue() {
      if (text.GetSize() == 0) return;
      members.AddJson(name, std::string_view(text.GetString(), text.GetSize()));
      text.Clear();
      value.Reset(text);
    }
    base::JsonWriter* outer;  // writer to which the object is written
    std::string name;
    rapidjson::StringBuffer text;
    base::JsonWriter value{text};
    base::JsonMembers members;
  };

  const ValueStyle style_;
  base::JsonWriter* json_;
  std::vector<std::unique_ptr<MergedObject>> merged_;  // open objects with `repeats_names`
};

}  // namespace trace

#endif  // TOOLS_TRACE_VALUE_OUTPUT_H_
