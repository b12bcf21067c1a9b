// Events that are known only at run time: a builder for their names, fields and values.
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

// Builds events in 16 KiB of memory that are part of the object. Can be reused for any number of
// events, and never allocates memory. Not thread-safe. The builder stores the first error, and
// Write() then refuses the event and returns the error. The error is kInvalid for an invalid name,
// attribute, encoding, arity, format or count, and for a payload that does not match its
// definition. It is also kInvalid if there are more than kMaxFields fields, or if structs are
// nested too deep or lack members. It is kTooBig if the event does not fit.
class DynamicEvent {
 public:
  DynamicEvent() noexcept { Reset("Unnamed"); }

  // Begins a new event. `attributes` is "" or a sequence of `name=value` pairs, each after a ';'.
  // Each ';' in a value must be doubled. Example: ";unit=ms".
  void Reset(std::string_view name, std::string_view attributes = {}) noexcept;
  // Sets the stable number of the event (0: no number), and the version of its fields: see Traits
  // in event.h.
  void SetId(std::uint16_t id, std::uint8_t version) noexcept;
  void SetTag(std::uint16_t tag) noexcept { header_.tag = tag; }
  void SetOpcode(Opcode opcode) noexcept { header_.opcode = static_cast<std::uint8_t>(opcode); }

  // Adds a field of any type that a Field can have (field.h). Format::kDefault selects the format
  // of the type. `format` has no effect on a struct. `tag` 0: no tag.
  template <typename T>
  void AddField(std::string_view name, const T& value, Format format = Format::kDefault,
                std::uint16_t tag = 0) noexcept {
    using Code = internal::Coder<T>;
    static_assert(Code::kIsSupported, EVENTHEADER_INTERNAL_TYPE_FAULT);
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

  // Adds a field. `data` is its payload as on the wire, including counts and lengths, or empty if
  // AddData adds it later. `count` is the number of elements of a constant array, 1..65535, else 0.
  void AddRaw(std::string_view name, Encoding encoding, Arity arity, std::uint16_t count,
              Format format, std::uint16_t tag, std::span<const std::byte> data) noexcept;

  // Begins a struct and returns a position for SetStructFields. The next fields are its members;
  // call SetStructFields with their number, 1 to 127, before writing the event. For an array of
  // structs, add each member's definition once, by AddRaw without data. Then add the payload of all
  // elements, one after the other, by AddData. For such an event, Write() decodes the payload, and
  // returns kInvalid if it does not match the definitions or exceeds kMaxWork (decoder.h).
  std::size_t StartStruct(std::string_view name, Arity arity = Arity::kScalar,
                          std::uint16_t count = 0, std::uint16_t tag = 0) noexcept;
  // Sets the number of members, 1 to 127, of the struct for which StartStruct returned `where`.
  void SetStructFields(std::size_t where, unsigned fields) noexcept;
  // Appends bytes to the payload of the event: values as on the wire, with counts and lengths.
  void AddData(std::span<const std::byte> data) noexcept;

  // Returns the error with which Write() would refuse the event, kInvalid or kTooBig; kWritten if
  // the event is valid. Write() can still return kTooBig if the event belongs to an activity, whose
  // id needs space.
  WriteResult Check() const noexcept;
  // Writes the event if `set` is enabled, else returns kDisabled. `activity` may be null: the event
  // then belongs to no activity. The builder keeps the event, so that it can be written again.
  WriteResult Write(const EventSet& set, const Activity* activity = nullptr) const noexcept;

 private:
  void AddDefinition(std::string_view name, Encoding encoding, Arity arity, std::uint16_t count,
                     std::uint8_t format, std::uint16_t tag) noexcept;
  template <typename Members>
  void AddMembers() noexcept {
    if (char* const out = MetadataRoom(Members::DefinitionSize())) Members::PutDefinition(out);
  }
  void PutData(std::span<const std::byte> data) noexcept;
  WriteResult FormError() const noexcept;
  bool IsWellFormed() const noexcept;
  char* MetadataRoom(std::size_t size) noexcept;
  std::byte* Room(std::size_t size) noexcept;
  void Fail(WriteResult why) noexcept {
    if (error_ == WriteResult::kWritten) error_ = why;
  }

  wire::Header header_;
  WriteResult error_;
  std::size_t metadata_size_;
  std::size_t data_size_;
  int fields_;
  bool has_structs_;
  // True if Write() must decode the payload to check that it matches the definitions: after
  // AddData, AddRaw without data, or StartStruct of an array.
  bool has_loose_data_;
  std::size_t open_structs_;  // structs whose number of fields is not set yet
  // Maximum bytes of a definition after its name. metadata_ has this much spare room, so that
  // AddDefinition needs only one comparison to decide whether a definition fits.
  static constexpr std::size_t kMaxAfterName = 1 + internal::kMaxTypeSize;
  char metadata_[kMaxEventSize + kMaxAfterName];
  std::byte data_[kMaxEventSize];
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_DYNAMIC_EVENT_H_
