#include "tools/trace/tracepoint_payload.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/types.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/payload.h"
#include "tools/base/json_members.h"
#include "tools/base/text.h"

namespace trace {
namespace {

using nettrace::Type;
using nettrace::TypeCode;
using Kind = TracepointValue::Kind;

bool IsInteger(TypeCode code) {
  switch (code) {
    case TypeCode::kByte:
    case TypeCode::kSByte:
    case TypeCode::kInt16:
    case TypeCode::kUInt16:
    case TypeCode::kInt32:
    case TypeCode::kUInt32:
    case TypeCode::kInt64:
    case TypeCode::kUInt64:
    case TypeCode::kBoolean8:
      return true;
    default:
      return false;
  }
}

bool IsCodeUnit(TypeCode code) {
  return code == TypeCode::kUtf8CodeUnit || code == TypeCode::kUtf16CodeUnit;
}

// Returns the element type of an array, or `type` itself if it is not an array.
const Type& ElementOf(const Type& type) {
  return type.element.empty() ? type : type.element.front();
}

bool IsTracepointType(const Type& type) {
  const TypeCode element = ElementOf(type).code;
  return IsInteger(element) || (IsCodeUnit(element) && !type.element.empty());
}

// Collects the values of fields, which are numbers, arrays of numbers, or text: Read() accepts no
// rows with fields of other types.
class Collector : public nettrace::PayloadVisitor {
 public:
  explicit Collector(std::vector<TracepointValue>* values) : values_(values) {}

  std::size_t fields() const { return fields_; }

  void OnName(std::string_view /*name*/) override {
    if (fields_ < values_->size()) ++fields_;
    TracepointValue& value = Current();
    value.kind = Kind::kOther;
    value.elements.clear();
    value.text.clear();
  }
  void OnBeginArray() override { Current().kind = Kind::kNumbers; }
  void OnInt(std::int64_t value) override { OnUInt(static_cast<std::uint64_t>(value)); }
  void OnUInt(std::uint64_t value) override {
    TracepointValue& current = Current();
    if (current.kind == Kind::kNumbers) {
      current.elements.push_back(value);
    } else {
      current.kind = Kind::kNumber;
      current.number = value;
    }
  }
  void OnBool(bool value) override { OnUInt(value ? 1 : 0); }
  void OnUnreadable() override {}  // the value stays kOther, or keeps the elements so far
  void OnUtf8(std::span<const std::byte> units) override {
    Current().kind = Kind::kText;
    nettrace::internal::AppendUtf8AsValid(units, &Current().text);
  }
  void OnUtf16(std::span<const std::byte> units) override {
    Current().kind = Kind::kText;
    nettrace::internal::AppendUtf16AsUtf8(units, &Current().text);
  }

 private:
  TracepointValue& Current() { return (*values_)[fields_ - 1]; }

  std::vector<TracepointValue>* values_;
  std::size_t fields_ = 0;
};

std::string HexOf(std::uint64_t number, std::size_t size) {
  if (size < sizeof number) number &= (std::uint64_t{1} << 8 * size) - 1;
  return base::FormatHexNumber(number);
}

}  // namespace

std::unique_ptr<TracepointPayload> TracepointPayload::Read(
    const nettrace::EventMetadata& metadata) {
  const absl::flat_hash_map<std::string, TracepointNote> notes = ReadTracepointNotes(metadata);
  if (notes.empty()) return nullptr;
  auto row = std::make_unique<TracepointPayload>();
  for (const nettrace::Field& field : metadata.fields) {
    if (!IsTracepointType(field.type)) return nullptr;
    const Type& element = ElementOf(field.type);
    FieldNotes& added = row->fields_.emplace_back();
    added.name = field.name;
    added.key = base::JsonString(field.name);
    added.is_bool = element.code == TypeCode::kBoolean8;
    added.size = nettrace::internal::FixedSize(element).value_or(0);
    TracepointValue& value = row->values_.values.emplace_back();
    value.is_unsigned = element.code == TypeCode::kUInt64;
    value.element_size = added.size;
    // If several fields share a name, the first one has the note.
    if (!row->places_.try_emplace(field.name, row->fields_.size() - 1).second) continue;
    if (const auto note = notes.find(field.name); note != notes.end()) added.note = note->second;
  }
  for (FieldNotes& field : row->fields_) field.inputs = row->InputsOf(field.note);
  row->values_.names = &row->places_;
  row->symbols_.resize(row->fields_.size());
  return row;
}

absl::Status TracepointPayload::Load(const nettrace::Event& event) {
  loaded_ = 0;
  Collector collector(&values_.values);
  absl::Status status = nettrace::VisitPayload(event.metadata->fields, event.payload, &collector,
                                               event.payload_encoding);
  loaded_ = collector.fields();
  // Clears the remaining values, which are those of an earlier event, so that they do not appear in
  // symbols of this event.
  for (std::size_t i = loaded_; i < values_.values.size(); ++i) {
    values_.values[i].kind = Kind::kOther;
    values_.values[i].elements.clear();
  }
  values_.labels = event.labels;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (i < loaded_ && !fields_[i].note.pieces.empty()) {
      LoadSymbol(i);
    } else {
      symbols_[i].reset();
    }
  }
  return status;
}

