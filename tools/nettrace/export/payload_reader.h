// Reads payloads in JSON for outputs that are not JSON: fxt and the tables of queries.
#ifndef TOOLS_NETTRACE_EXPORT_PAYLOAD_READER_H_
#define TOOLS_NETTRACE_EXPORT_PAYLOAD_READER_H_

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "nettrace/schema.h"
#include "tools/base/json_text.h"

namespace tools::exporting {

// Parses the JSON of a payload and calls a handler of the kind that rapidjson::Reader uses.
// Passes numbers as digits, to RawNumber. PayloadReader is faster than rapidjson::Reader, because
// it relies on the form that PayloadJson writes: valid JSON without spaces.
template <typename Handler>
class PayloadReader {
 public:
  explicit PayloadReader(Handler* handler) : handler_(*handler) {}

  // Calls the handler for all values of `json`. Stops if a function of the handler returns false.
  void Read(std::string_view json) {
    json_ = json;
    while (!json_.empty() && Token()) {
    }
  }

 private:
  // An object or array that has begun and not ended, and the number of values in it so far.
  struct Level {
    bool is_array;
    rapidjson::SizeType values = 0;
  };
  // Receives the text of a string that has escapes.
  struct Unescaped : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Unescaped> {
    bool String(const char* value, rapidjson::SizeType size, bool /*copy*/) {
      text.assign(value, size);
      return true;
    }
    std::string text;
  };

  bool Token() {
    switch (json_.front()) {
      case '{':
      case '[':
        return Begin(json_.front() == '[');
      case '}':
      case ']':
        return End();
      case ',':
      case ':':
        json_.remove_prefix(1);
        return true;
      case '"':
        return Text();
      default:
        return Word(Take(std::min(json_.find_first_of(",}]"), json_.size())));
    }
  }
  std::string_view Take(std::size_t size) {
    const std::string_view taken = json_.substr(0, size);
    json_.remove_prefix(size);
    return taken;
  }
  void CountValue() {
    if (!open_.empty()) ++open_.back().values;
  }
  bool Begin(bool is_array) {
    CountValue();
    open_.push_back({is_array});
    json_.remove_prefix(1);
    return is_array ? handler_.StartArray() : handler_.StartObject();
  }
  bool End() {
    const Level closed = open_.back();
    open_.pop_back();
    json_.remove_prefix(1);
    return closed.is_array ? handler_.EndArray(closed.values) : handler_.EndObject(closed.values);
  }
  bool Word(std::string_view word) {
    CountValue();
    if (word == "null") return handler_.Null();
    if (word == "true" || word == "false") return handler_.Bool(word == "true");
    return handler_.RawNumber(word.data(), static_cast<rapidjson::SizeType>(word.size()), true);
  }
  // Passes a key or a string value to the handler.
  bool Text() {
    std::size_t end = json_.find('"', 1);
    std::string_view text = json_.substr(1, end - 1);
    if (text.find('\\') != text.npos) {
      for (end = 1; json_[end] != '"'; ++end) {
        if (json_[end] == '\\') ++end;
      }
      rapidjson::MemoryStream stream(json_.data(), end + 1);
      rapidjson::Reader().Parse(stream, unescaped_);
      text = unescaped_.text;
    }
    json_.remove_prefix(end + 1);
    const auto size = static_cast<rapidjson::SizeType>(text.size());
    if (json_.starts_with(':')) return handler_.Key(text.data(), size, true);
    CountValue();
    return handler_.String(text.data(), size, true);
  }

  Handler& handler_;
  std::string_view json_;
  absl::InlinedVector<Level, 8> open_;  // the innermost object or array is last
  Unescaped unescaped_;
};

template <typename Handler>
void ReadPayload(std::string_view json, Handler* handler) {
  PayloadReader<Handler>(handler).Read(json);
}

// Types of the values that FieldHandler passes on. An array of any depth is one value.
enum class ValueType : std::uint8_t { kNull, kBoolean, kNumber, kText, kArray };

// The base of handlers for ReadPayload that receive an array as one value, in JSON. `Derived` has
//   bool Value(ValueType type, std::string_view text)
// where `text` is the text, or the JSON of a value that is not text, "" for null. `Derived` may
// also have functions that replace Member, BeginStruct and EndStruct. Reading stops if a function
// returns false.
template <typename Derived>
class FieldHandler : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Derived> {
 public:
  bool Member(std::string_view /*name*/) { return true; }
  bool BeginStruct() { return true; }
  bool EndStruct() { return true; }

  bool Null() { return depth_ == 0 ? self().Value(ValueType::kNull, {}) : array_.Null(); }
  bool Bool(bool value) {
    if (depth_ != 0) return array_.Bool(value);
    return self().Value(ValueType::kBoolean, value ? "true" : "false");
  }
  bool RawNumber(const char* digits, rapidjson::SizeType size, bool /*copy*/) {
    if (depth_ != 0) return array_.RawValue(digits, size, rapidjson::kNumberType);
    return self().Value(ValueType::kNumber, {digits, size});
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    if (depth_ != 0) return array_.String(text, size);
    return self().Value(ValueType::kText, {text, size});
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return depth_ == 0 ? self().Member({text, size}) : array_.Key(text, size);
  }
  bool StartObject() { return depth_ == 0 ? self().BeginStruct() : array_.StartObject(); }
  bool EndObject(rapidjson::SizeType /*members*/) {
    return depth_ == 0 ? self().EndStruct() : array_.EndObject();
  }
  bool StartArray() {
    if (depth_++ == 0) {
      buffer_.Clear();
      array_.Reset(buffer_);
    }
    return array_.StartArray();
  }
  bool EndArray(rapidjson::SizeType /*elements*/) {
    array_.EndArray();
    if (--depth_ != 0) return true;
    return self().Value(ValueType::kArray, {buffer_.GetString(), buffer_.GetSize()});
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }

  int depth_ = 0;  // number of open arrays
  rapidjson::StringBuffer buffer_;
  base::JsonWriter array_;
};

}  // namespace tools::exporting

#endif  // TOOLS_NETTRACE_EXPORT_PAYLOAD_READER_H_
