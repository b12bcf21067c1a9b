// Views bytes as text.
#ifndef TOOLS_BASE_BYTE_TEXT_H_
#define TOOLS_BASE_BYTE_TEXT_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace base {

// Returns the bytes as characters. The result is valid as long as the bytes.
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace base

#endif  // TOOLS_BASE_BYTE_TEXT_H_
