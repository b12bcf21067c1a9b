// The sums of events by their stacks, which the formats folded, speedscope and pprof contain.
#ifndef TOOLS_NETTRACE_EXPORT_STACKS_PROFILE_H_
#define TOOLS_NETTRACE_EXPORT_STACKS_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "tools/trace/stack_tree.h"

namespace tools::stacks {

// The number that an event adds to the sum of its stack.
enum class Weight : std::uint8_t {
  kAutomatic,  // a switch of threads: the time off the CPU, in ns; any other event: 1
  kEvents,     // 1
  kField,      // the number in a field
};

// A kind of event.
struct EventKind {
  std::string name;      // PROVIDER:EVENT
  bool is_time = false;  // whether its weights are ns
};

// A thread and a kind of events. Events that share both form a group.
struct Group {
  std::string process;  // name, or a text with its id
  std::string thread;   // name; empty if unknown
  std::optional<std::uint64_t> pid;
  std::optional<std::uint64_t> tid;
  std::uint32_t kind = 0;  // index in Profile::kinds
};

struct Profile {
  trace::StackTree tree;
  std::vector<EventKind> kinds;
  std::vector<Group> groups;  // the groups of the tree's samples
  Weight weight = Weight::kAutomatic;
  std::string field;  // for Weight::kField
  absl::Time first = absl::InfiniteFuture();
  absl::Time last = absl::InfinitePast();
  std::uint64_t lost = 0;

  bool IsTime(const trace::StackTree::Sample& sample) const {
    return kinds[groups[sample.group].kind].is_time;
  }
};

// The following functions write the profile to the sink. WriteFolded and WriteSpeedscope merge
// frames of the tree that have the same text.

// Writes a line `process;function;function COUNT` for each stack, root first, as the scripts of
// FlameGraph read it. Fails with Unimplemented if the weights are of different units.
absl::Status WriteFolded(Profile* profile, nettrace::Sink* sink);
// Writes the JSON of speedscope, with a profile for each kind of event.
absl::Status WriteSpeedscope(Profile* profile, nettrace::Sink* sink);
// Writes a message Profile of pprof's profile.proto, compressed with gzip.
absl::Status WritePprof(const Profile& profile, nettrace::Sink* sink);

}  // namespace tools::stacks

#endif  // TOOLS_NETTRACE_EXPORT_STACKS_PROFILE_H_
