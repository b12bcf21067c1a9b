#include "eventheader/dynamic_event.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "eventheader/decoder.h"
#include "eventheader/event.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/parse.h"

namespace eh {
namespace {

constexpr unsigned kMaxStructFields = 127;

constexpr std::byte EncodingByte(Encoding encoding, Arity arity) noexcept {
  static_assert(static_cast<unsigned>(Arity::kConstantArray) << 5 == kEncodingConstantArray &&
                static_cast<unsigned>(Arity::kVariableArray) << 5 == kEncodingVariableArray);
  return static_cast<std::byte>(static_cast<unsigned>(encoding) | static_cast<unsigned>(arity)
                                                                      << 5);
}

bool IsEncoding(Encoding encoding) noexcept {
  return encoding > Encoding::kStruct && encoding <= Encoding::kBinaryLength16Char8;
}

// Whether one of eight bytes is NUL or ';', which no name has.
bool HasNameEnd(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  const auto has_zero = [](std::uint64_t word) noexcept {
    return (word - kEach) & ~word & (kEach << 7);
  };
  return (has_zero(bytes) | has_zero(bytes ^ kEach * ';')) != 0;
}

template <typename T>
T Load(const char* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// IsValidName, for names that are short and looked at for each field: without a call.
bool IsName(std::string_view name) noexcept {
  const char* at = name.data();
  const char* const end = at + name.size();
  if (name.size() < 4) {
    for (; at < end; ++at) {
      if (*at == '\0' || *at == ';') return false;
    }
    return !name.empty();
  }
  if (name.size() < 8) {
    return !HasNameEnd(Load<std::uint32_t>(at) | std::uint64_t{Load<std::uint32_t>(end - 4)} << 32);
  }
  for (; end - at > 8; at += 8) {
    if (HasNameEnd(Load<std::uint64_t>(at))) return false;
  }
  return !HasNameEnd(Load<std::uint64_t>(end - 8));
}

char* PutText(char* out, std::string_view text) noexcept {
  internal::PutBytes(reinterpret_cast<std::byte*>(out), text.data(), text.size());
  return out + text.size();
}

// Whether `data` is what `metadata` says, to its last byte.
bool IsPayloadOf(std::span<const std::byte> metadata, std::span<const std::byte> data) noexcept {
  EventView event{};
  event.little_endian = std::endian::native == std::endian::little;
  event.metadata = metadata;
  event.data = data;
  Decoder decoder(event);
  for (Item item; decoder.Next(&item);) {
  }
  return decoder.error() == ParseError::kNone && decoder.rest().empty();
}

// The same for one field that is no struct.
bool IsPayloadOf(Encoding encoding, Arity arity, std::uint16_t count,
                 std::span<const std::byte> data) noexcept {
  if (const std::size_t size = FixedSize(encoding); size != 0 && arity == Arity::kScalar) {
    return data.size() == size;
  } else if (size != 0) {
    const bool counted = arity == Arity::kVariableArray;
    if (counted && data.size() < sizeof(count)) return false;
    if (counted) std::memcpy(&count, data.data(), sizeof(count));
    return data.size() == (counted ? sizeof(count) : 0) + count * size;
  }
  // Event and field have no names here.
  std::byte metadata[5] = {{}, {}, EncodingByte(encoding, arity)};
  std::memcpy(metadata + 3, &count, sizeof(count));
  return IsPayloadOf({metadata, arity == Arity::kConstantArray ? 5u : 3u}, data);
}

}  // namespace

void DynamicEvent::Reset(std::string_view name, std::string_view attributes) noexcept {
  header_ = {};
  header_.flags = internal::kNativeFlags | kFlagExtension;
  error_ = WriteResult::kWritten;
  metadata_size_ = 0;
  data_size_ = 0;
  fields_ = 0;
  has_structs_ = false;
  has_loose_data_ = false;
  open_structs_ = 0;
  if (!IsName(name) || !AreValidAttributes(attributes)) return Fail(WriteResult::kInvalid);
  if (char* out = MetadataRoom(name.size() + attributes.size() + 1)) {
    out = PutText(out, name);
    out = PutText(out, attributes);
    *out = '\0';
  }
}

void DynamicEvent::SetId(std::uint16_t id, std::uint8_t version) noexcept {
  header_.id = id;
  header_.version = version;
}

char* DynamicEvent::MetadataRoom(std::size_t size) noexcept {
  if (size > sizeof(metadata_) - metadata_size_) {
    Fail(WriteResult::kTooBig);
    return nullptr;
  }
  char* const room = metadata_ + metadata_size_;
  metadata_size_ += size;
  return room;
}

std::byte* DynamicEvent::Room(std::size_t size) noexcept {
  if (size > sizeof(data_) - data_size_) {
    Fail(WriteResult::kTooBig);
    return nullptr;
  }
  std::byte* const room = data_ + data_size_;
  data_size_ += size;
  return room;
}

void DynamicEvent::AddDefinition(std::string_view name, Encoding encoding, Arity arity,
                                 std::uint16_t count, std::uint8_t format,
                                 std::uint16_t tag) noexcept {
  // The obsolete format is for readers; a struct's format is the number of its members.
  const bool is_obsolete = format == static_cast<std::uint8_t>(Format::kIpAddressObsolete) &&
                           encoding != Encoding::kStruct;
  if (!IsName(name) || (format & ~kFormatMask) != 0 || is_obsolete ||
      arity > Arity::kVariableArray || (arity == Arity::kConstantArray) != (count != 0) ||
      ++fields_ > kMaxFields) {
    return Fail(WriteResult::kInvalid);
  }
  if (name.size() + kMostBehindName > sizeof(metadata_) - metadata_size_) {
    return Fail(WriteResult::kTooBig);
  }
  if (encoding == Encoding::kStruct) has_structs_ = true;
  const bool has_format = format != 0 || tag != 0 || encoding == Encoding::kStruct;
  char* out = PutText(metadata_ + metadata_size_, name);
  *out++ = '\0';
  *out++ = static_cast<char>(static_cast<unsigned>(EncodingByte(encoding, arity)) |
                             (has_format ? kEncodingHasFormat : 0));
  if (has_format) *out++ = static_cast<char>(format | (tag != 0 ? kFormatHasTag : 0));
  if (tag != 0) {
    std::memcpy(out, &tag, sizeof(tag));
    out += sizeof(tag);
  }
  if (count != 0) {
    std::memcpy(out, &count, sizeof(count));
    out += sizeof(count);
  }
  metadata_size_ = static_cast<std::size_t>(out - metadata_);
}

void DynamicEvent::AddRaw(std::string_view name, Encoding encoding, Arity arity,
                          std::uint16_t count, Format format, std::uint16_t tag,
                          std::span<const std::byte> data) noexcept {
  if (!IsEncoding(encoding)) return Fail(WriteResult::kInvalid);
  AddDefinition(name, encoding, arity, count, static_cast<std::uint8_t>(format), tag);
  if (error_ != WriteResult::kWritten) return;
  if (data.empty()) {
    has_loose_data_ = true;
  } else if (IsPayloadOf(encoding, arity, count, data)) {
    PutData(data);
  } else {
    Fail(WriteResult::kInvalid);
  }
}

void DynamicEvent::AddData(std::span<const std::byte> data) noexcept {
  has_loose_data_ = true;
  PutData(data);
}

void DynamicEvent::PutData(std::span<const std::byte> data) noexcept {
  if (std::byte* const out = Room(data.size())) internal::PutBytes(out, data.data(), data.size());
}

std::size_t DynamicEvent::StartStruct(std::string_view name, Arity arity, std::uint16_t count,
                                      std::uint16_t tag) noexcept {
  const std::size_t where = metadata_size_ + name.size() + 2;
  AddDefinition(name, Encoding::kStruct, arity, count, 0, tag);
  if (arity != Arity::kScalar) has_loose_data_ = true;
  if (error_ == WriteResult::kWritten) ++open_structs_;
  return where;
}

void DynamicEvent::SetStructFields(std::size_t where, unsigned fields) noexcept {
  if (error_ != WriteResult::kWritten) return;
  if (fields < 1 || fields > kMaxStructFields || where >= metadata_size_ ||
      (metadata_[where] & kFormatMask) != 0) {
    return Fail(WriteResult::kInvalid);
  }
  metadata_[where] = static_cast<char>(static_cast<unsigned>(metadata_[where]) | fields);
  --open_structs_;
}

// Every struct has as many members as it says, and none is nested too deep; payload that has not
// been looked at with its field is what the definitions say.
bool DynamicEvent::IsWellFormed() const noexcept {
  const auto metadata = std::as_bytes(std::span(metadata_, metadata_size_));
  if (has_loose_data_) return IsPayloadOf(metadata, {data_, data_size_});
  if (!has_structs_) return true;
  MetadataReader reader(metadata, (header_.flags & kFlagLittleEndian) != 0);
  for (FieldDefinition field; reader.Next(&field);) {
  }
  return reader.error() == ParseError::kNone;
}

WriteResult DynamicEvent::Write(const EventSet& set, const Activity* activity) const noexcept {
  if (!set.enabled()) return WriteResult::kDisabled;
  if (error_ != WriteResult::kWritten) return set.Refuse(error_);
  if (open_structs_ != 0 || !IsWellFormed()) return set.Refuse(WriteResult::kInvalid);
  const std::size_t size = sizeof(Header) + sizeof(ExtensionHeader) + metadata_size_ + data_size_ +
                           (activity != nullptr ? internal::ActivitySize(*activity) : 0);
  if (size > kMaxEventSize) return set.Refuse(WriteResult::kTooBig);
  std::byte record[kRecordPrefix + kMaxEventSize];
  std::byte* out = record + kRecordPrefix;
  Header header = header_;
  header.level = static_cast<std::uint8_t>(set.level());
  out = internal::PutRaw(out, header);
  if (activity != nullptr) out = internal::PutActivity(out, *activity, true);
  out = internal::PutRaw(
      out, ExtensionHeader{static_cast<std::uint16_t>(metadata_size_), kExtensionMetadata});
  out = internal::PutBytes(out, metadata_, metadata_size_);
  out = internal::PutBytes(out, data_, data_size_);
  return set.Write({record, out});
}

}  // namespace eh
