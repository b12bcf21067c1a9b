// Decodes the values of CTF packets and events. Fields are written to a V6 payload. Values with a
// role (layout.h), such as the id of an event's thread, are stored in Captured.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_DECODER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_DECODER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/schema.h"
#include "tools/nettrace/import/ctf/bit_reader.h"
#include "tools/nettrace/import/ctf/layout.h"

namespace tools::importing::ctf {

// Holds the decoded values that have roles.
struct Captured {
  bool Has(Role role) const { return (present >> static_cast<unsigned>(role) & 1) != 0; }
  // Returns the number, sign-extended if its type is signed; 0 if it is missing.
  std::uint64_t Number(Role role) const { return Has(role) ? numbers[Place(role)] : 0; }
  // Must be called only if Has(role).
  const std::string& Text(Role role) const { return texts[Place(role)]; }

  void SetNumber(Role role, std::uint64_t number) {
    present |= std::uint32_t{1} << static_cast<unsigned>(role);
    numbers[Place(role)] = number;
  }
  void SetText(Role role, const std::string& text) {
    present |= std::uint32_t{1} << static_cast<unsigned>(role);
    texts[Place(role)] = text;
  }
  void Clear();

  static std::size_t Place(Role role) { return static_cast<std::size_t>(role); }

  std::uint32_t present = 0;  // one bit for each role
  std::array<std::uint64_t, static_cast<std::size_t>(Role::kCount)> numbers;
  std::array<std::string, static_cast<std::size_t>(Role::kCount)> texts;
  nettrace::KeyValues labels;
  std::vector<std::uint64_t> frames;
  std::vector<std::byte> uuid;
  const Node* timestamp = nullptr;  // node of the value with the role kTimestamp
};

class Decoder {
 public:
  // `is_ours` states whether `nettrace export` wrote the trace. `event_slots` is the number of
  // slots (layout.h) of events.
  Decoder(bool is_ours, std::size_t event_slots) : is_ours_(is_ours), event_values_(event_slots) {}

  // Sets the reader of a stream, and the array for the values of its slots with kStreamSlot
  // (layout.h). Both must live until the next call of Use.
  void Use(BitReader* reader, std::vector<std::uint64_t>* stream_values) {
    reader_ = reader;
    stream_values_ = stream_values;
  }
  // Clears the data of the previous event.
  void BeginEvent();
  // Reads a value of the type `node`. If `out` is not null, appends the fields in the value to
  // `out`. The caller must not use the contents of `out` if unfit() is not "". Returns the errors
  // of the reader, and DataLoss for impossible values.
  absl::Status Decode(const Node& node, nettrace::internal::ByteWriter* out);

  Captured& captured() { return captured_; }
  const Captured& captured() const { return captured_; }
  // Returns the index of the selected option for each variant of the event, in order. Variants in
  // arrays are left out.
  const std::vector<std::uint32_t>& choices() const { return choices_; }
  // Returns the reason why a V6 event cannot have the fields of this event; "" if it can.
  const std::string& unfit() const { return unfit_; }

 private:
  using ByteWriter = nettrace::internal::ByteWriter;

  void Fail(std::string_view why);
  void Value(const Node& node, ByteWriter* out);
  void Number(const Node& node, ByteWriter* out);
  void Float(const Node& node, ByteWriter* out);
  void Variant(const Node& node, ByteWriter* out);
  void Elements(const Node& node, ByteWriter* out);
  void TextOfArray(const Node& node, std::uint64_t count, ByteWriter* out);
  void PutText(const Node& node, ByteWriter* out);
  std::uint64_t& ValueAt(std::uint32_t slot);

  const bool is_ours_;
  BitReader* reader_ = nullptr;
  std::vector<std::uint64_t>* stream_values_ = nullptr;
  std::vector<std::uint64_t> event_values_;
  Captured captured_;
  std::vector<std::uint32_t> choices_;
  std::string unfit_;
  std::string text_;
  absl::Status status_;
  std::size_t empty_left_ = 0;  // number of array elements of size 0 that the event may still have
};

// Returns the NetTrace fields of the struct `node` for an event with these choices of variants: see
// Decoder::choices(). Uses the choices from index `*next` on, and advances `*next` past them.
std::vector<nettrace::Field> FieldsOf(const Node& node, const std::vector<std::uint32_t>& choices,
                                      std::size_t* next);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_DECODER_H_
