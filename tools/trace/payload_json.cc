#include "tools/trace/payload_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "libeventheader/base/utf.h"
#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/types.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/payload.h"
#include "tools/base/json_members.h"
#include "tools/base/text.h"
#include "tools/trace/common_schema.h"
#include "tools/trace/event_name.h"
#include "tools/trace/field_value.h"
#include "tools/trace/value_output.h"

namespace trace {
namespace {

using nettrace::Type;
using nettrace::TypeCode;

ValueStyle ValueStyleOf(PayloadStyle style) {
  const bool for_people = style == PayloadStyle::kForPeople || style == PayloadStyle::kRawForPeople;
  return for_people ? ValueStyle::kForPeople : ValueStyle::kForPrograms;
}

using FieldNotes = absl::flat_hash_map<std::size_t, FieldNote>;

FieldNotes ReadFieldNotes(const nettrace::EventMetadata& metadata) {
  FieldNotes notes;
  for (const auto& [key, value] : metadata.key_values) {
    const std::optional<std::size_t> index = ParseFieldKey(key);
    if (!index) continue;
    if (std::optional<FieldNote> note = ParseFieldNote(value)) {
      notes.emplace(*index, *std::move(note));
    }
  }
  return notes;
}

using nettrace::internal::IsPlainArray;
using nettrace::internal::IsText;

// Returns the size in bytes of the elements of `type`, if it is an array of unsigned integers of 1,
// 2 or 4 bytes. Returns 0 for other types.
std::size_t IntegerSizeOf(const Type& type) {
  if (!IsPlainArray(type)) return 0;
  switch (type.element.front().code) {
    case TypeCode::kByte:
      return 1;
    case TypeCode::kUInt16:
      return 2;
    case TypeCode::kUInt32:
      return 4;
    default:
      return 0;
  }
}

// If `type` is an array of Objects whose only member is an array, returns that member's type.
// Returns null for other types.
const Type* WrappedArray(const Type& type) {
  if (!IsPlainArray(type) || type.element.front().code != TypeCode::kObject) return nullptr;
  const std::vector<nettrace::Field>& members = type.element.front().fields;
  return members.size() == 1 && IsPlainArray(members.front().type) ? &members.front().type
                                                                   : nullptr;
}

// Returns whether a byte sequence of `encoding` may be stored as integers of `size` bytes: as
// bytes, or as the code units of the encoding.
bool AreIntegersOf(eh::Encoding encoding, std::size_t size) {
  return size == 1 || (size != 0 && size == eh::internal::CodeUnitSize(encoding));
}

// Sets `format` to the form in which the values of a nullable field of `type` are shown.
void ReadNullable(const Type& type, FieldFormat* format) {
  using Values = FieldFormat::Values;
  const Type* const wrapped = WrappedArray(type);
  const Type& array = wrapped != nullptr ? *wrapped : type;
  if (!IsPlainArray(array)) return;
  const Type& element = array.element.front();
  if (IsText(array) || IsText(element)) {
    format->values = Values::kNullOrText;
  } else if (element.code == TypeCode::kByte) {
    format->values = wrapped != nullptr ? Values::kWrappedBytes : Values::kBytes;
    format->integer_size = 1;
  } else if (element.element.empty() && element.fields.empty()) {
    const std::size_t size = nettrace::internal::FixedSize(element).value_or(0);
    format->note.encoding = eh::internal::ValueEncoding(size);
    format->values = wrapped != nullptr ? Values::kWrappedNullOrNumber : Values::kNullOrNumber;
  }
}

// Returns whether the values of a field of `type`, or the elements of its array, have the size of
// `encoding`.
bool HasSizeOf(eh::Encoding encoding, const Type& type) {
  const std::size_t size = eh::internal::FixedSize(encoding);
  return size == 0 ||
         nettrace::internal::FixedSize(IsPlainArray(type) ? type.element.front() : type) == size;
}

// Returns the formats of `fields`. `*index` is the N in EventHeader.Field.N of the first field, and
// is advanced past the fields and their members. Ignores notes that contradict the type of their
// field.
std::vector<FieldFormat> ReadFormats(const std::vector<nettrace::Field>& fields,
                                     const FieldNotes& notes, std::size_t* index) {
  using Values = FieldFormat::Values;
  std::vector<FieldFormat> formats;
  formats.reserve(fields.size());
  for (const nettrace::Field& field : fields) {
    FieldFormat& format = formats.emplace_back();
    if (const auto note = notes.find((*index)++); note != notes.end()) {
      format.note = note->second;
      const eh::Encoding encoding = format.note.encoding;
      const Type* const wrapped = WrappedArray(field.type);
      format.integer_size = IntegerSizeOf(wrapped != nullptr ? *wrapped : field.type);
      if (IsNullable(encoding, format.note.format)) {
        ReadNullable(field.type, &format);
      } else if (!IsByteSequence(encoding, format.note.format)) {
        if (HasSizeOf(encoding, field.type)) format.values = Values::kNumbers;
      } else if (AreIntegersOf(encoding, format.integer_size)) {
        format.values = wrapped != nullptr ? Values::kWrappedBytes : Values::kBytes;
      }
      if (wrapped != nullptr && format.values != Values::kAsTyped &&
          format.values != Values::kNumbers) {
        continue;  // the Object only wraps an array; its member has no definition
      }
    }
    const Type& type = IsPlainArray(field.type) ? field.type.element.front() : field.type;
    if (type.code == TypeCode::kObject) format.members = ReadFormats(type.fields, notes, index);
  }
  return formats;
}

void PutAttributes(std::string_view text, base::JsonWriter* json) {
  base::JsonMembers members;
  for (const auto& [name, value] : ParseAttributes(text)) members.AddText(name, value);
  members.Put(json);
}

// Returns whether the path of the field is needed to show its tag, attributes or errno symbols.
bool NeedsPath(const FieldNote& note) {
  return note.tag || !note.attributes.empty() || note.format == eh::Format::kErrno;
}

// Sets the paths of fields for which NeedsPath is true, and appends these fields to `named`. Leaves
// out fields whose paths are longer than an EventHeader event allows. Only crafted files have such
// fields.
void NameFields(const std::vector<nettrace::Field>& fields, const std::string& parent,
                std::vector<FieldFormat>* formats, std::vector<const FieldFormat*>* named) {
  constexpr std::size_t kMaxPath = 8192;
  for (std::size_t i = 0; i < formats->size(); ++i) {
    FieldFormat& format = (*formats)[i];
    if (parent.size() + fields[i].name.size() > kMaxPath) continue;
    const std::string path = parent + fields[i].name;
    if (NeedsPath(format.note)) {
      format.path = path;
      named->push_back(&format);
    }
    const Type& type = nettrace::internal::IsArray(fields[i].type) ? fields[i].type.element.front()
                                                                   : fields[i].type;
    NameFields(type.fields, path + ".", &format.members, named);
  }
}

void PutFieldTags(const std::vector<const FieldFormat*>& fields, base::JsonWriter* json) {
  base::JsonMembers members;
  for (const FieldFormat* const field : fields) {
    if (field->note.tag) members.AddText(field->path, absl::StrFormat("0x%x", *field->note.tag));
  }
  members.Put(json);
}

void PutFieldAttributes(const std::vector<const FieldFormat*>& fields, base::JsonWriter* json) {
  base::JsonMembers members;
  for (const FieldFormat* const field : fields) {
    if (field->note.attributes.empty()) continue;
    members.Add(field->path,
                [field](base::JsonWriter* value) { PutAttributes(field->note.attributes, value); });
  }
  members.Put(json);
}

// Returns whether two of the fields, or two members of an Object in them, have the same key in
// JSON.
bool RepeatNames(const std::vector<nettrace::Field>& fields) {
  absl::flat_hash_set<std::string> names;
  return std::any_of(fields.begin(), fields.end(), [&names](const nettrace::Field& field) {
    const Type* type = &field.type;
    while (!type->element.empty()) type = &type->element.front();
    return !names.insert(base::ValidUtf8(field.name)).second || RepeatNames(type->fields);
  });
}

// Returns the formats of the fields of a kernel tracepoint. If several fields share a name, the
// first one has the note.
std::vector<FieldFormat> ReadTracepointFormats(const nettrace::EventMetadata& metadata) {
  absl::flat_hash_map<std::string, TracepointNote> notes = ReadTracepointNotes(metadata);
  std::vector<FieldFormat> formats(metadata.fields.size());
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const auto note = notes.extract(metadata.fields[i].name);
    const std::size_t size = nettrace::internal::FixedSize(metadata.fields[i].type).value_or(0);
    if (note.empty() || !note.mapped().hex || size == 0) continue;
    if (!metadata.fields[i].type.element.empty()) continue;
    formats[i].values = FieldFormat::Values::kNumbers;
    formats[i].note.encoding = eh::internal::ValueEncoding(size);
    formats[i].note.format = eh::Format::kHexInt;
  }
  return formats;
}

RowNotes ReadRowNotes(const nettrace::EventMetadata& metadata) {
  RowNotes row;
  row.id = metadata.event_id;
  row.repeats_names = RepeatNames(metadata.fields);
  row.has_common_schema = HasCommonSchema(metadata);
  // Adds a property to row.extras. If a key occurs several times, its first value is used.
  const auto add = [&row](const char* name, const auto& put) {
    const auto is_same = [name](const auto& extra) { return extra.first == name; };
    if (std::any_of(row.extras.begin(), row.extras.end(), is_same)) return;
    rapidjson::StringBuffer buffer;
    base::JsonWriter json(buffer);
    put(&json);
    row.extras.emplace_back(name, std::string(buffer.GetString(), buffer.GetSize()));
  };
  for (const auto& [key, value] : metadata.key_values) {
    const auto put_value = [&text = value](base::JsonWriter* json) { base::PutString(json, text); };
    std::uint32_t id = 0;
    if (key == kKeyId && absl::SimpleAtoi(value, &id) && id <= 0xFFFF) {
      row.id = id;
    } else if (key == kKeyTag) {
      add("tag", put_value);
    } else if (key == kKeyGroup) {
      add("group", put_value);
    } else if (key == kKeyAttributes) {
      add("attributes", [&text = value](base::JsonWriter* json) { PutAttributes(text, json); });
    }
  }
  row.tracepoint = TracepointPayload::Read(metadata);
  const FieldNotes notes = ReadFieldNotes(metadata);
  if (notes.empty()) {
    if (row.tracepoint != nullptr) row.formats = ReadTracepointFormats(metadata);
    return row;
  }
  std::size_t index = 0;
  row.formats = ReadFormats(metadata.fields, notes, &index);
  std::vector<const FieldFormat*> named;
  NameFields(metadata.fields, "", &row.formats, &named);
  const auto has_tag = [](const FieldFormat* field) { return field->note.tag.has_value(); };
  if (std::any_of(named.begin(), named.end(), has_tag)) {
    add("fieldTags", [&](base::JsonWriter* json) { PutFieldTags(named, json); });
  }
  const auto has_attributes = [](const FieldFormat* field) {
    return !field->note.attributes.empty();
  };
  if (std::any_of(named.begin(), named.end(), has_attributes)) {
    add("fieldAttributes", [&](base::JsonWriter* json) { PutFieldAttributes(named, json); });
  }
  return row;
}

std::string RowText(const nettrace::EventMetadata& metadata) {
  std::string text = metadata.provider;
  text += ' ';
  return text.append(EventName(metadata));
}

std::string RowJson(const nettrace::EventMetadata& metadata, std::uint32_t id) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutText(&json, "provider", metadata.provider);
  base::PutText(&json, "name", EventName(metadata));
  base::PutNumber(&json, "id", id);
  // Leaves out the opening brace. The object was not ended, so there is no closing brace.
  return std::string(buffer.GetString() + 1, buffer.GetSize() - 1);
}

