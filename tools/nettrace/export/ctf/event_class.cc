#include "tools/nettrace/export/ctf/event_class.h"

#include <algorithm>
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
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"
#include "tools/trace/tracepoint_keys.h"

namespace tools::ctf {
namespace {

using nettrace::Field;
using nettrace::Type;
using nettrace::TypeCode;
using nettrace::internal::ByteWriter;
using nettrace::internal::IsArray;
using nettrace::internal::IsCodeUnit;

using TracepointNotes = absl::flat_hash_map<std::string, trace::TracepointNote>;

// Returns the size of integers of this type in CTF, in bits, and 0 for other types.
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

// Returns whether arrays of this type have the same length in every event, and this length is not
// 0.
bool IsFixedArray(const Type& type) {
  return type.code == TypeCode::kFixedLengthArray && type.count > 0;
}

// Formats `number` as a decimal integer of type `code`. A negative number is in two's complement
// and has either 64 bits or only the bits of the type. Returns nullopt if it is out of range.
std::optional<std::string> IntegerText(TypeCode code, std::uint64_t number) {
  const unsigned bits = IntegerBits(code);
  if (nettrace::internal::IsSigned(code)) {
    // A tracepoint's note may state a negative value as the unsigned number with the same bits,
    // such as 255 for -1.
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

// Returns the (name, value) pairs of an integer field whose note is symbol(FIELD, N="NAME"...).
// Skips values that are out of range, and repeated values and names. Returns none for other notes.
std::vector<std::pair<std::string, std::string>> NamesOf(const Field& field,
                                                         const trace::TracepointNote& note) {
  if (note.pieces.size() != 1) return {};
  const trace::SymbolPiece& call = note.pieces.front();
  if (call.kind != trace::SymbolPiece::Kind::kCall || call.text != "symbol" ||
      call.arguments.empty() || call.arguments.front().kind != trace::SymbolPiece::Kind::kField ||
      call.arguments.front().text != field.name) {
    return {};
  }
  std::vector<std::pair<std::string, std::string>> found;
  absl::flat_hash_set<std::string> values;
  absl::flat_hash_set<std::string> names;
  for (const auto& [number, name] : call.names) {
    const std::optional<std::string> value = IntegerText(field.type.code, number);
    if (!value || name.empty() || !values.insert(*value).second) continue;
    if (names.insert(base::ValidUtf8(name)).second) found.emplace_back(name, *value);
  }
  return found;
}

FieldClass IntegerOf(const Field& field, const TracepointNotes* notes) {
  const TypeCode code = field.type.code;
  FieldClass integer = FieldClass::Unsigned(IntegerBits(code));
  integer.is_signed = nettrace::internal::IsSigned(code);
  if (notes == nullptr) return integer;
  if (const auto note = notes->find(field.name); note != notes->end()) {
    integer.is_hex = note->second.hex;
    integer.names = NamesOf(field, note->second);
  }
  return integer;
}

FieldClass StructOf(const std::vector<Field>& fields, const TracepointNotes* notes);

// Returns the class of a field. `notes` states how a tracepoint displays its fields. It is null for
// the fields of structs, because notes do not apply to them.
FieldClass FieldClassOf(const Field& field, const TracepointNotes* notes) {
  const Type& type = field.type;
  if (IsArray(type) && !IsCodeUnit(type.element[0])) {
    const std::optional<std::uint32_t> length =
        IsFixedArray(type) ? std::optional<std::uint32_t>(type.count) : std::nullopt;
    return FieldClass::Array(FieldClassOf({field.name, type.element[0]}, notes), length);
  }
  if (type.code == TypeCode::kObject) return StructOf(type.fields, nullptr);
  if (IntegerBits(type.code) != 0) return IntegerOf(field, notes);
  switch (type.code) {
    case TypeCode::kBoolean8:
    case TypeCode::kBoolean32:
      return FieldClass::Boolean();
    case TypeCode::kSingle:
      return FieldClass::Float(32);
    case TypeCode::kDouble:
      return FieldClass::Float(64);
    default:
      return FieldClass::Text();
  }
}

FieldClass StructOf(const std::vector<Field>& fields, const TracepointNotes* notes) {
  std::vector<Member> members;
  members.reserve(fields.size());
  for (const Field& field : fields) members.push_back({field.name, FieldClassOf(field, notes)});
  return FieldClass::Struct(std::move(members));
}

// Appends UTF-8, without a terminating NUL. U+2400 replaces each NUL in the text.
void PutUtf8(std::string_view text, ByteWriter* out) {
  for (std::size_t nul = text.find('\0'); nul != text.npos; nul = text.find('\0')) {
    out->Bytes(std::as_bytes(std::span(text.substr(0, nul))));
    constexpr std::string_view kSymbolForNull = "\xE2\x90\x80";  // U+2400
    out->Bytes(std::as_bytes(std::span(kSymbolForNull)));
    text.remove_prefix(nul + 1);
  }
  out->Bytes(std::as_bytes(std::span(text)));
}

// Appends texts, each followed by a NUL. Put requires valid UTF-8; PutAny replaces invalid units.
// In CTF 1.8, U+200B replaces an empty text (event_class.h).
class TextEncoder {
 public:
  TextEncoder(Version version, ByteWriter* out) : version_(version), out_(out) {}

  void Put(std::string_view valid) const {
    constexpr std::string_view kZeroWidthSpace = "\xE2\x80\x8B";  // U+200B
    PutUtf8(valid.empty() && version_ == Version::k1 ? kZeroWidthSpace : valid, out_);
    out_->Fixed(std::uint8_t{0});
  }
  void PutAny(std::string_view text) const {
    if (nettrace::internal::ClassifyUtf8(std::as_bytes(std::span(text))) !=
        nettrace::internal::TextKind::kInvalid) {
      Put(text);
    } else {
      Put(base::ValidUtf8(text));
    }
  }

 private:
  const Version version_;
  ByteWriter* const out_;
};

// Appends the values of a payload, encoded for the struct that StructOf returns for its fields.
class PayloadEncoder : public nettrace::PayloadVisitor {
 public:
  PayloadEncoder(const std::vector<Field>& fields, Version version, ByteWriter* out)
      : text_(version, out), out_(out) {
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
  void OnGuid(const nettrace::Guid& value) override { Put(base::FormatGuid(value)); }
  void OnDateTime(absl::Time utc) override { Put(base::FormatUtc(utc)); }
  void OnDecimal(std::span<const std::byte> bytes) override { Put(base::FormatHex(bytes)); }
  void OnUtf8(std::span<const std::byte> units) override {
    NextType();
    text_.PutAny({reinterpret_cast<const char*>(units.data()), units.size()});
  }
  void OnUtf16(std::span<const std::byte> units) override {
    utf8_.clear();
    nettrace::internal::AppendUtf16AsUtf8(units, &utf8_);
    Put(utf8_);
  }

 private:
  // An object whose fields are being read, or an array whose elements are being read.
  struct Level {
    const std::vector<Field>* fields = nullptr;
    std::size_t next = 0;                                 // number of the current field, from 1
    const Type* element = nullptr;                        // element type of an array
    std::uint32_t count = 0;                              // number of elements read
    std::optional<std::size_t> length_at = std::nullopt;  // place of an array's length in out_
  };

  // Returns the type of the current value. Counts the value if it is an element of an array.
  const Type& NextType() {
    Level& level = open_.back();
    if (level.fields != nullptr) return (*level.fields)[level.next - 1].type;
    ++level.count;
    return *level.element;
  }
  void Put(std::string_view valid) {
    NextType();
    text_.Put(valid);
  }

  const TextEncoder text_;
  ByteWriter* const out_;
  std::vector<Level> open_;
  std::string utf8_;
};

// Text of a context member whose value the file does not contain.
constexpr std::string_view kNone = "-";

void PutGuid(const std::optional<nettrace::Guid>& guid, const TextEncoder& text) {
  text.Put(guid ? base::FormatGuid(*guid) : std::string(kNone));
}

void PutLabels(const nettrace::Labels& labels, const TextEncoder& text, ByteWriter* out) {
  out->Fixed(static_cast<std::uint32_t>(labels.strings.size() + labels.integers.size()));
  for (const auto& [name, value] : labels.strings) {
    text.PutAny(name);
    text.PutAny(value);
  }
  for (const auto& [name, value] : labels.integers) {
    text.PutAny(name);
    text.Put(absl::StrCat(value));
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

EventClass EventClassOf(const nettrace::EventMetadata& metadata, bool with_fields) {
  EventClass event;
  event.name = absl::StrCat(metadata.provider, ":", std::string(trace::EventName(metadata)));
  if (metadata.level && *metadata.level != 0) {
    event.level = std::min(*metadata.level, kMaxLevel);
  }
  if (with_fields) {
    const TracepointNotes notes = trace::ReadTracepointNotes(metadata);
    event.fields = StructOf(metadata.fields, &notes);
  } else {
    event.fields =
        FieldClass::Struct({{"error", FieldClass::Text()}, {"payload", FieldClass::Bytes()}});
  }
  return event;
}

FieldClass ContextOf(Profile profile) {
  std::vector<Member> members;
  if (profile == Profile::kLttng) {
    members = {{"vpid", FieldClass::Signed(32)},
               {"vtid", FieldClass::Signed(32)},
               {"procname", FieldClass::Text()}};
  } else {
    members = {{"pid", FieldClass::Signed(64)},
               {"tid", FieldClass::Signed(64)},
               {"process", FieldClass::Text()}};
  }
  const FieldClass label =
      FieldClass::Struct({{"name", FieldClass::Text()}, {"value", FieldClass::Text()}});
  members.insert(members.end(), {{"thread", FieldClass::Text()},
                                 {"level", FieldClass::Unsigned(8)},
                                 {"opcode", FieldClass::Unsigned(8)},
                                 {"version", FieldClass::Unsigned(8)},
                                 {"keywords", FieldClass::Hex(64)},
                                 {"activity_id", FieldClass::Text()},
                                 {"related_activity_id", FieldClass::Text()},
                                 {"trace_id", FieldClass::Text()},
                                 {"span_id", FieldClass::Text()},
                                 {"labels", FieldClass::Array(label)},
                                 {"stack", FieldClass::Array(FieldClass::Hex(64))}});
  return FieldClass::Struct(std::move(members));
}

void EventEncoder::PutContext(const nettrace::Event& event, std::string_view process,
                              ByteWriter* out) const {
  const TextEncoder text(version_, out);
  const nettrace::ThreadInfo& thread = *event.thread;
  const std::string_view thread_name = thread.name ? std::string_view(*thread.name) : kNone;
  if (profile_ == Profile::kLttng) {
    out->Fixed(static_cast<std::int32_t>(OrUnknown(thread.process_id)));
    out->Fixed(static_cast<std::int32_t>(OrUnknown(thread.thread_id)));
    text.PutAny(process.empty() ? thread_name : process);
  } else {
    out->Fixed(OrUnknown(thread.process_id));
    out->Fixed(OrUnknown(thread.thread_id));
    text.PutAny(process.empty() ? kNone : process);
  }
  text.PutAny(thread_name);
  out->Fixed(event.level());
  out->Fixed(event.opcode());
  out->Fixed(event.version());
  out->Fixed(event.keywords());
  const nettrace::Labels& labels = *event.labels;
  PutGuid(labels.activity_id, text);
  PutGuid(labels.related_activity_id, text);
  text.Put(labels.trace_id ? base::FormatHex(*labels.trace_id) : std::string(kNone));
  text.Put(labels.span_id ? absl::StrFormat("%016x", *labels.span_id) : std::string(kNone));
  PutLabels(labels, text, out);
  PutStack(event.stack, static_cast<std::size_t>(pointer_size_), out);
}

absl::Status EventEncoder::PutPayload(const nettrace::Event& event, ByteWriter* out) const {
  const std::size_t start = out->size();
  PayloadEncoder encoder(event.metadata->fields, version_, out);
  absl::Status status = nettrace::VisitPayload(event.metadata->fields, event.payload, &encoder,
                                               event.payload_encoding);
  if (!status.ok()) out->Truncate(start);
  return status;
}

void EventEncoder::PutUnfitPayload(const nettrace::Event& event, std::string_view error,
                                   ByteWriter* out) const {
  TextEncoder(version_, out).Put(error);
  out->Fixed(static_cast<std::uint32_t>(event.payload.size()));
  out->Bytes(event.payload);
}

}  // namespace tools::ctf
