#include "nettrace/payload_encoder.h"

#include <bit>
#include <limits>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/types.h"
#include "libnettrace-writer/core/varint.h"

namespace nettrace {
namespace {

constexpr std::size_t kMaxCount = std::numeric_limits<std::uint16_t>::max();

bool Fits(std::uint64_t value, unsigned bits) { return bits == 64 || value >> bits == 0; }

// Returns the number of bits of an integer type; 64 for a VarInt or VarUInt, whose size varies.
unsigned BitsOf(const Type& type) {
  constexpr std::uint64_t kVariable = 8;
  return static_cast<unsigned>(8 * internal::FixedSize(type).value_or(kVariable));
}

// Returns the error text for a value of another kind than the field. `given` names the value.
std::string Mismatch(std::string_view given, const Type& type) {
  return absl::StrCat(absl::string_view(given.data(), given.size()),
                      " was given, but the field has type code ", static_cast<int>(type.code));
}

bool IsArrayOf(const Type& type, TypeCode element) {
  return internal::IsPlainArray(type) && type.element.front().code == element;
}

}  // namespace

PayloadEncoder::PayloadEncoder(const std::vector<Field>* fields) : fields_(fields) { Start(); }

void PayloadEncoder::Start() {
  status_ = absl::OkStatus();
  levels_.assign(1, {fields_, nullptr, 0, fields_->size()});
  payload_.clear();
  locations_.clear();
  located_.clear();
  finished_ = false;
}

void PayloadEncoder::Fail(std::string_view what) {
  if (!status_.ok()) return;
  std::string path;
  for (const Level& level : levels_) {
    const std::size_t last = level.next == 0 ? 0 : level.next - 1;
    if (level.fields == nullptr) {
      absl::StrAppend(&path, "[", last, "]");
    } else if (last < level.fields->size()) {
      absl::StrAppend(&path, path.empty() ? "" : ".", (*level.fields)[last].name);
    }
  }
  status_ = absl::InvalidArgumentError(
      absl::StrCat("payload, at '", path, "': ", absl::string_view(what.data(), what.size())));
}

// Advances to the next value and returns its type. Returns nullptr after an error, and if there are
// more values than fields or elements.
const Type* PayloadEncoder::Take() {
  if (finished_) Start();
  if (!status_.ok()) return nullptr;
  Level& level = levels_.back();
  if (level.next == level.count) {
    Fail(absl::StrCat("a value was given after the last of ", level.count,
                      level.fields == nullptr ? " elements" : " fields"));
    return nullptr;
  }
  ++level.next;
  return level.fields == nullptr ? level.element : &(*level.fields)[level.next - 1].type;
}

void PayloadEncoder::PutBytes(const void* bytes, std::size_t size) {
  const auto* begin = static_cast<const std::byte*>(bytes);
  payload_.insert(payload_.end(), begin, begin + size);
}

template <typename T>
void PayloadEncoder::Put(T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    payload_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

PayloadEncoder& PayloadEncoder::Int(std::int64_t value) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  const unsigned bits = BitsOf(*type);
  // A value fits in a signed integer of `bits` bits if its zig-zag encoding fits in `bits` bits.
  if (!internal::IsSigned(type->code)) {
    Fail(Mismatch("a signed integer", *type));
    return *this;
  }
  if (!Fits(internal::ZigZag(value), bits)) {
    Fail(absl::StrCat(value, " does not fit in a signed integer of ", bits, " bits"));
    return *this;
  }
  if (type->code == TypeCode::kVarInt) {
    std::byte encoded[internal::kVarUIntStore];
    PutBytes(encoded, static_cast<std::size_t>(
                          internal::PutVarUInt(encoded, internal::ZigZag(value)) - encoded));
    return *this;
  }
  for (unsigned shift = 0; shift < bits; shift += 8) {
    Put(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> shift));
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::UInt(std::uint64_t value) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  const unsigned bits = BitsOf(*type);
  if (!internal::IsUnsigned(type->code)) {
    Fail(Mismatch("an unsigned integer", *type));
    return *this;
  }
  if (!Fits(value, bits)) {
    Fail(absl::StrCat(value, " does not fit in an unsigned integer of ", bits, " bits"));
    return *this;
  }
  if (type->code == TypeCode::kVarUInt) {
    std::byte encoded[internal::kVarUIntStore];
    PutBytes(encoded, static_cast<std::size_t>(internal::PutVarUInt(encoded, value) - encoded));
    return *this;
  }
  for (unsigned shift = 0; shift < bits; shift += 8) Put(static_cast<std::uint8_t>(value >> shift));
  return *this;
}

PayloadEncoder& PayloadEncoder::Single(float value) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (type->code == TypeCode::kSingle) {
    Put(std::bit_cast<std::uint32_t>(value));
  } else {
    Fail(Mismatch("a Single", *type));
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::Double(double value) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (type->code == TypeCode::kDouble) {
    Put(std::bit_cast<std::uint64_t>(value));
  } else {
    Fail(Mismatch("a Double", *type));
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::Bool(bool value) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (type->code == TypeCode::kBoolean8) {
    Put(static_cast<std::uint8_t>(value));
  } else if (type->code == TypeCode::kBoolean32) {
    Put(static_cast<std::uint32_t>(value));
  } else {
    Fail(Mismatch("a Boolean", *type));
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::GuidValue(const Guid& value) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (type->code == TypeCode::kGuid) {
    PutBytes(value.data(), value.size());
  } else {
    Fail(Mismatch("a Guid", *type));
  }
  return *this;
}

// Writes the number of elements that precedes the elements of an array, unless the type of the
// array defines the number. Returns false if the array cannot have `count` elements.
bool PayloadEncoder::PutCount(const Type& type, std::size_t count) {
  if (type.code == TypeCode::kFixedLengthArray) {
    if (count == type.count) return true;
    Fail(absl::StrCat("the array has ", count, " elements, but its type has ", type.count));
    return false;
  }
  if (count > kMaxCount) {
    Fail(absl::StrCat("an array of ", count, " elements; the maximum is ", kMaxCount));
    return false;
  }
  Put(static_cast<std::uint16_t>(count));
  return true;
}

PayloadEncoder& PayloadEncoder::Utf8(std::string_view text) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (!IsArrayOf(*type, TypeCode::kUtf8CodeUnit)) {
    Fail(Mismatch("UTF-8 text", *type));
  } else if (PutCount(*type, text.size())) {
    PutBytes(text.data(), text.size());
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::Utf16(std::u16string_view text) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  const bool terminated = type->code == TypeCode::kNullTerminatedUtf16String;
  if (terminated && text.find(u'\0') != text.npos) {
    Fail("the text contains a NUL, which would end this null-terminated string");
  } else if (!terminated && !IsArrayOf(*type, TypeCode::kUtf16CodeUnit)) {
    Fail(Mismatch("UTF-16 text", *type));
  } else if (terminated || PutCount(*type, text.size())) {
    for (const char16_t unit : text) Put(static_cast<std::uint16_t>(unit));
    if (terminated) Put(std::uint16_t{0});
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::BeginArray(std::size_t count) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (!internal::IsPlainArray(*type)) {
    Fail(Mismatch("an array", *type));
  } else if (PutCount(*type, count)) {
    levels_.push_back({nullptr, &type->element.front(), 0, count});
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::BeginObject() {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  if (type->code != TypeCode::kObject) {
    Fail(Mismatch("an object", *type));
  } else {
    levels_.push_back({&type->fields, nullptr, 0, type->fields.size()});
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::End(bool of_array) {
  if (!status_.ok()) return *this;
  const Level& level = levels_.back();
  if (finished_ || levels_.size() == 1 || (level.fields == nullptr) != of_array) {
    Fail(of_array ? "EndArray without a matching BeginArray"
                  : "EndObject without a matching BeginObject");
  } else if (level.next != level.count) {
    Fail(absl::StrCat(of_array ? "EndArray" : "EndObject", " after ", level.next, " of ",
                      level.count, " values"));
  } else {
    levels_.pop_back();
  }
  return *this;
}

PayloadEncoder& PayloadEncoder::EndArray() { return End(true); }

PayloadEncoder& PayloadEncoder::EndObject() { return End(false); }

PayloadEncoder& PayloadEncoder::Located(std::span<const std::byte> elements) {
  const Type* const type = Take();
  if (type == nullptr) return *this;
  const bool relative = type->code == TypeCode::kRelLoc;
  if (!internal::IsLocation(*type)) {
    Fail(Mismatch("the data of a RelLoc or DataLoc", *type));
    return *this;
  }
  const std::uint64_t size = internal::FixedSize(type->element.front()).value_or(0);
  if (size == 0 ? !elements.empty() : elements.size() % size != 0) {
    Fail(size == 0 ? absl::StrCat(elements.size(),
                                  " bytes were given, but an element of the array has the size 0")
                   : absl::StrCat(
                         elements.size(),
                         " bytes were given, which is not a multiple of the element size, ", size));
    return *this;
  }
  locations_.push_back({payload_.size(), located_.size(), elements.size(), relative});
  located_.insert(located_.end(), elements.begin(), elements.end());
  Put(std::uint32_t{0});
  return *this;
}

absl::StatusOr<std::span<const std::byte>> PayloadEncoder::Finish() {
  if (finished_) Start();
  if (status_.ok() && (levels_.size() > 1 || levels_.back().next != levels_.back().count)) {
    const Level& level = levels_.back();
    Fail(level.next == level.count ? "Finish was called before EndArray or EndObject"
                                   : absl::StrCat("Finish was called after ", level.next, " of ",
                                                  level.count, " values"));
  }
  // The data of RelLoc and DataLoc fields come after all fields, in the order of these fields.
  const std::size_t data_begin = payload_.size();
  for (const Location& location : locations_) {
    const std::size_t position =
        data_begin + location.data_offset - (location.relative ? location.field_offset + 4 : 0);
    if (position > kMaxCount || location.size > kMaxCount) {
      Fail(
          "a location's data have more than 65535 bytes, or begin more than 65535 bytes after the "
          "payload's start (DataLoc) or the location (RelLoc)");
      break;
    }
    const std::uint64_t value = location.size << 16 | position;
    for (std::size_t i = 0; i < 4; ++i) {
      payload_[location.field_offset + i] = static_cast<std::byte>(value >> (8 * i));
    }
  }
  finished_ = true;
  if (!status_.ok()) return status_;
  payload_.insert(payload_.end(), located_.begin(), located_.end());
  return std::span<const std::byte>(payload_);
}

}  // namespace nettrace
