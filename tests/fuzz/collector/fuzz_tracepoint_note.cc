// Parses any bytes as a note on a field of a kernel tracepoint. A note that is parsed must be
// written as text that parses to the same note, and must make text of bounded size from the values
// of an event.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/trace/tracepoint_symbol.h"

namespace {

using Kind = trace::TracepointValue::Kind;

// Returns the values of an event with a field of each kind, named x, t, a and l.
trace::TracepointValues SampleValues(const absl::flat_hash_map<std::string, std::size_t>& names,
                                     const nettrace::Labels& labels) {
  trace::TracepointValues values;
  values.names = &names;
  values.labels = &labels;
  values.values.resize(names.size());
  values.values[0].kind = Kind::kNumber;
  values.values[0].number = static_cast<std::uint64_t>(-5);
  values.values[0].element_size = 4;
  values.values[1].kind = Kind::kText;
  values.values[1].text = "text";
  for (std::size_t i = 2; i < 4; ++i) {
    values.values[i].kind = Kind::kNumbers;
    values.values[i].element_size = i == 2 ? 1 : 8;
    values.values[i].elements.assign(28, 0x102030405060702);
  }
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const absl::flat_hash_map<std::string, std::size_t> names = {
      {"x", 0}, {"t", 1}, {"a", 2}, {"l", 3}};
  static const nettrace::Labels labels = [] {
    nettrace::Labels with_symbol;
    with_symbol.strings = {{"Symbol.x", "function+0x1"}};
    return with_symbol;
  }();
  static const trace::TracepointValues values = SampleValues(names, labels);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto note = trace::ParseTracepointNote(text);
  if (!note) return 0;
  const std::string formatted = trace::FormatTracepointNote(*note);
  const auto again = trace::ParseTracepointNote(formatted);
  // Text with a NUL is not checked, because the kernel writes no NUL into notes.
  if (text.find('\0') == std::string_view::npos && (!again || *again != *note)) std::abort();
  const auto symbol = trace::FormatSymbol(*note, values);
  if (symbol && (symbol->empty() || symbol->size() > 4096)) std::abort();
  return 0;
}
