#include "tools/collector/perf/cpu_list.h"

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace collector {
namespace {

constexpr int kMaxCpu = 65535;

bool ParseCpu(absl::string_view text, int* cpu) {
  return absl::SimpleAtoi(text, cpu) && *cpu >= 0 && *cpu <= kMaxCpu;
}

absl::StatusOr<std::vector<int>> ReadCpuList(const std::string& name) {
  const std::string path = "/sys/devices/system/cpu/" + name;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) {
    return absl::NotFoundError(absl::StrCat(path, " is not readable; mount sysfs at /sys"));
  }
  return ParseCpuList(line);
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text) {
  const absl::string_view list =
      absl::StripTrailingAsciiWhitespace(absl::string_view(text.data(), text.size()));
  std::vector<int> cpus;
  for (const absl::string_view range : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    const bool is_one = range.find('-') == absl::string_view::npos;
    if (!ParseCpu(ends.first, &first) || !ParseCpu(is_one ? ends.first : ends.second, &last) ||
        last < first || (!cpus.empty() && first <= cpus.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat("invalid list of CPUs '", list, "'; an example: 0-3,5"));
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

absl::StatusOr<std::vector<int>> OnlineCpus() { return ReadCpuList("online"); }

absl::StatusOr<std::vector<int>> PossibleCpus() { return ReadCpuList("possible"); }

}  // namespace collector
