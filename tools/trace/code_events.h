// Reads the events of Universal.System that describe the code of stacks: mappings (ProcessMapping),
// functions (ProcessSymbol) and what is known of the file of a mapping (ProcessMappingMetadata).
#ifndef TOOLS_TRACE_CODE_EVENTS_H_
#define TOOLS_TRACE_CODE_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "nettrace/reader.h"

namespace trace {

// Maximum bytes of a name, path or JSON text. Longer text is cut.
inline constexpr std::size_t kMaxCodeName = 4096;

struct CodeEvent {
  enum class Kind : std::uint8_t { kMapping, kFunction, kFile };
  Kind kind = Kind::kMapping;
  std::uint64_t id = 0;
  std::uint64_t mapping_id = 0;   // for a function: id of the mapping that contains it
  std::uint64_t metadata_id = 0;  // for a mapping: `id` of the kFile event of its file; 0: none
  // Addresses of the first and the last byte of a mapping or function. `first` is not after `last`.
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t offset = 0;  // for a mapping: offset of its first byte in the file
  std::string name;          // name of a function, or path of the mapped file
  std::string json;          // for a kFile event: its field SymbolMetadata
};

// Returns what the event describes; no value if it does not describe code or cannot be read.
std::optional<CodeEvent> ReadCodeEvent(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_CODE_EVENTS_H_
