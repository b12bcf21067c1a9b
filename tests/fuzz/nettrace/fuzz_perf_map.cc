// Reads any bytes as a perf map, in one piece and in two. Both readings must find the same
// functions for a list of addresses. A function must contain its address, and its name must be
// bounded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tools/elf/elf_file.h"
#include "tools/nettrace/symbolize/perf_map.h"
#include "tools/nettrace/symbolize/stack_hits.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::uint64_t> addresses = {0,      0x1000, 0x1008, 0x100f,
                                                0x1010, 0x2000, 0xabcd, ~std::uint64_t{0}};
  tools::symbolize::PerfMapLookup whole(addresses);
  whole.AddText(text);
  const elf::Functions found = whole.Finish();
  tools::symbolize::PerfMapLookup pieces(addresses);
  const std::size_t half = size / 2;
  pieces.AddText(text.substr(0, half));
  pieces.AddText(text.substr(half));
  const elf::Functions same = pieces.Finish();
  Require(found.of_address == same.of_address && found.of_address.size() == addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (found.of_address[i] == elf::Functions::kNone) continue;
    const elf::Function& function = found.functions.at(found.of_address[i]);
    Require(function.first <= addresses[i] && addresses[i] <= function.last);
    Require(!function.name.empty() && function.name.size() <= elf::kMaxName);
    Require(function.name == same.functions.at(same.of_address[i]).name);
  }
  Require(tools::symbolize::ParseSymbolMetadata(std::string(text)).build_id.size() <=
          elf::kMaxBuildId);
  return 0;
}