// Passes the values of a payload to an output: JsonValueOutput or ValueOutput.
template <typename Output>
class FieldVisitor : public nettrace::PayloadVisitor {
 public:
  // If `row` is null, passes all values by the types in the metadata row. `repeats_names` is
  // RowNotes::repeats_names.
  FieldVisitor(const RowNotes* row, bool repeats_names, bool raw, Output* out,
               std::vector<ErrnoSymbols>* errnos)
      : raw_(raw), repeats_names_(repeats_names), out_(out), errnos_(errnos) {
    if (row != nullptr && !row->formats.empty()) open_.push_back({&row->formats, 0});
  }

  void OnName(std::string_view name) override {
    if (in_wrapper_) return;
    if (!open_.empty()) ++open_.back().members;
    out_->Key(name);
  }
  void OnBeginObject() override {
    if (Is(FieldFormat::Values::kWrappedBytes) || Is(FieldFormat::Values::kWrappedNullOrNumber)) {
      in_wrapper_ = true;
      return;
    }
    out_->BeginObject(repeats_names_);
    if (open_.empty()) return;
    const FieldFormat* format = Current();
    open_.push_back({format == nullptr ? &kNone : &format->members, 0});
  }
  void OnEndObject() override {
    if (in_wrapper_) {
      in_wrapper_ = false;
      return;
    }
    out_->EndObject(repeats_names_);
    if (!open_.empty()) open_.pop_back();
  }
  void OnBeginArray() override {
    if (Is(FieldFormat::Values::kNullOrNumber) ||
        (in_wrapper_ && Is(FieldFormat::Values::kWrappedNullOrNumber))) {
      in_nullable_ = true;
      is_null_ = true;
    } else if (Is(FieldFormat::Values::kBytes) || in_wrapper_) {
      in_bytes_ = true;
      bytes_.clear();
    } else {
      out_->BeginArray();
      ++open_arrays_;
    }
  }
  void OnEndArray() override {
    if (in_nullable_) {
      in_nullable_ = false;
      if (is_null_) {
        NoteErrno(0, eh::internal::FixedSize(Current()->note.encoding));
        out_->Null();
      }
    } else if (in_bytes_) {
      in_bytes_ = false;
      NoteErrno(eh::ReadUnsigned(bytes_, /*little_endian=*/true), bytes_.size());
      PutFieldBytes(Current()->note.encoding, Current()->note.format, bytes_, out_);
    } else {
      --open_arrays_;
      out_->EndArray();
    }
  }
  void OnInt(std::int64_t value) override {
    if (!IsFirst()) return;
    if (!PutFormatted(static_cast<std::uint64_t>(value))) out_->Whole(value);
  }
  void OnUInt(std::uint64_t value) override {
    if (in_bytes_) {
      for (std::size_t i = 0; i < Current()->integer_size; ++i, value >>= 8) {
        bytes_.push_back(static_cast<std::byte>(value));
      }
    } else if (IsFirst() && !PutFormatted(value)) {
      out_->Whole(value);
    }
  }
  void OnSingle(float value) override {
    if (IsFirst()) out_->Single(value);
  }
  void OnDouble(double value) override {
    if (IsFirst()) out_->Double(value);
  }
  void OnBool(bool value) override {
    if (IsFirst()) out_->Bool(value);
  }
  void OnGuid(const nettrace::Guid& value) override {
    if (IsFirst()) out_->Text(base::FormatGuid(value));
  }
  void OnDateTime(absl::Time utc) override { out_->Text(base::FormatUtc(utc)); }
  void OnDecimal(std::span<const std::byte> bytes) override { out_->Bytes(bytes); }
  void OnUtf8(std::span<const std::byte> units) override {
    if (PutNull(units)) return;
    if (raw_ && nettrace::internal::ClassifyUtf8(units) == nettrace::internal::TextKind::kInvalid) {
      PutUnits<std::uint8_t>(units);
      return;
    }
    text_.clear();
    if (Is(FieldFormat::Values::kNumbers) && Current()->note.format == eh::Format::kString8) {
      std::vector<std::byte> utf16;
      nettrace::internal::AppendLatin1AsUtf16(units, &utf16);
      nettrace::internal::AppendUtf16AsUtf8(utf16, &text_);
    } else {
      nettrace::internal::AppendUtf8AsValid(units, &text_);
    }
    out_->Text(text_);
  }
  void OnUtf16(std::span<const std::byte> units) override {
    if (PutNull(units)) return;
    if (raw_ && !IsUtf16(units)) {
      PutUnits<std::uint16_t>(units);
      return;
    }
    text_.clear();
    nettrace::internal::AppendUtf16AsUtf8(units, &text_);
    out_->Text(text_);
  }
  void OnUnreadable() override {
    // If the value is stored as an array, OnEndArray() writes it, with the bytes or the number that
    // could be read.
    if (in_bytes_ || in_nullable_) return;
    out_->Unreadable();
  }