std::optional<std::vector<std::size_t>> TracepointPayload::InputsOf(
    const TracepointNote& note) const {
  std::vector<std::size_t> inputs;
  const bool are_all =
      std::all_of(note.pieces.begin(), note.pieces.end(),
                  [&](const SymbolPiece& piece) { return AddInputs(piece, &inputs); });
  return are_all && inputs.size() <= kMaxInputs ? std::optional(std::move(inputs)) : std::nullopt;
}

// Adds the fields that determine the value of the piece to `inputs`. Returns false if labels or
// elements of arrays determine it too.
// NOLINTNEXTLINE(misc-no-recursion): recurses at most kMaxNoteDepth times.
bool TracepointPayload::AddInputs(const SymbolPiece& piece,
                                  std::vector<std::size_t>* inputs) const {
  if (piece.kind == SymbolPiece::Kind::kElement) return false;
  if (piece.kind == SymbolPiece::Kind::kCall && piece.text == "kernel") return false;
  if (piece.kind == SymbolPiece::Kind::kField) {
    const auto field = places_.find(piece.text);
    if (field != places_.end() &&
        std::find(inputs->begin(), inputs->end(), field->second) == inputs->end()) {
      inputs->push_back(field->second);
    }
  }
  return std::all_of(piece.arguments.begin(), piece.arguments.end(),
                     [&](const SymbolPiece& argument) { return AddInputs(argument, inputs); });
}

void TracepointPayload::LoadSymbol(std::size_t field) {
  FieldNotes& notes = fields_[field];
  const auto is_number = [this](std::size_t input) {
    return values_.values[input].kind == Kind::kNumber;
  };
  if (!notes.inputs || !std::all_of(notes.inputs->begin(), notes.inputs->end(), is_number)) {
    symbols_[field] = FormatSymbol(notes.note, values_);
    return;
  }
  std::array<std::uint64_t, kMaxInputs> numbers = {};
  for (std::size_t i = 0; i < notes.inputs->size(); ++i) {
    numbers[i] = values_.values[(*notes.inputs)[i]].number;
  }
  const auto found =
      std::find_if(notes.known.begin(), notes.known.end(),
                   [&numbers](const KnownSymbol& known) { return known.numbers == numbers; });
  if (found != notes.known.end()) {
    symbols_[field] = found->symbol;
    return;
  }
  symbols_[field] = FormatSymbol(notes.note, values_);
  if (symbols_[field] && symbols_[field]->size() > kMaxKnownSize) return;
  if (notes.known.size() < kMaxKnown) {
    notes.known.push_back({numbers, symbols_[field]});
  } else {
    notes.known[notes.oldest] = {numbers, symbols_[field]};
    notes.oldest = (notes.oldest + 1) % kMaxKnown;
  }
}

void TracepointPayload::Put(ValueStyle style, base::JsonWriter* json) const {
  if (places_.size() != fields_.size()) {
    base::JsonMembers members;
    for (std::size_t i = 0; i < loaded_; ++i) {
      members.Add(fields_[i].name, [&](base::JsonWriter* value) { PutValue(i, style, value); });
    }
    members.Put(json);
    return;
  }
  json->StartObject();
  for (std::size_t i = 0; i < loaded_; ++i) {
    json->RawValue(fields_[i].key.data(), fields_[i].key.size(), rapidjson::kStringType);
    PutValue(i, style, json);
  }
  json->EndObject();
}

void TracepointPayload::PutValue(std::size_t field, ValueStyle style,
                                 base::JsonWriter* json) const {
  const TracepointValue& value = values_.values[field];
  const FieldNotes& notes = fields_[field];
  const bool with_symbol = style == ValueStyle::kForPeople && symbols_[field].has_value();
  const auto put_number = [&](std::uint64_t number) {
    if (notes.is_bool) {
      json->Bool(number != 0);
    } else if (value.is_unsigned) {
      PutWholeNumber(number, style, json);
    } else {
      PutWholeNumber(static_cast<std::int64_t>(number), style, json);
    }
  };
  switch (value.kind) {
    case Kind::kOther:
      PutUnreadable(style, json);
      break;
    case Kind::kText:
      base::PutString(json, value.text);
      break;
    case Kind::kNumbers:
      if (with_symbol) {
        base::PutString(json, *symbols_[field]);
        break;
      }
      json->StartArray();
      for (const std::uint64_t element : value.elements) put_number(element);
      json->EndArray();
      break;
    case Kind::kNumber:
      if (!with_symbol && !notes.note.hex) {
        put_number(value.number);
        break;
      }
      std::string text = notes.note.hex ? HexOf(value.number, notes.size)
                         : value.is_unsigned
                             ? absl::StrCat(value.number)
                             : absl::StrCat(static_cast<std::int64_t>(value.number));
      if (with_symbol) absl::StrAppend(&text, " (", *symbols_[field], ")");
      base::PutString(json, text);
      break;
  }
}

void TracepointPayload::PutSymbols(const char* key, base::JsonWriter* json) const {
  bool open = false;
  for (std::size_t i = 0; i < loaded_; ++i) {
    if (!symbols_[i]) continue;
    if (!open) {
      json->Key(key);
      json->StartObject();
      open = true;
    }
    base::PutKey(json, fields_[i].name);
    base::PutString(json, *symbols_[i]);
  }
  if (open) json->EndObject();
}

}  // namespace trace
