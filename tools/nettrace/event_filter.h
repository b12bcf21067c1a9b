// Chooses events by their facts, for the subcommands that show or copy a part of a file.
#ifndef TOOLS_NETTRACE_EVENT_FILTER_H_
#define TOOLS_NETTRACE_EVENT_FILTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nettrace/reader.h"

namespace CLI {
class App;
}

namespace tools {

// An event passes if, for every criterion that is set, it has one of its values.
struct EventFilter {
  std::vector<std::string> providers;
  std::vector<std::string> events;  // names
  std::vector<std::uint64_t> pids;
  std::vector<std::uint64_t> tids;
  std::optional<unsigned> level;  // this one and the more severe ones, 0 included
  std::uint64_t keywords = 0;     // one of these bits, or an event without keywords
  std::optional<absl::Time> from;
  std::optional<absl::Time> to;  // not included
  // What becomes of events that the recorder added to those it was asked for, unless `providers`
  // has their provider.
  enum class Added {
    kFiltered,  // as others
    kHidden,    // none passes
    kKept,      // those pass that tell of the time between `from` and `to`
  };
  // Those that describe processes: all before `to` tell which processes there are then.
  Added processes = Added::kFiltered;
  // Those of the recording's account (tools/common/account.h).
  Added account = Added::kFiltered;

  bool Passes(const nettrace::Reader& reader, const nettrace::Event& event) const;

 private:
  // Whether it tells of that time.
  bool KeepsProcess(const nettrace::Reader& reader, const nettrace::Event& event) const;
  bool KeepsAccount(const nettrace::Reader& reader, const nettrace::Event& event) const;
};

// Whether the event describes a process (provider Universal.System): readers take the names of
// processes from it, and people do not ask for it.
bool DescribesProcess(const nettrace::Event& event);

// Adds --provider, --event, --pid, --tid, --level, --keyword, --from and --to, the last one by the
// name `to`. `filter` must live until the command line has been parsed, and is filled by then.
void AddFilterOptions(CLI::App* command, EventFilter* filter, const char* to = "--to");

}  // namespace tools

#endif  // TOOLS_NETTRACE_EVENT_FILTER_H_
