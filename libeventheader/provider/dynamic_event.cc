#include "eventheader/dynamic_event.h"

#include <cstdint>
#include <cstring>

#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/record.h"
#include "libeventheader/provider/record.h"

namespace eh {
namespace {

bool IsValueEncoding(Encoding encoding) noexcept {
  return encoding != Encoding::kStruct && internal::IsEncoding(encoding);
}

// Returns whether one of the eight bytes is NUL or ';', which a name must not contain.
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

// Returns the result of IsValidName without a call, because each added field is checked and most
// names are short.
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

// Returns whether `data` matches `metadata` exactly, to the last byte.
bool IsPayloadOf(std::span<const std::byte> metadata, std::span<const std::byte> data) noexcept {
  EventView event{};
  event.little_endian = internal::kIsLittleEndian;
  event.metadata = metadata;
  event.data = data;
  Decoder decoder(event);
  for (Item item; decoder.Next(&item);) {
  }
  return decoder.error() == ParseError::kNone && decoder.rest().empty();
}

// Returns whether `data` is the payload of one field that is not a struct.
bool IsPayloadOf(Encoding encoding, Arity arity, std::uint16_t count,
                 std::span<const std::byte> data) noexcept {
  if (const std::size_t size = internal::FixedSize(encoding);
      size != 0 && arity == Arity::kScalar) {
    return data.size() == size;
  } else if (size != 0) {
    const bool counted = arity == Arity::kVariableArray;
    if (counted && data.size() < sizeof(count)) return false;
    if (counted) std::memcpy(&count, data.data(), sizeof(count));
    return data.size() == (counted ? sizeof(count) : 0) + count * size;
  }
  char metadata[2 + internal::kMaxTypeSize] = {};  // the event and its only field have empty names
  const char* const end = internal::PutType(metadata + 2, encoding, arity, count, 0, 0);
  return IsPayloadOf(std::as_bytes(std::span<const char>(metadata, end)), data);
}

}  // namespace

void DynamicEvent::Reset(std::string_view name, std::string_view attributes) noexcept {
  header_ = {};
  error_ = WriteResult::kWritten;
  metadata_size_ = 0;
  data_size_ = 0;
  fields_ = 0;
  has_structs_ = false;
  has_loose_data_ = false;
  open_structs_ = 0;
  if (!IsName(name) || !internal::AreValidAttributes(attributes))
    return Fail(WriteResult::kInvalid);
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
  // Refuses the obsolete format, which only readers accept. For a struct, `format` is the number of
  // its members.
  const bool is_obsolete = format == static_cast<std::uint8_t>(Format::kIpAddressObsolete) &&
                           encoding != Encoding::kStruct;
  if (!IsName(name) || (format & ~kFormatMask) != 0 || is_obsolete ||
      arity > Arity::kVariableArray || (arity == Arity::kConstantArray) != (count != 0) ||
      ++fields_ > kMaxFields) {
    return Fail(WriteResult::kInvalid);
  }
  if (name.size() + kMaxAfterName > sizeof(metadata_) - metadata_size_) {
    return Fail(WriteResult::kTooBig);
  }
  if (encoding == Encoding::kStruct) has_structs_ = true;
  char* out = PutText(metadata_ + metadata_size_, name);
  *out++ = '\0';
  out = internal::PutType(out, encoding, arity, count, format, tag);
  metadata_size_ = static_cast<std::size_t>(out - metadata_);
}

void DynamicEvent::AddRaw(std::string_view name, Encoding encoding, Arity arity,
                          std::uint16_t count, Format format, std::uint16_t tag,
                          std::span<const std::byte> data) noexcept {
  if (!IsValueEncoding(encoding)) return Fail(WriteResult::kInvalid);
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
  if (fields < 1 || fields > unsigned{kMaxStructFields} || where >= metadata_size_ ||
      (metadata_[where] & kFormatMask) != 0) {
    return Fail(WriteResult::kInvalid);
  }
  metadata_[where] = static_cast<char>(static_cast<unsigned>(metadata_[where]) | fields);
  --open_structs_;
}

// Returns whether every struct has as many members as it announces, and no struct is nested too
// deep. Payload that was added separately from its field must also match the definitions.
bool DynamicEvent::IsWellFormed() const noexcept {
  const auto metadata = std::as_bytes(std::span(metadata_, metadata_size_));
  if (has_structs_) {
    MetadataReader reader(metadata, internal::kIsLittleEndian);
    for (FieldDefinition field; reader.Next(&field);) {
    }
    if (reader.error() != ParseError::kNone || !reader.structs_are_whole()) return false;
  }
  return !has_loose_data_ || IsPayloadOf(metadata, {data_, data_size_});
}

// Returns the first error of the functions that have built the event. If there was none, returns
// kInvalid for an event that is not well formed, else kWritten.
WriteResult DynamicEvent::FormError() const noexcept {
  if (error_ != WriteResult::kWritten) return error_;
  return open_structs_ != 0 || !IsWellFormed() ? WriteResult::kInvalid : WriteResult::kWritten;
}

WriteResult DynamicEvent::Check() const noexcept {
  const WriteResult error = FormError();
  const std::size_t size = internal::SizeBeforeData(metadata_size_, nullptr) + data_size_;
  return error == WriteResult::kWritten && size > kMaxEventSize ? WriteResult::kTooBig : error;
}

WriteResult DynamicEvent::Write(const EventSet& set, const Activity* activity) const noexcept {
  if (!set.enabled()) return WriteResult::kDisabled;
  const WriteResult error = FormError();
  if (error != WriteResult::kWritten) return set.Refuse(error);
  return internal::WriteRecord(set, header_, activity,
                               std::as_bytes(std::span(metadata_, metadata_size_)),
                               {data_, data_size_});
}

}  // namespace eh
