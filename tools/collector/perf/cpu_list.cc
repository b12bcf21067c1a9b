#include "tools/collector/perf/cpu_list.h"

#include <charconv>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace collector {
namespace {

constexpr int kMaxCpu = 65535;
constexpr char kOnlinePath[] = "/sys/devices/system/cpu/online";

bool TakeNumber(std::string_view* text, int* value) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *value);
  if (error != std::errc() || *value < 0 || *value > kMaxCpu) return false;
  text->remove_prefix(static_cast<std::size_t>(end - text->data()));
  return true;
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text) {
  const std::string whole(text);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<int> cpus;
  while (!text.empty()) {
    int first = 0;
    if (!TakeNumber(&text, &first)) break;
    int last = first;
    if (!text.empty() && text.front() == '-') {
      text.remove_prefix(1);
      if (!TakeNumber(&text, &last)) break;
    }
    if (last < first || (!cpus.empty() && first <= cpus.back())) break;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (text.empty()) return cpus;
    if (text.front() != ',') break;
    text.remove_prefix(1);
  }
  return absl::InvalidArgumentError(absl::StrCat("not a list of CPUs: '", whole, "'"));
}

absl::StatusOr<std::vector<int>> OnlineCpus() {
  std::ifstream file(kOnlinePath);
  std::string line;
  if (!std::getline(file, line)) {
    return absl::NotFoundError(
        absl::StrCat(kOnlinePath, " is not readable; is sysfs mounted at /sys?"));
  }
  return ParseCpuList(line);
}

}  // namespace collector
