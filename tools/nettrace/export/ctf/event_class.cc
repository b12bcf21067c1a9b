#include "tools/nettrace/export/ctf/event_class.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/types.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/payload.h"
#include "tools/common/text.h"
#include "tools/common/tracepoint_keys.h"
#include "tools/nettrace/export/ctf/tsdl.h"

namespace tools::ctf {
namespace {

using nettrace::Field;
using nettrace::Type;
using nettrace::TypeCode;
using nettrace::internal::ByteWriter;
using nettrace::internal::IsArray;
using nettrace::internal::IsCodeUnit;

using TracepointNotes = absl::flat_hash_map<std::string, TracepointNote>;

// Bits of the integers of this type in CTF; 0 for other types.
unsigned IntegerBits(TypeCode code) {
  switch (code) {
    case TypeCode::kByte:
    case TypeCode::kSByte:
      return 8;
    case TypeCode::kInt16:
    case TypeCode::kUInt16:
      return 16;
    case TypeCode::kInt32:
    case TypeCode::kUInt32:
      return 32;
    case TypeCode::kInt64:
    case TypeCode::kUInt64:
    case TypeCode::kVarInt:
    case TypeCode::kVarUInt:
      return 64;
    default:
      return 0;
  }
}

std::string IntegerName(TypeCode code, bool hex) {
  const char* const sign = nettrace::internal::IsSigned(code) ? "" : "u";
  return absl::StrFormat("%sint%d_%st", sign, IntegerBits(code), hex ? "hex_" : "");
}

// Whether an array of this type has as many elements in every event.
bool IsFixedArray(const Type& type) {
  return type.code == TypeCode::kFixedLengthArray && type.count > 0;
}

bool IsArrayOfValues(const Type& type) { return IsArray(type) && !IsCodeUnit(type.element[0]); }

// `number`, sign-extended to 64 bits, as an integer of `code` has it; nullopt if it has not.
std::optional<std::string> EnumValue(TypeCode code, std::uint64_t number) {
  const unsigned bits = IntegerBits(code);
  if (nettrace::internal::IsSigned(code)) {
    // What C calls -1 may be noted as the unsigned number of as many bits.
    const unsigned unused = 64 - bits;
    const auto value = static_cast<std::int64_t>(number << unused) >> unused;
    const std::uint64_t rest = bits == 64 ? 0 : number >> bits;
    if (rest != 0 && static_cast<std::int64_t>(number) != value) return std::nullopt;
    return absl::StrCat(value);
  }
  if (bits < 64) {
    const std::uint64_t rest = number >> bits;
    if (rest != 0 && rest != ~std::uint64_t{0} >> bits) return std::nullopt;
    number &= (std::uint64_t{1} << bits) - 1;
  }
  return absl::StrCat(number);
}

// The enum of an integer whose note gives it names: symbol(FIELD, N="NAME"...). Empty if it has
// none.
std::string DeclareEnum(const Field& field, const TracepointNote& note) {
  if (note.pieces.size() != 1) return "";
  const SymbolPiece& call = note.pieces.front();
  if (call.kind != SymbolPiece::Kind::kCall || call.text != "symbol" || call.arguments.empty() ||
      call.arguments.front().kind != SymbolPiece::Kind::kField ||
      call.arguments.front().text != field.name) {
    return "";
  }
  std::string members;
  absl::flat_hash_set<std::string> values;
  absl::flat_hash_set<std::string> names;
  for (const auto& [number, name] : call.names) {
    const std::optional<std::string> value = EnumValue(field.type.code, number);
    if (!value || name.empty() || !values.insert(*value).second) continue;
    if (!names.insert(name).second) continue;
    absl::StrAppend(&members, members.empty() ? "" : ", ", Quote(name), " = ", *value);
  }
  if (members.empty()) return "";
  return absl::StrCat("enum : ", IntegerName(field.type.code, note.hex), " { ", members, " }");
}

class Declaration {
 public:
  explicit Declaration(const TracepointNotes* notes) : notes_(notes) {}

  std::string Fields(const std::vector<Field>& fields) {
    Members(fields);
    return text_ + "\t}";
  }

 private:
  void Members(const std::vector<Field>& fields) {
    FieldNames names;
    for (const Field& field : fields) Member(field, names.Add(field.name));
  }