 private:
  struct Object {
    const std::vector<FieldFormat>* formats;
    std::size_t members;  // number of members of the object so far, including the current one
  };
  static inline const std::vector<FieldFormat> kNone;
  // Returns the format of the field whose values are being read. Returns null if the values are
  // shown by the field's type.
  const FieldFormat* Current() const {
    if (open_.empty() || open_.back().members - 1 >= open_.back().formats->size()) return nullptr;
    return &(*open_.back().formats)[open_.back().members - 1];
  }
  bool Is(FieldFormat::Values values) const {
    const FieldFormat* format = Current();
    return format != nullptr && format->values == values;
  }
  // Returns whether the value must be shown. This is false only for the second and later elements
  // of an array that stores a nullable value. Only an invalid file has such elements.
  bool IsFirst() { return !in_nullable_ || std::exchange(is_null_, false); }

  bool PutNull(std::span<const std::byte> units) {
    if (!units.empty() || !Is(FieldFormat::Values::kNullOrText)) return false;
    out_->Null();
    return true;
  }

  // Returns whether the text is valid UTF-16: each surrogate in it belongs to a pair.
  static bool IsUtf16(std::span<const std::byte> units) {
    while (!units.empty()) {
      if (eh::internal::DecodeUtf16(&units, /*little_endian=*/true) == eh::internal::kMalformed) {
        return false;
      }
    }
    return true;
  }

