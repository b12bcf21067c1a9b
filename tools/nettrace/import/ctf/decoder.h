// Reads the values of CTF packets and events: what is a field goes to a V6 payload, and what has a
// role is kept.
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

// The values that have roles.
struct Captured {
  bool Has(Role role) const { return (present >> static_cast<unsigned>(role) & 1) != 0; }
  // Sign-extended; 0 if it is not there.
  std::uint64_t Number(Role role) const { return Has(role) ? numbers[Place(role)] : 0; }
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

  std::uint32_t present = 0;  // bits by role
  std::array<std::uint64_t, static_cast<std::size_t>(Role::kCount)> numbers;
  std::array<std::string, static_cast<std::size_t>(Role::kCount)> texts;
  nettrace::KeyValues labels;
  std::vector<std::uint64_t> frames;
  std::vector<std::byte> uuid;
  const Node* timestamp = nullptr;  // the integer that kTimestamp was
};

class Decoder {
 public:
  // Both must live as long. `is_ours`: the trace is one of nettrace export.
  Decoder(bool is_ours, std::size_t event_slots) : is_ours_(is_ours), event_values_(event_slots) {}

  // Values are read from `reader`; those of packets that others refer to are in `stream_values`.
  // Both must live until the next call.
  void Use(BitReader* reader, std::vector<std::uint64_t>* stream_values) {
    reader_ = reader;
    stream_values_ = stream_values;
  }
  // Forgets what was read of the event before.
  void BeginEvent();
  // Reads a value of `node`; appends what is a field to `out`, if it is not null. Errors are those
  // of the reader, and DataLoss for values that cannot be.
  absl::Status Decode(const Node& node, nettrace::internal::ByteWriter* out);

  Captured& captured() { return captured_; }
  const Captured& captured() const { return captured_; }
  // The options of variants outside of arrays, in the order in which they came.
  const std::vector<std::uint32_t>& choices() const { return choices_; }
  // Why no V6 event can have the fields; empty if one can.
  const std::string& unfit() const { return unfit_; }

 private:
  using ByteWriter = nettrace::internal::ByteWriter;

  void Fail(std::string_view why);
  void Value(const Node& node, ByteWriter* out);
  void Number(const Node& node, ByteWriter* out);
  void Float(const Node& node, ByteWriter* out);
  void Text(const Node& node, ByteWriter* out);
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
  std::size_t empty_left_ = 0;  // elements without bits that an event may have
};

// The fields of a struct in V6, for values in which variants have these choices; `*next` is the
// first of them that was not used yet.
std::vector<nettrace::Field> FieldsOf(const Node& node, const std::vector<std::uint32_t>& choices,
                                      std::size_t* next);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_DECODER_H_
