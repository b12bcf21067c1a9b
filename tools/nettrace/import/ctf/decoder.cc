#include "tools/nettrace/import/ctf/decoder.h"

#include <algorithm>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "nettrace/payload.h"

namespace tools::importing::ctf {
namespace {

using nettrace::TypeCode;
using FieldType = nettrace::Type;

// Maximum number of elements of an array, and of bytes of a text, in a V6 file.
constexpr std::size_t kMaxCount = std::numeric_limits<std::uint16_t>::max();
// Maximum number of bytes of an event in a V6 file.
constexpr std::size_t kMaxPayload = nettrace::kMaxBlockSize;
// The text that `nettrace export` writes in place of an empty text.
constexpr std::string_view kEmpty = "\xE2\x80\x8B";  // U+200B

std::uint64_t SignExtend(std::uint64_t value, unsigned size) {
  const unsigned unused = 64 - size;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
}

bool IsIn(std::uint64_t value, const Node::TagRange& range, bool is_signed) {
  if (!is_signed) return value >= range.low && value <= range.high;
  const auto number = static_cast<std::int64_t>(value);
  return number >= static_cast<std::int64_t>(range.low) &&
         number <= static_cast<std::int64_t>(range.high);
}

unsigned BytesOf(unsigned bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }

TypeCode CodeOf(const Node& number) {
  switch (BytesOf(number.size)) {
    case 1:
      return number.is_signed ? TypeCode::kSByte : TypeCode::kByte;
    case 2:
      return number.is_signed ? TypeCode::kInt16 : TypeCode::kUInt16;
    case 4:
      return number.is_signed ? TypeCode::kInt32 : TypeCode::kUInt32;
    default:
      return number.is_signed ? TypeCode::kInt64 : TypeCode::kUInt64;
  }
}

FieldType TextType() { return FieldType::Array(FieldType::Simple(TypeCode::kUtf8CodeUnit)); }

// Returns the type of an array's element. Wraps an array other than text in an Object, because
// TraceEvent misreads arrays of arrays.
FieldType InArray(FieldType type) {
  const bool is_array =
      type.code == TypeCode::kFixedLengthArray ||
      (type.code == TypeCode::kArray && type.element[0].code != TypeCode::kUtf8CodeUnit);
  return is_array ? FieldType::Object({{"value", std::move(type)}}) : type;
}

FieldType TypeOf(const Node& node, const std::vector<std::uint32_t>& choices, std::size_t* next) {
  switch (node.kind) {
    case Kind::kInteger:
      return FieldType::Simple(CodeOf(node));
    case Kind::kEnum:
      return FieldType::Simple(node.is_bool ? TypeCode::kBoolean8 : CodeOf(node));
    case Kind::kFloat:
      return FieldType::Simple(node.size == 32 ? TypeCode::kSingle : TypeCode::kDouble);
    case Kind::kString:
      return TextType();
    case Kind::kStruct:
      return FieldType::Object(FieldsOf(node, choices, next));
    case Kind::kVariant: {
      if (!node.in_array) {
        const std::uint32_t choice = *next < choices.size() ? choices[(*next)++] : 0;
        return TypeOf(node.children[choice], choices, next);
      }
      std::vector<nettrace::Field> options;
      for (const Node& option : node.children) {
        options.push_back({option.name, FieldType::Array(InArray(TypeOf(option, choices, next)))});
      }
      return FieldType::Object(std::move(options));
    }
    case Kind::kArray:
    case Kind::kSequence:
      break;
  }
  if (node.is_text) return TextType();
  FieldType element = InArray(TypeOf(node.children[0], choices, next));
  return node.is_fixed ? FieldType::FixedLengthArray(std::move(element),
                                                     static_cast<std::uint16_t>(node.count))
                       : FieldType::Array(std::move(element));
}

void PutNumber(std::uint64_t value, unsigned bytes, nettrace::internal::ByteWriter* out) {
  switch (bytes) {
    case 1:
      return out->Fixed(static_cast<std::uint8_t>(value));
    case 2:
      return out->Fixed(static_cast<std::uint16_t>(value));
    case 4:
      return out->Fixed(static_cast<std::uint32_t>(value));
    default:
      return out->Fixed(value);
  }
}

}  // namespace

std::vector<nettrace::Field> FieldsOf(const Node& node, const std::vector<std::uint32_t>& choices,
                                      std::size_t* next) {
  std::vector<nettrace::Field> fields;
  for (const Node& child : node.children) {
    FieldType type = TypeOf(child, choices, next);
    if (!child.is_hidden) fields.push_back({child.name, std::move(type)});
  }
  return fields;
}

void Captured::Clear() {
  present = 0;
  labels.clear();
  frames.clear();
  uuid.clear();
  timestamp = nullptr;
}

void Decoder::BeginEvent() {
  captured_.Clear();
  choices_.clear();
  unfit_.clear();
  empty_left_ = nettrace::kMaxPayloadValues;
}

absl::Status Decoder::Decode(const Node& node, ByteWriter* out) {
  status_ = absl::OkStatus();
  Value(node, out);
  return reader_->ok() ? status_ : reader_->status();
}

void Decoder::Fail(std::string_view why) {
  if (status_.ok()) {
    status_ = absl::DataLossError(absl::string_view(why.data(), why.size()));
  }
}

std::uint64_t& Decoder::ValueAt(std::uint32_t slot) {
  return (slot & kStreamSlot) != 0 ? (*stream_values_)[slot & ~kStreamSlot] : event_values_[slot];
}

void Decoder::Value(const Node& node, ByteWriter* out) {
  reader_->Align(node.align);
  if (!reader_->ok() || !status_.ok()) return;
  if (out != nullptr && out->size() > kMaxPayload) {
    unfit_ = absl::StrCat("the event has more than ", kMaxPayload,
                          " bytes, which a V6 file does not allow");
    out->Clear();
  }
  switch (node.kind) {
    case Kind::kInteger:
    case Kind::kEnum:
      return Number(node, out);
    case Kind::kFloat:
      return Float(node, out);
    case Kind::kString:
      reader_->ReadText(kMaxCount, &text_);
      return PutText(node, out);
    case Kind::kStruct:
      for (const Node& child : node.children) Value(child, child.is_hidden ? nullptr : out);
      return;
    case Kind::kVariant:
      return Variant(node, out);
    case Kind::kArray:
    case Kind::kSequence:
      return Elements(node, out);
  }
}

void Decoder::Number(const Node& node, ByteWriter* out) {
  std::uint64_t value = reader_->Read(node.size, node.is_big);
  if (node.is_signed) value = SignExtend(value, node.size);
  if (node.slot != kNoSlot) ValueAt(node.slot) = value;
  switch (node.role) {
    case Role::kNone:
      break;
    case Role::kUuidByte:
      captured_.uuid.push_back(static_cast<std::byte>(value));
      break;
    case Role::kFrame:
      captured_.frames.push_back(value);
      break;
    case Role::kTimestamp:
      captured_.timestamp = &node;
      [[fallthrough]];
    default:
      captured_.SetNumber(node.role, value);
  }
  if (out == nullptr) return;
  if (node.is_bool) value = value != 0 ? 1 : 0;
  PutNumber(value, BytesOf(node.size), out);
}

void Decoder::Float(const Node& node, ByteWriter* out) {
  const std::uint64_t value = reader_->Read(node.size, node.is_big);
  if (out != nullptr) PutNumber(value, node.size / 8, out);
}

void Decoder::PutText(const Node& node, ByteWriter* out) {
  if (is_ours_ && text_ == kEmpty) text_.clear();
  if (node.role == Role::kLabelName) {
    captured_.labels.emplace_back(text_, "");
  } else if (node.role == Role::kLabelValue) {
    if (!captured_.labels.empty()) captured_.labels.back().second = text_;
  } else if (node.role != Role::kNone) {
    captured_.SetText(node.role, text_);
  }
  if (out == nullptr) return;
  out->Fixed(static_cast<std::uint16_t>(text_.size()));
  out->Bytes(std::as_bytes(std::span(text_)));
}

void Decoder::Variant(const Node& node, ByteWriter* out) {
  const std::uint64_t tag = ValueAt(node.source);
  const auto range = std::find_if(node.tags.begin(), node.tags.end(), [&](const auto& one) {
    return IsIn(tag, one, node.tag_is_signed);
  });
  if (range == node.tags.end()) return Fail("the tag of a variant selects none of its options");
  if (!node.in_array) {
    choices_.push_back(range->option);
    return Value(node.children[range->option], out);
  }
  for (std::uint32_t i = 0; i < node.children.size(); ++i) {
    if (out != nullptr) out->Fixed(static_cast<std::uint16_t>(i == range->option ? 1 : 0));
    if (i == range->option) Value(node.children[i], out);
  }
}

void Decoder::TextOfArray(const Node& node, std::uint64_t count, ByteWriter* out) {
  text_.clear();
  bool ended = false;
  const Node& element = node.children[0];
  for (std::uint64_t i = 0; i < count && reader_->ok(); ++i) {
    reader_->Align(element.align);
    const auto unit = static_cast<char>(reader_->Read(8, element.is_big));
    // The bytes after the first NUL are padding.
    ended = ended || unit == '\0';
    if (!ended && text_.size() < kMaxCount) text_ += unit;
  }
  PutText(node, out);
}

void Decoder::Elements(const Node& node, ByteWriter* out) {
  const std::uint64_t count = node.kind == Kind::kArray ? node.count : ValueAt(node.source);
  const Node& element = node.children[0];
  if (element.min_bits > 0 && count > reader_->left() / element.min_bits) {
    return Fail("an array extends past the end of its packet");
  }
  if (node.is_text) return TextOfArray(node, count, out);
  if (element.min_bits == 0) {
    if (count > empty_left_) {
      return Fail(absl::StrCat("the arrays of an event have more than ",
                               nettrace::kMaxPayloadValues, " elements of size 0"));
    }
    empty_left_ -= count;
  }
  if (count > kMaxCount && out != nullptr) {
    unfit_ = absl::StrCat("an array has ", count, " elements; a V6 file allows up to ", kMaxCount);
    out = nullptr;
  }
  if (out != nullptr && !node.is_fixed) out->Fixed(static_cast<std::uint16_t>(count));
  for (std::uint64_t i = 0; i < count && reader_->ok() && status_.ok(); ++i) Value(element, out);
}

}  // namespace tools::importing::ctf