  // Shows malformed text as an array of its code units.
  template <typename Unit>
  void PutUnits(std::span<const std::byte> units) {
    out_->BeginArray();
    for (; units.size() >= sizeof(Unit); units = units.subspan(sizeof(Unit))) {
      out_->Whole(std::uint64_t{nettrace::internal::LoadLittleEndian<Unit>(units.data())});
    }
    out_->EndArray();
  }

  // Shows a number in the format of its field. Returns false, and shows nothing, if the field's
  // numbers must be shown by its type.
  bool PutFormatted(std::uint64_t value) {
    if (!Is(FieldFormat::Values::kNumbers) && !in_nullable_) return false;
    const FieldNote& note = Current()->note;
    // The file has separate types for floats, so a note that calls an integer a float is wrong.
    if (eh::internal::FixedSize(note.encoding) == 0 ||
        eh::internal::ShownFormat(note.encoding, note.format) == eh::Format::kFloat) {
      return false;
    }
    NoteErrno(value, eh::internal::FixedSize(note.encoding));
    PutFieldNumber(note.encoding, note.format, value, out_);
    return true;
  }
  // Records the name of the current field's value if the value is an errno. The value has `size`
  // bytes.
  void NoteErrno(std::uint64_t value, std::size_t size) {
    const FieldFormat* const field = Current();
    const FieldNote& note = field->note;
    if (eh::ValueFormat(note.encoding, note.format, size) != eh::Format::kErrno) return;
    if (field->path.empty()) return;  // NameFields left out the field
    const auto is_field = [field](const ErrnoSymbols& symbols) { return symbols.field == field; };
    auto found = std::find_if(errnos_->begin(), errnos_->end(), is_field);
    if (found == errnos_->end()) {
      found = errnos_->insert(found, {field, open_arrays_ > 0, {}});
    }
    found->names.push_back(ErrnoName(value));
  }