  void Member(const Field& field, const std::string& name) {
    if (!IsArrayOfValues(field.type)) {
      absl::StrAppend(&text_, indent_);
      Value(field);
      absl::StrAppend(&text_, " ", name, ";\n");
      return;
    }
    const std::string length =
        IsFixedArray(field.type) ? absl::StrCat(field.type.count) : FieldNames::LengthName(name);
    if (!IsFixedArray(field.type)) absl::StrAppend(&text_, indent_, "uint32_t ", length, ";\n");
    absl::StrAppend(&text_, indent_);
    const Field element = {field.name, field.type.element[0]};
    if (IsArrayOfValues(element.type)) {
      Struct({{"value", element.type}});
    } else {
      Value(element);
    }
    absl::StrAppend(&text_, " ", name, "[", length, "];\n");
  }

  void Struct(const std::vector<Field>& fields) {
    absl::StrAppend(&text_, "struct {\n");
    // Notes are on an event's own fields.
    const TracepointNotes* const notes = std::exchange(notes_, nullptr);
    indent_ += '\t';
    Members(fields);
    indent_.pop_back();
    notes_ = notes;
    absl::StrAppend(&text_, indent_, "}");
  }

  // A type that is no array of values.
  void Value(const Field& field) {
    const TypeCode code = field.type.code;
    if (code == TypeCode::kObject) {
      Struct(field.type.fields);
    } else if (IntegerBits(code) != 0) {
      Integer(field);
    } else if (code == TypeCode::kBoolean8 || code == TypeCode::kBoolean32) {
      absl::StrAppend(&text_, "enum : uint8_t { \"false\" = 0, \"true\" = 1 }");
    } else if (code == TypeCode::kSingle) {
      absl::StrAppend(&text_, "float32_t");
    } else if (code == TypeCode::kDouble) {
      absl::StrAppend(&text_, "float64_t");
    } else {
      absl::StrAppend(&text_, "string");
    }
  }

  void Integer(const Field& field) {
    const TracepointNote* note = nullptr;
    if (notes_ != nullptr) {
      if (const auto found = notes_->find(field.name); found != notes_->end()) {
        note = &found->second;
      }
    }
    const std::string names = note == nullptr ? "" : DeclareEnum(field, *note);
    absl::StrAppend(
        &text_, names.empty() ? IntegerName(field.type.code, note != nullptr && note->hex) : names);
  }

  const TracepointNotes* notes_;
  std::string text_{"struct {\n"};
  std::string indent_{"\t\t"};
};

// Appends UTF-8 without its end.
void PutUtf8(std::string_view text, ByteWriter* out) {
  for (std::size_t nul = text.find('\0'); nul != text.npos; nul = text.find('\0')) {
    out->Bytes(std::as_bytes(std::span(text.substr(0, nul))));
    constexpr std::string_view kSymbolForNull = "\xE2\x90\x80";  // U+2400
    out->Bytes(std::as_bytes(std::span(kSymbolForNull)));
    text.remove_prefix(nul + 1);
  }
  out->Bytes(std::as_bytes(std::span(text)));
}

void PutText(std::string_view valid, ByteWriter* out) {
  constexpr std::string_view kZeroWidthSpace = "\xE2\x80\x8B";  // U+200B
  PutUtf8(valid.empty() ? kZeroWidthSpace : valid, out);
  out->Fixed(std::uint8_t{0});
}

void PutAnyText(std::string_view text, ByteWriter* out) {
  if (nettrace::internal::ClassifyUtf8(std::as_bytes(std::span(text))) !=
      nettrace::internal::TextKind::kInvalid) {
    PutText(text, out);
    return;
  }
  std::string valid;
  nettrace::internal::AppendUtf8AsValid(std::as_bytes(std::span(text)), &valid);
  PutText(valid, out);
}

class Encoder : public nettrace::PayloadVisitor {
 public:
  Encoder(const std::vector<Field>& fields, ByteWriter* out) : out_(out) {
    open_.push_back({.fields = &fields});
  }

