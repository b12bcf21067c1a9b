// Formats the payloads of kernel tracepoints whose metadata rows have notes
// (tools/trace/tracepoint_keys.h).
#ifndef TOOLS_TRACE_TRACEPOINT_PAYLOAD_H_
#define TOOLS_TRACE_TRACEPOINT_PAYLOAD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/base/json_text.h"
#include "tools/trace/field_value.h"
#include "tools/trace/tracepoint_keys.h"
#include "tools/trace/tracepoint_symbol.h"

namespace trace {

// Holds the fields and notes of one metadata row, and the values of the event that was loaded last.
class TracepointPayload {
 public:
  // Reads the fields and notes of a metadata row; tracepoint_keys.h describes the notes. Returns
  // null if they are missing or invalid, or if a field has a type that tracepoints do not have.
  static std::unique_ptr<TracepointPayload> Read(const nettrace::EventMetadata& metadata);

  // Reads the values of `event`, whose metadata row must be the row that was passed to Read(). If
  // the payload does not match its fields, reads the values before the mismatch, and returns an
  // error.
  absl::Status Load(const nettrace::Event& event);

  // Writes the payload as an object. With ValueStyle::kForPeople, a number is followed by its
  // symbol, and an array that has a symbol is replaced by its symbol. If several fields share a
  // name, their member is an array of their values.
  void Put(ValueStyle style, base::JsonWriter* json) const;
  // Writes the symbols as an object with a member for each field that has a symbol. Writes nothing
  // if no field has one.
  void PutSymbols(const char* key, base::JsonWriter* json) const;

 private:
  static constexpr std::size_t kMaxInputs = 3;
  // The symbol of a field, and the values of the fields in FieldNotes::inputs from which the symbol
  // was computed.
  struct KnownSymbol {
    std::array<std::uint64_t, kMaxInputs> numbers;
    std::optional<std::string> symbol;
  };
  // Maximum number of symbols in FieldNotes::known, and maximum bytes of each.
  static constexpr std::size_t kMaxKnown = 8;
  static constexpr std::size_t kMaxKnownSize = 64;

  struct FieldNotes {
    std::string name;
    std::string key;  // `name` as a string of JSON
    bool is_bool = false;
    std::size_t size = 0;  // bytes of the number, or of each number in an array
    TracepointNote note;
    // Indices of the fields whose numbers alone determine the symbol. nullopt if other values
    // determine the symbol too, or if there are more than kMaxInputs fields.
    std::optional<std::vector<std::size_t>> inputs;
    std::vector<KnownSymbol> known;  // a cache of symbols of earlier events
    std::size_t oldest = 0;          // index in `known` of the entry that is replaced next
  };
  // Returns the fields that determine the symbol of a note: see FieldNotes::inputs.
  std::optional<std::vector<std::size_t>> InputsOf(const TracepointNote& note) const;
  bool AddInputs(const SymbolPiece& piece, std::vector<std::size_t>* inputs) const;
  // Sets symbols_[field] to the symbol of the field in the event that was loaded.
  void LoadSymbol(std::size_t field);
  void PutValue(std::size_t field, ValueStyle style, base::JsonWriter* json) const;

  std::vector<FieldNotes> fields_;
  // Indices in fields_, by the name of the field.
  absl::flat_hash_map<std::string, std::size_t> places_;
  TracepointValues values_;
  std::size_t loaded_ = 0;  // number of fields for which the last event has a value
  std::vector<std::optional<std::string>> symbols_;
};

}  // namespace trace

#endif  // TOOLS_TRACE_TRACEPOINT_PAYLOAD_H_
