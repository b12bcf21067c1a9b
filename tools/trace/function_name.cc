#include "tools/trace/function_name.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

#include "absl/debugging/internal/demangle.h"

namespace trace {
namespace {

// Maximum bytes of a name. Longer names are shown as symbols.
constexpr std::size_t kMaxName = 16384;

// Removes the hash that Rust adds to the name of a function: `::h` and 16 hexadecimal digits.
void RemoveHash(std::string* name) {
  constexpr std::string_view kBefore = "::h";
  constexpr std::size_t kDigits = 16;
  if (name->size() <= kBefore.size() + kDigits) return;
  const std::size_t digits = name->size() - kDigits;
  const bool is_hash = std::all_of(name->begin() + static_cast<std::ptrdiff_t>(digits), name->end(),
                                   [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (is_hash && name->compare(digits - kBefore.size(), kBefore.size(), kBefore) == 0) {
    name->resize(digits - kBefore.size());
  }
}

}  // namespace

std::string FunctionName(std::string_view symbol) {
  if (!symbol.starts_with("_Z")) return std::string(symbol);
  const std::string mangled(symbol);
  std::vector<char> buffer(kMaxName);
  // abi::__cxa_demangle needs memory that is exponential in the length of some symbols.
  if (!absl::debugging_internal::Demangle(mangled.c_str(), buffer.data(),
                                          static_cast<int>(buffer.size()))) {
    return mangled;
  }
  std::string name = buffer.data();
  RemoveHash(&name);
  return name;
}

}  // namespace trace
