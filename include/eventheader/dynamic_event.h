// Events that are known only at run time: a builder for names, fields and values.
//
//     eh::DynamicEvent event;
//     event.Reset("RequestDone");
//     event.AddField("path", std::string_view("/index.html"));
//     const std::size_t where = event.StartStruct("times");
//     event.AddField("seconds", 0.5);
//     event.SetStructFields(where, 1);
//     event.Write(event_set);
#ifndef EVENTHEADER_DYNAMIC_EVENT_H_
#define EVENTHEADER_DYNAMIC_EVENT_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "eventheader/activity.h"
#include "eventheader/field.h"
#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh {

// Reusable, with all its memory (16 KiB) in itself: nothing is allocated. Not thread-safe. What
// goes wrong while building is remembered, and Write then refuses the event: kInvalid for a name,
// attribute, format or count that is not valid, for payload that is not what its definition says,
// and for what decoders refuse (decoder.h: over kMaxFields fields or kMaxWork, structs nested too
// deep or without all their members), kTooBig for what does not fit.
class DynamicEvent {
 public:
  DynamicEvent() noexcept { Reset("Unnamed"); }

  // Begins a new event. `attributes` is "" or `name=value` pairs, each after a ';', with a ';' in a
  // value doubled: ";unit=ms".
  void Reset(std::string_view name, std::string_view attributes = {}) noexcept;
  void SetId(std::uint16_t id, std::uint8_t version) noexcept;
  void SetTag(std::uint16_t tag) noexcept { header_.tag = tag; }
  void SetOpcode(Opcode opcode) noexcept { header_.opcode = static_cast<std::uint8_t>(opcode); }

  // Adds a field of any type that a Field can have (field.h). kDefault leaves the type's own
  // format.
  template <typename T>
  void AddField(std::string_view name, const T& value, Format format = Format::kDefault,
                std::uint16_t tag = 0) noexcept {
    using Code = internal::Coder<T>;
    if constexpr (Code::kEncoding == Encoding::kStruct) {
      AddDefinition(name, Code::kEncoding, Code::kArity, Code::kCount, Code::Members::kMembers,
                    tag);
      AddMembers<typename Code::Members>();
    } else {
      const Format shown = format == Format::kDefault ? Code::kFormat : format;
      AddDefinition(name, Code::kEncoding, Code::kArity, Code::kCount,
                    static_cast<std::uint8_t>(shown), tag);
    }
    if (std::byte* const out = Room(Code::Size(value))) Code::Put(out, value);
  }

  // Adds a field whose payload (counts and lengths included) is `data`, as it is on the wire; empty
  // if AddData adds it. `count` is that of a constant array, 1..65535, else 0.
  void AddRaw(std::string_view name, Encoding encoding, Arity arity, std::uint16_t count,
              Format format, std::uint16_t tag, std::span<const std::byte> data) noexcept;

  // Begins a struct. Its members are the fields added next, as many as SetStructFields says, with
  // what StartStruct returned, before the event is written. An array of structs has all elements'
  // members one after the other: the definitions once, by AddRaw with no data, then the payload by
  // AddData. An event with payload by AddData is decoded by Write, to see whether it is whole.
  std::size_t StartStruct(std::string_view name, Arity arity = Arity::kScalar,
                          std::uint16_t count = 0, std::uint16_t tag = 0) noexcept;
  void SetStructFields(std::size_t where, unsigned fields) noexcept;
  void AddData(std::span<const std::byte> data) noexcept;

  // Writes the event if `set` is enabled. It stays as it is, and can be written again.
  WriteResult Write(const EventSet& set, const Activity* activity = nullptr) const noexcept;

 private:
  void AddDefinition(std::string_view name, Encoding encoding, Arity arity, std::uint16_t count,
                     std::uint8_t format, std::uint16_t tag) noexcept;
  template <typename Members>
  void AddMembers() noexcept {
    if (char* const out = MetadataRoom(Members::DefinitionSize())) Members::PutDefinition(out);
  }
  void PutData(std::span<const std::byte> data) noexcept;
  bool IsWellFormed() const noexcept;
  char* MetadataRoom(std::size_t size) noexcept;
  std::byte* Room(std::size_t size) noexcept;
  void Fail(WriteResult why) noexcept {
    if (error_ == WriteResult::kWritten) error_ = why;
  }

  Header header_;
  WriteResult error_;
  std::size_t metadata_size_;
  std::size_t data_size_;
  int fields_;
  bool has_structs_;
  bool has_loose_data_;       // some payload does not come with its field
  std::size_t open_structs_;  // structs whose number of fields is still to be set
  // Maximum size of a definition after its name; with as much to spare, whether it fits is one
  // comparison.
  static constexpr std::size_t kMaxAfterName = 1 + internal::kMaxTypeSize;
  char metadata_[kMaxEventSize + kMaxAfterName];
  std::byte data_[kMaxEventSize];
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_DYNAMIC_EVENT_H_
