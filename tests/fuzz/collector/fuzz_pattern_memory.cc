// Reads any text as the names that patterns have found, and then adds any names. The remembered
// names must be names of tracepoints, must stay within the limits, and must be read again as they
// were written.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eventheader/tracepoint_name.h"
#include "tools/collector/session/pattern_memory.h"

namespace {

constexpr std::size_t kMaxNames = 32;

void Require(bool promise) {
  if (!promise) std::abort();
}

void Check(const collector::PatternMemory& memory) {
  const std::vector<std::string> names = memory.ListNames();
  Require(names.size() <= kMaxNames);
  std::map<std::string, std::size_t> of_provider;
  for (const std::string& name : names) {
    const auto parts = eh::ParseTracepointName(name);
    Require(parts.has_value());
    Require(++of_provider[std::string(parts->provider)] <=
            kMaxNames / collector::PatternMemory::kShares);
  }
  collector::PatternMemory other(kMaxNames);
  Require(other.Parse(memory.ToText()) == 0);
  Require(other.ListNames() == names && other.ToText() == memory.ToText());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::string_view data(reinterpret_cast<const char*>(bytes), size);
  collector::PatternMemory memory(kMaxNames);
  memory.Parse(data);
  Check(memory);
  bool uses = false;
  while (!data.empty()) {
    const std::size_t end = std::min(data.find('\n'), data.size());
    const std::string_view name = data.substr(0, end);
    if (uses) memory.Use(name);
    if (memory.Meet(name)) Require(memory.ListNames().front() == name);
    uses = !uses;
    data.remove_prefix(std::min(end + 1, data.size()));
  }
  Check(memory);
  return 0;
}