  const bool raw_;
  const bool repeats_names_;
  Output* const out_;
  std::vector<ErrnoSymbols>* errnos_;
  int open_arrays_ = 0;
  std::vector<Object> open_;  // open objects; empty if the row has no formats
  bool in_wrapper_ = false;
  bool in_bytes_ = false;
  bool in_nullable_ = false;
  bool is_null_ = false;  // whether the current nullable value has no element so far
  std::vector<std::byte> bytes_;
  std::string text_;
};

}  // namespace

const RowNotes& PayloadJson::NotesOf(const nettrace::EventMetadata& metadata) {
  if (last_row_ == &metadata) return *last_notes_;
  const auto [entry, added] = rows_.try_emplace(&metadata);
  if (added) {
    entry->second = ReadRowNotes(metadata);
    std::string text = RowText(metadata);
    std::string json = RowJson(metadata, entry->second.id);
    if (kept_text_ + text.size() + json.size() <= kMaxKeptText) {
      kept_text_ += text.size() + json.size();
      entry->second.text = std::move(text);
      entry->second.json = std::move(json);
    }
  }
  last_row_ = &metadata;
  last_notes_ = &entry->second;
  return entry->second;
}

std::string_view PayloadJson::TextOf(const nettrace::EventMetadata& metadata) {
  const RowNotes& row = NotesOf(metadata);
  if (!row.text.empty()) return row.text;
  text_ = RowText(metadata);
  return text_;
}

