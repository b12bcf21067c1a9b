// Searches the keys and values of thread rows and of the Trace block.
#ifndef TOOLS_TRACE_KEY_VALUES_H_
#define TOOLS_TRACE_KEY_VALUES_H_

#include <string_view>

#include "nettrace/schema.h"

namespace trace {

// Returns the value of the first entry with this key, or "" if there is none. The result is valid
// as long as `key_values`.
inline std::string_view FindValue(const nettrace::KeyValues& key_values, std::string_view key) {
  for (const auto& [name, value] : key_values) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace trace

#endif  // TOOLS_TRACE_KEY_VALUES_H_
