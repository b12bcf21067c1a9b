// Demangles any bytes as the name of a function, and checks that the result is bounded. For Rust
// names, checks that a suffix does not change the result, and that there is no result if the limit
// is less than its size.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tools/trace/function_name.h"
#include "tools/trace/rust_name.h"

namespace {

constexpr std::size_t kMaxReadable = 4096;

void Require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string readable = trace::ReadableFunction(text);
  Require(readable.size() <= kMaxReadable || readable == text);
  // Most inputs do not begin like a name of Rust, so the reader also gets them with the prefix.
  const std::string rust = text.starts_with("_R") ? text : "_R" + text;
  const std::optional<std::string> name = trace::ReadableRustName(rust, kMaxReadable);
  if (!name) return 0;
  Require(name->size() <= kMaxReadable);
  Require(trace::ReadableRustName(rust + ".llvm.1", kMaxReadable) == name);
  Require(trace::ReadableRustName(rust, name->size()) == name);
  Require(name->empty() || !trace::ReadableRustName(rust, name->size() - 1));
  return 0;
}
