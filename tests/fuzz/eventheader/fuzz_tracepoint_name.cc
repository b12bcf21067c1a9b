// Parses any bytes as the name of a tracepoint. If that succeeds, formatting the parts must return
// the same name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "eventheader/tracepoint_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto name = eh::ParseTracepointName(text);
  if (!name) return 0;
  char buffer[eh::kMaxTracepointName + 1];
  const std::size_t written = eh::FormatTracepointName(*name, buffer);
  if (std::string_view(buffer, written) != text) std::abort();
  for (char letter = 'A'; letter <= 'Z'; ++letter) {
    const bool there = name->options.find(letter) != std::string_view::npos;
    if (eh::FindOption(name->options, letter).has_value() != there) std::abort();
  }
  return 0;
}
