#include "tools/nettrace/export/fxt/arguments.h"

#include <rapidjson/reader.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/nettrace/export/payload_reader.h"

namespace tools::fxt {
namespace {

// Collects the leaves of a payload: the values that are neither objects nor arrays, and empty
// objects and arrays. It is a handler for exporting::ReadPayload.
class LeafTaker : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, LeafTaker> {
 public:
  LeafTaker(std::string_view prefix, std::vector<Argument>* arguments)
      : prefix_(prefix), arguments_(arguments), properties_(arguments->size()), rest_(buffer_) {}

  bool Null() { return Take(Argument::Kind::kNull, ""); }
  bool Bool(bool value) { return Take(value ? Argument::Kind::kTrue : Argument::Kind::kFalse, ""); }
  bool RawNumber(const char* digits, rapidjson::SizeType size, bool /*copy*/) {
    return Take(Argument::Kind::kNumber, {digits, size});
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return Take(Argument::Kind::kText, {text, size});
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    name_ = open_.back().prefix;
    name_.append(text, size);
    if (name_.size() > kMaxName) name_ = CutText(name_, kMaxName);
    return true;
  }
  bool StartObject() { return Open(/*is_array=*/false); }
  bool EndObject(rapidjson::SizeType members) { return Close(members, "{}"); }
  bool StartArray() { return Open(/*is_array=*/true); }
  bool EndArray(rapidjson::SizeType elements) { return Close(elements, "[]"); }

  // Appends kMore if there were more leaves than fit.
  void Finish() {
    if (!has_rest_) return;
    rest_.EndObject();
    arguments_->push_back({prefix_ + kMore, Argument::Kind::kText,
                           std::string(buffer_.GetString(), buffer_.GetSize())});
  }

 private:
  // An object or array that has begun and not ended.
  struct Parent {
    bool is_array;
    std::string prefix;  // prefix of its members' names
    std::size_t elements = 0;
  };

  // Returns the name of the next value, without prefix_.
  std::string TakeName() {
    Parent& parent = open_.back();
    if (!parent.is_array) return std::move(name_);
    return CutText(absl::StrCat(parent.prefix, "[", parent.elements++, "]"), kMaxName);
  }
  bool Open(bool is_array) {
    if (open_.empty()) {
      open_.push_back({is_array, ""});
    } else {
      open_.push_back({is_array, absl::StrCat(TakeName(), is_array ? "" : ".")});
    }
    return true;
  }
  bool Close(rapidjson::SizeType values, const char* if_empty) {
    const Parent closed = std::move(open_.back());
    open_.pop_back();
    if (values != 0 || open_.empty()) return true;
    const std::string name(closed.prefix, 0, closed.prefix.size() - (closed.is_array ? 0 : 1));
    return Take({name, Argument::Kind::kText, if_empty});
  }
  bool Take(Argument::Kind kind, std::string_view text) {
    return Take({TakeName(), kind, std::string(text)});
  }
  bool Take(Argument argument) {
    argument.name = FullName(std::move(argument.name));
    if (!has_rest_ && arguments_->size() < kMaxArguments) {
      arguments_->push_back(std::move(argument));
      return true;
    }
    if (!has_rest_) {
      has_rest_ = true;
      rest_.StartObject();
      PutRest(arguments_->back());
      arguments_->pop_back();
    }
    PutRest(argument);
    return buffer_.GetSize() <= kMaxText;  // false ends reading: the rest would be cut
  }
  std::string FullName(std::string name) const {
    if (!prefix_.empty()) name.insert(0, prefix_);
    const auto end = arguments_->begin() + static_cast<std::ptrdiff_t>(properties_);
    const auto is_same = [&name](const Argument& argument) { return argument.name == name; };
    if (std::find_if(arguments_->begin(), end, is_same) != end) {
      name.insert(prefix_.size(), "payload.");
    }
    return name.size() > kMaxName ? CutText(name, kMaxName) : name;
  }
  void PutRest(const Argument& argument) {
    base::PutKey(&rest_, argument.name);
    switch (argument.kind) {
      case Argument::Kind::kNull:
        rest_.Null();
        break;
      case Argument::Kind::kFalse:
      case Argument::Kind::kTrue:
        rest_.Bool(argument.kind == Argument::Kind::kTrue);
        break;
      case Argument::Kind::kNumber:
        rest_.RawValue(argument.text.data(), argument.text.size(), rapidjson::kNumberType);
        break;
      case Argument::Kind::kText:
        base::PutString(&rest_, argument.text);
        break;
    }
  }

  const std::string prefix_;
  std::vector<Argument>* const arguments_;
  const std::size_t properties_;  // number of arguments before the fields
  std::vector<Parent> open_;
  std::string name_;
  bool has_rest_ = false;
  rapidjson::StringBuffer buffer_;
  base::JsonWriter rest_;
};

}  // namespace

void AppendFields(std::string_view payload_json, std::string_view prefix,
                  std::vector<Argument>* arguments) {
  LeafTaker taker(prefix, arguments);
  exporting::ReadPayload(payload_json, &taker);
  taker.Finish();
}

std::string CutText(std::string_view text, std::size_t size) {
  constexpr std::string_view kMark = "…";
  if (text.size() <= size) return std::string(text);
  std::size_t end = size - kMark.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(std::string(text.substr(0, end)), std::string(kMark));
}

}  // namespace tools::fxt
