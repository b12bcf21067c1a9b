#include "tools/collector/session/attach_plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "eventheader/tracepoint_name.h"
#include "tools/collector/perf/attached_tracepoint.h"
#include "tools/collector/perf/open_event.h"

namespace collector {
namespace {

// Returns the names of a tracepoint's fields, from the text of its `format` file, without the
// fields that all tracepoints have.
std::vector<std::string> FieldNames(const std::string& format) {
  std::vector<std::string> names;
  for (absl::string_view line : absl::StrSplit(format, '\n')) {
    if (!absl::ConsumePrefix(&line, "\tfield:")) continue;
    // The rest of the line is, for example, "unsigned long args[6];\toffset:…" or
    // "__data_loc char[] comm;\toffset:…".
    line = line.substr(0, line.find(';'));
    absl::string_view name = line.substr(line.find_last_of(" *") + 1);
    name = name.substr(0, name.find('['));
    if (!name.empty() && !absl::StartsWith(name, "common_")) names.emplace_back(name);
  }
  return names;
}

std::size_t OpenDescriptors() {
  std::error_code error;
  std::size_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++count;
  }
  return count;
}

std::size_t DescriptorLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

absl::Status CheckFilter(const std::string& filter, const Tracefs::Name& name,
                         const Tracefs::Tracepoint& tracepoint, FilterCheck* check) {
  std::optional<FilterCheck::Answer> answer = check->Ask(name, filter);
  if (!answer) {
    absl::Status status = AttachedTracepoint::CheckFilter(tracepoint.id, filter);
    if (!absl::IsInvalidArgument(status)) {
      return {status.code(),
              absl::StrCat("tracepoint ", name.system, ":", name.event, ": ", status.message())};
    }
    answer = {false, std::string(status.message())};
  }
  if (answer->accepts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "tracepoint ", name.system, ":", name.event, ": the kernel refuses the filter '", filter,
      "': ", answer->message, "; a filter of this tracepoint can use ",
      absl::StrJoin(FieldNames(tracepoint.format), ", "), ", common_pid (the thread id)"));
}

}  // namespace

std::string BothFilters(const std::string& filter, const std::string& other) {
  if (filter.empty() || other.empty()) return absl::StrCat(filter, other);
  return absl::StrCat("(", filter, ") && (", other, ")");
}

std::string EitherFilter(const std::vector<std::string>& filters) {
  if (filters.size() < 2) return filters.empty() ? "" : filters[0];
  return absl::StrCat("(", absl::StrJoin(filters, ") || ("), ")");
}

absl::StatusOr<Selection> Select(const std::vector<Selector>& selectors, const Tracefs::Name& name,
                                 const Tracefs::Tracepoint& tracepoint, FilterCheck* check) {
  Selection selection;
  std::vector<std::string> filters;
  bool takes_all = false;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const Selector& selector = selectors[i];
    if (!selector.Matches(name.system, name.event)) continue;
    if (selector.filter.empty()) {
      takes_all = true;
    } else if (std::find(filters.begin(), filters.end(), selector.filter) == filters.end()) {
      const absl::Status checked = CheckFilter(selector.filter, name, tracepoint, check);
      if (!checked.ok()) {
        if (selector.kind == Selector::Kind::kTracepoint) return checked;
        selection.refused.Update(checked);
        continue;
      }
      filters.push_back(selector.filter);
    }
    selection.selectors.push_back(i);
    const StackOptions stacks = selector.StacksFor(name.system);
    if (!stacks.any()) continue;
    const std::uint16_t max_frames = stacks.max_frames != 0 ? stacks.max_frames : KernelMaxFrames();
    selection.stacks = {selection.stacks.user || stacks.user,
                        selection.stacks.kernel || stacks.kernel,
                        std::max(selection.stacks.max_frames, max_frames),
                        std::max(selection.stacks.copied_bytes, stacks.copied_bytes)};
  }
  if (selection.selectors.empty()) return selection.refused;
  if (!takes_all) selection.filter = EitherFilter(filters);
  return selection;
}

DescriptorBudget DescriptorBudget::OfProcess(std::size_t tracepoints, std::size_t each) {
  std::size_t used = OpenDescriptors();
  if (DescriptorLimit() < used + tracepoints * each + kReserve) RaiseHardDescriptorLimit();
  const std::size_t limit = DescriptorLimit();
  used += std::min(kReserve, limit / 4);
  return {limit, limit - std::min(used, limit), each};
}

void DescriptorBudget::Count(const Tracefs::Name& name) {
  if (name.system == Selector::kUserEventsSystem) used_[ExtractLetters(name.event)] += each_;
}

absl::Status DescriptorBudget::Check(const Tracefs::Name& name) const {
  constexpr char kRemedy[] =
      "; raise the limit of open files (ulimit -Hn, or LimitNOFILE= in the unit of nettraced), or "
      "select fewer tracepoints";
  const std::string needs =
      absl::StrCat("tracepoint ", name.system, ":", name.event, " needs ", each_, " descriptors, ");
  if (free_ < each_) {
    return absl::ResourceExhaustedError(absl::StrCat(needs, "but only ", free_, " of ", limit_,
                                                     " are left for tracepoints", kRemedy));
  }
  if (name.system != Selector::kUserEventsSystem) return absl::OkStatus();
  const std::string beginning = ExtractLetters(name.event);
  const auto used = used_.find(beginning);
  if ((used == used_.end() ? 0 : used->second) + each_ > 3 * (free_ - each_)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(needs, "but tracepoints whose names begin with '", beginning,
                     "' have used up their share of the limit of ", limit_, kRemedy));
  }
  return absl::OkStatus();
}

void DescriptorBudget::Use(const Tracefs::Name& name) {
  free_ -= std::min(each_, free_);
  Count(name);
}

std::string ExtractProvider(const Tracefs::Name& name) {
  if (name.system != Selector::kUserEventsSystem) return name.system;
  const auto parsed = eh::ParseTracepointName(name.event);
  if (parsed) return std::string(parsed->provider);
  return name.event.substr(0, name.event.find('_'));
}

std::string ExtractLetters(const std::string& name) {
  const auto end = std::find_if(name.begin(), name.end(), [](char c) {
    return !absl::ascii_isalpha(static_cast<unsigned char>(c));
  });
  return {name.begin(), end};
}

std::vector<Tracefs::Name> InTurns(std::vector<Tracefs::Name> names) {
  std::map<std::string, std::size_t> turns;
  std::vector<std::pair<std::size_t, Tracefs::Name>> ordered;
  for (Tracefs::Name& name : names) {
    const std::size_t turn = turns[ExtractProvider(name)]++;
    ordered.emplace_back(turn, std::move(name));
  }
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  names.clear();
  for (auto& [turn, name] : ordered) names.push_back(std::move(name));
  return names;
}

}  // namespace collector