std::string_view PayloadJson::JsonOf(const nettrace::EventMetadata& metadata) {
  const RowNotes& row = NotesOf(metadata);
  if (!row.json.empty()) return row.json;
  text_ = RowJson(metadata, row.id);
  return text_;
}

base::JsonWriter* PayloadJson::StartJson() {
  buffer_.Clear();
  writer_.Reset(buffer_);
  return &writer_;
}

absl::Status PayloadJson::Put(const nettrace::Event& event, base::JsonWriter* json) {
  const RowNotes& row = NotesOf(*event.metadata);
  last_errnos_.clear();
  last_tracepoint_ = is_raw() ? nullptr : row.tracepoint.get();
  if (last_tracepoint_ != nullptr) {
    absl::Status status = last_tracepoint_->Load(event);
    last_tracepoint_->Put(ValueStyleOf(style_), json);
    return status;
  }
  JsonValueOutput out(ValueStyleOf(style_), json);
  out.BeginObject(row.repeats_names);
  absl::Status status = Visit(event, row, &out);
  out.EndObject(row.repeats_names);
  return status;
}

absl::Status PayloadJson::PutMembers(const nettrace::Event& event, ValueOutput* out) {
  last_errnos_.clear();
  last_tracepoint_ = nullptr;
  return Visit(event, NotesOf(*event.metadata), out);
}

template <typename Output>
absl::Status PayloadJson::Visit(const nettrace::Event& event, const RowNotes& row, Output* out) {
  FieldVisitor<Output> visitor(is_raw() ? nullptr : &row, row.repeats_names, is_raw(), out,
                               &last_errnos_);
  return nettrace::VisitPayload(event.metadata->fields, event.payload, &visitor,
                                event.payload_encoding);
}

void PayloadJson::PutSymbols(const char* key, base::JsonWriter* json) const {
  if (last_tracepoint_ != nullptr) last_tracepoint_->PutSymbols(key, json);
  const auto is_named = [](const ErrnoSymbols& symbols) {
    const auto is_name = [](const char* name) { return name != nullptr; };
    return std::any_of(symbols.names.begin(), symbols.names.end(), is_name);
  };
  if (std::none_of(last_errnos_.begin(), last_errnos_.end(), is_named)) return;
  json->Key(key);
  base::JsonMembers members;
  for (const ErrnoSymbols& symbols : last_errnos_) {
    if (!is_named(symbols)) continue;
    members.Add(symbols.field->path, [&symbols](base::JsonWriter* value) {
      if (symbols.in_array) value->StartArray();
      for (const char* const name : symbols.names) {
        if (name == nullptr) {
          value->Null();
        } else {
          value->String(name);
        }
      }
      if (symbols.in_array) value->EndArray();
    });
  }
  members.Put(json);
}

void PayloadJson::ForgetRows() {
  rows_.clear();
  last_row_ = nullptr;
  last_notes_ = nullptr;
  kept_text_ = 0;
  last_errnos_.clear();
  last_tracepoint_ = nullptr;
}

}  // namespace trace