  void OnName(std::string_view /*name*/) override { ++open_.back().next; }
  void OnBeginObject() override { open_.push_back({.fields = &NextType().fields}); }
  void OnEndObject() override { open_.pop_back(); }
  void OnBeginArray() override {
    const Type& type = NextType();
    Level level = {.element = &type.element[0]};
    if (!IsFixedArray(type)) level.length_at = out_->Reserve(sizeof(std::uint32_t));
    open_.push_back(level);
  }
  void OnEndArray() override {
    const Level level = open_.back();
    open_.pop_back();
    if (level.length_at) out_->FixedAt(*level.length_at, level.count);
  }
  void OnInt(std::int64_t value) override { OnUInt(static_cast<std::uint64_t>(value)); }
  void OnUInt(std::uint64_t value) override {
    switch (IntegerBits(NextType().code)) {
      case 8:
        return out_->Fixed(static_cast<std::uint8_t>(value));
      case 16:
        return out_->Fixed(static_cast<std::uint16_t>(value));
      case 32:
        return out_->Fixed(static_cast<std::uint32_t>(value));
      default:
        return out_->Fixed(value);
    }
  }
  void OnSingle(float value) override {
    NextType();
    out_->Fixed(std::bit_cast<std::uint32_t>(value));
  }
  void OnDouble(double value) override {
    NextType();
    out_->Fixed(std::bit_cast<std::uint64_t>(value));
  }
  void OnBool(bool value) override {
    NextType();
    out_->Fixed(static_cast<std::uint8_t>(value ? 1 : 0));
  }
  void OnGuid(const nettrace::Guid& value) override { Put(FormatGuid(value)); }
  void OnDateTime(absl::Time utc) override { Put(FormatUtc(utc)); }
  void OnDecimal(std::span<const std::byte> bytes) override { Put(FormatHex(bytes)); }
  void OnUtf8(std::span<const std::byte> units) override {
    NextType();
    PutAnyText({reinterpret_cast<const char*>(units.data()), units.size()}, out_);
  }
  void OnUtf16(std::span<const std::byte> units) override {
    text_.clear();
    nettrace::internal::AppendUtf16AsUtf8(units, &text_);
    Put(text_);
  }

 private:
  // An object whose fields come, or an array whose elements come.
  struct Level {
    const std::vector<Field>* fields = nullptr;
    std::size_t next = 0;           // fields whose names have come
    const Type* element = nullptr;  // of an array
    std::uint32_t count = 0;        // elements that have come
    std::optional<std::size_t> length_at = std::nullopt;
  };

  // The type of the value that comes now.
  const Type& NextType() {
    Level& level = open_.back();
    if (level.fields != nullptr) return (*level.fields)[level.next - 1].type;
    ++level.count;
    return *level.element;
  }
  void Put(std::string_view valid) {
    NextType();
    PutText(valid, out_);
  }

  ByteWriter* out_;
  std::vector<Level> open_;
  std::string text_;
};

// LTTng's number for a level, of those that syslog has, and 14 for debugging.
std::optional<int> LogLevel(const nettrace::EventMetadata& metadata) {
  constexpr std::array<int, 6> kLogLevels = {0, 2, 3, 4, 6, 14};
  if (!metadata.level || *metadata.level == 0) return std::nullopt;
  return *metadata.level < kLogLevels.size() ? kLogLevels[*metadata.level] : kLogLevels.back();
}

// What stands for a text of the context that the file does not have.
constexpr std::string_view kNone = "-";

void PutGuidText(const std::optional<nettrace::Guid>& guid, ByteWriter* out) {
  PutText(guid ? FormatGuid(*guid) : std::string(kNone), out);
}

void PutLabels(const nettrace::Labels& labels, ByteWriter* out) {
  out->Fixed(static_cast<std::uint32_t>(labels.strings.size() + labels.integers.size()));
  for (const auto& [name, value] : labels.strings) {
    PutAnyText(name, out);
    PutAnyText(value, out);
  }
  for (const auto& [name, value] : labels.integers) {
    PutAnyText(name, out);
    PutText(absl::StrCat(value), out);
  }
}

void PutStack(std::span<const std::byte> stack, std::size_t pointer_size, ByteWriter* out) {
  out->Fixed(static_cast<std::uint32_t>(stack.size() / pointer_size));
  for (; stack.size() >= pointer_size; stack = stack.subspan(pointer_size)) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, stack.data(), pointer_size);
    out->Fixed(nettrace::internal::LittleEndian(frame));
  }
}

std::int64_t OrUnknown(const std::optional<std::uint64_t>& id) {
  return id ? static_cast<std::int64_t>(*id) : -1;
}

}  // namespace

std::string DeclareTypes() {
  std::string text;
  for (const bool hex : {false, true}) {
    for (const int bits : {8, 16, 32, 64}) {
      for (const bool is_signed : {false, true}) {
        absl::StrAppendFormat(
            &text, "typealias integer { size = %d; align = 8; signed = %s;%s } := %sint%d_%st;\n",
            bits, is_signed ? "true" : "false", hex ? " base = 16;" : "", is_signed ? "" : "u",
            bits, hex ? "hex_" : "");
      }
    }
  }
  absl::StrAppend(
      &text,
      "typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := float32_t;\n"
      "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := float64_t;\n");
  return text;
}

