#include "tools/collector/identity/kernel_symbols.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/read_file.h"

namespace collector {
namespace {

constexpr char kKallsyms[] = "/proc/kallsyms";
constexpr std::size_t kMaxBytes = 64 << 20;
// An address belongs to a symbol only if it is less than this number of bytes after the start of
// the symbol. The limit is needed because /proc/kallsyms does not contain the ends of symbols.
constexpr std::uint64_t kMaxOffset = 1 << 20;

// Returns the rank of a symbol. Global symbols rank before local symbols. Within each of these
// groups, symbols with fewer leading underscores rank first.
std::uint32_t RankOf(char type, absl::string_view name) {
  const std::size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return (absl::ascii_isupper(static_cast<unsigned char>(type)) ? 0 : 0x10000) +
         static_cast<std::uint32_t>(std::min<std::size_t>(underscores, 0xFFFF));
}

}  // namespace

KernelSymbols KernelSymbols::Load() {
  return Parse(base::ReadFile(kKallsyms, kMaxBytes).value_or(""));
}

KernelSymbols KernelSymbols::Parse(std::string_view text) {
  KernelSymbols result;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    // The line is "ffffffff81000000 T _text". In the line of a module's symbol, a tab and the name
    // of the module follow.
    const std::size_t type_at = line.find(' ') + 1;
    if (type_at == 0 || type_at + 2 >= line.size()) continue;
    const char type = line[type_at];
    const absl::string_view name =
        line.substr(type_at + 2, line.find('\t', type_at) - (type_at + 2));
    std::uint64_t address = 0;
    // Skips absolute symbols (types a and A), which are not addresses but offsets in the memory of
    // each CPU.
    if (!absl::SimpleHexAtoi(line.substr(0, type_at - 1), &address) || address == 0 ||
        type == 'a' || type == 'A' || name.empty()) {
      continue;
    }
    result.symbols_.push_back(
        {address, static_cast<std::uint32_t>(result.names_.size()), RankOf(type, name)});
    absl::StrAppend(&result.names_, name, absl::string_view("\0", 1));
  }
  std::stable_sort(result.symbols_.begin(), result.symbols_.end(),
                   [](const Symbol& a, const Symbol& b) {
                     return a.address != b.address ? a.address < b.address : a.rank < b.rank;
                   });
  const auto same = [](const Symbol& a, const Symbol& b) { return a.address == b.address; };
  result.symbols_.erase(std::unique(result.symbols_.begin(), result.symbols_.end(), same),
                        result.symbols_.end());
  result.symbols_.shrink_to_fit();
  result.names_.shrink_to_fit();
  return result;
}

std::optional<KernelSymbols::Range> KernelSymbols::FindRange(std::uint64_t address) const {
  const auto after = std::upper_bound(
      symbols_.begin(), symbols_.end(), address,
      [](std::uint64_t value, const Symbol& symbol) { return value < symbol.address; });
  if (after == symbols_.begin()) return std::nullopt;
  const Symbol& symbol = *(after - 1);
  if (address - symbol.address >= kMaxOffset) return std::nullopt;
  // Limits the offset, so that the sum does not exceed the greatest address.
  const std::uint64_t last = symbol.address + std::min(kMaxOffset - 1, ~symbol.address);
  return Range{symbol.address, after == symbols_.end() ? last : std::min(last, after->address - 1),
               names_.c_str() + symbol.name};
}

std::string KernelSymbols::Find(std::uint64_t address, bool with_offset) const {
  const std::optional<Range> symbol = FindRange(address);
  if (!symbol) return {};
  std::string name(symbol->name);
  const std::uint64_t offset = address - symbol->first;
  if (with_offset && offset != 0) absl::StrAppend(&name, "+0x", absl::Hex(offset));
  return name;
}

}  // namespace collector
