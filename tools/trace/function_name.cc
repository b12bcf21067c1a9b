#include "tools/trace/function_name.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/debugging/internal/demangle.h"
#include "absl/strings/ascii.h"
#include "tools/trace/rust_name.h"

namespace trace {
namespace {

constexpr std::size_t kMaxReadable = 4096;

// Removes the hash at the end of a name in Rust's older form: "::h" and 16 hexadecimal digits.
// Returns whether the name had a hash.
bool RemoveHash(std::string* name) {
  constexpr std::size_t kSize = 19;
  if (name->size() <= kSize) return false;
  const std::string_view hash = std::string_view(*name).substr(name->size() - kSize);
  if (!hash.starts_with("::h") || !std::all_of(hash.begin() + 3, hash.end(), [](unsigned char c) {
        return absl::ascii_isxdigit(c);
      })) {
    return false;
  }
  name->resize(name->size() - kSize);
  return true;
}

// Replaces each escape in a name in Rust's older form, such as "$LT$", by the text that it stands
// for.
std::string WithoutEscapes(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kEscapes = {{
      {"_$LT$", "<"},
      {"$LT$", "<"},
      {"$GT$", ">"},
      {"$RF$", "&"},
      {"$BP$", "*"},
      {"$LP$", "("},
      {"$RP$", ")"},
      {"$C$", ","},
      {"$u20$", " "},
      {"$u27$", "'"},
      {"$u5b$", "["},
      {"$u5d$", "]"},
      {"$u7b$", "{"},
      {"$u7d$", "}"},
      {"$u7e$", "~"},
      {"..", "::"},
  }};
  std::string text;
  while (!name.empty()) {
    const auto* const escape =
        std::find_if(kEscapes.begin(), kEscapes.end(),
                     [name](const auto& each) { return name.starts_with(each.first); });
    if (escape == kEscapes.end()) {
      text += name.front();
      name.remove_prefix(1);
    } else {
      text += escape->second;
      name.remove_prefix(escape->first.size());
    }
  }
  return text;
}

}  // namespace

std::string ReadableFunction(std::string name) {
  if (name.starts_with("_R")) {
    std::optional<std::string> rust = ReadableRustName(name, kMaxReadable);
    return rust ? *std::move(rust) : name;
  }
  if (!name.starts_with("_Z")) return name;
  // This function of abseil has limits of steps and depth, and writes to memory of fixed size. The
  // names that abi::__cxa_demangle returns may be exponentially long.
  std::array<char, kMaxReadable> buffer;
  if (!absl::debugging_internal::Demangle(name.c_str(), buffer.data(),
                                          static_cast<int>(buffer.size()))) {
    return name;
  }
  std::string readable = buffer.data();
  return RemoveHash(&readable) ? WithoutEscapes(readable) : readable;
}

}  // namespace trace