std::string DeclareClass(const nettrace::EventMetadata& metadata, bool with_fields) {
  std::string text =
      absl::StrCat("\tname = ", Quote(absl::StrCat(metadata.provider, ":", metadata.name)), ";\n");
  if (const std::optional<int> level = LogLevel(metadata)) {
    absl::StrAppend(&text, "\tloglevel = ", *level, ";\n");
  }
  absl::StrAppend(&text, "\tfields := ");
  if (with_fields) {
    const TracepointNotes notes = ReadTracepointNotes(metadata);
    absl::StrAppend(&text, Declaration(&notes).Fields(metadata.fields));
  } else {
    absl::StrAppend(&text,
                    "struct {\n\t\tstring _error;\n\t\tuint32_t __payload_length;\n"
                    "\t\tuint8_hex_t _payload[__payload_length];\n\t}");
  }
  return text + ";\n";
}

absl::Status PutPayload(const nettrace::Event& event, ByteWriter* out) {
  const std::size_t start = out->size();
  Encoder encoder(event.metadata->fields, out);
  absl::Status status = nettrace::VisitPayload(event.metadata->fields, event.payload, &encoder,
                                               event.payload_encoding);
  if (!status.ok()) out->Truncate(start);
  return status;
}

void PutUnfitPayload(const nettrace::Event& event, std::string_view error, ByteWriter* out) {
  PutText(error, out);
  out->Fixed(static_cast<std::uint32_t>(event.payload.size()));
  out->Bytes(event.payload);
}

std::string DeclareContext(Profile profile) {
  const char* const who = profile == Profile::kLttng
                              ? "\t\tint32_t _vpid;\n\t\tint32_t _vtid;\n\t\tstring _procname;\n"
                              : "\t\tint64_t _pid;\n\t\tint64_t _tid;\n\t\tstring _process;\n";
  return absl::StrCat("struct {\n", who,
                      "\t\tstring _thread;\n"
                      "\t\tuint8_t _level;\n"
                      "\t\tuint8_t _opcode;\n"
                      "\t\tuint8_t _version;\n"
                      "\t\tuint64_hex_t _keywords;\n"
                      "\t\tstring _activity_id;\n"
                      "\t\tstring _related_activity_id;\n"
                      "\t\tstring _trace_id;\n"
                      "\t\tstring _span_id;\n"
                      "\t\tuint32_t __labels_length;\n"
                      "\t\tstruct { string _name; string _value; } _labels[__labels_length];\n"
                      "\t\tuint32_t __stack_length;\n"
                      "\t\tuint64_hex_t _stack[__stack_length];\n"
                      "\t}");
}

void PutContext(const nettrace::Event& event, std::string_view process, Profile profile,
                std::int32_t pointer_size, ByteWriter* out) {
  const nettrace::ThreadInfo& thread = *event.thread;
  const std::string_view thread_name = thread.name ? std::string_view(*thread.name) : kNone;
  if (profile == Profile::kLttng) {
    out->Fixed(static_cast<std::int32_t>(OrUnknown(thread.process_id)));
    out->Fixed(static_cast<std::int32_t>(OrUnknown(thread.thread_id)));
    PutAnyText(process.empty() ? thread_name : process, out);
  } else {
    out->Fixed(OrUnknown(thread.process_id));
    out->Fixed(OrUnknown(thread.thread_id));
    PutAnyText(process.empty() ? kNone : process, out);
  }
  PutAnyText(thread_name, out);
  out->Fixed(event.level());
  out->Fixed(event.opcode());
  out->Fixed(event.version());
  out->Fixed(event.keywords());
  const nettrace::Labels& labels = *event.labels;
  PutGuidText(labels.activity_id, out);
  PutGuidText(labels.related_activity_id, out);
  PutText(labels.trace_id ? FormatHex(*labels.trace_id) : std::string(kNone), out);
  PutText(labels.span_id ? absl::StrFormat("%016x", *labels.span_id) : std::string(kNone), out);
  PutLabels(labels, out);
  PutStack(event.stack, static_cast<std::size_t>(pointer_size), out);
}

}  // namespace tools::ctf
