// Evaluates the notes (tracepoint_keys.h) on the fields of kernel tracepoints. The result is the
// symbol that is shown for a field of an event.
#ifndef TOOLS_TRACE_TRACEPOINT_SYMBOL_H_
#define TOOLS_TRACE_TRACEPOINT_SYMBOL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/schema.h"
#include "tools/trace/tracepoint_keys.h"

namespace trace {

// Holds the value of one field of an event.
struct TracepointValue {
  enum class Kind : std::uint8_t { kOther, kNumber, kNumbers, kText };
  Kind kind = Kind::kOther;
  bool is_unsigned = false;             // true if `number` has 64 bits and no sign
  std::uint64_t number = 0;             // sign-extended if its type is signed
  std::size_t element_size = 1;         // bytes of `number`, or of each of `elements`
  std::vector<std::uint64_t> elements;  // for kNumbers
  std::string text;                     // for kText
};

// Holds the values of the fields of an event.
struct TracepointValues {
  // Indices in `values`, by field name.
  const absl::flat_hash_map<std::string, std::size_t>* names = nullptr;
  std::vector<TracepointValue> values;
  const nettrace::Labels* labels = nullptr;
};

// Evaluates `note` for an event with these values, and returns the symbol without surrounding
// spaces. Returns nullopt if a piece of the note cannot be evaluated or the symbol is empty. The
// limits of notes and the size of the event bound the time that this takes. The symbol has at most
// 4 KiB.
std::optional<std::string> FormatSymbol(const TracepointNote& note, const TracepointValues& values);

}  // namespace trace

#endif  // TOOLS_TRACE_TRACEPOINT_SYMBOL_H_
