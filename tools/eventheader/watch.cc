// `eventheader watch`: prints tracepoints of user_events, and of services that pass their events
// through rings in user space, as they appear and disappear.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/perf/registration_probe.h"
#include "tools/control/messages.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/ring_tracepoints.h"
#include "tools/eventheader/tracepoint_json.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {
namespace {

// Maximum interval between reads of the kernel's list if the kernel reports registrations. The
// kernel does not report when a tracepoint ends with its process.
constexpr absl::Duration kSlow = absl::Seconds(1);
// Interval between reads of the kernel's list if the kernel does not report registrations.
constexpr absl::Duration kPoll = absl::Milliseconds(50);
// Shortest pause between two reads of the kernel's list. kShare limits the reads to a tenth of the
// time, even if a process registers tracepoints in a loop.
constexpr absl::Duration kLeast = absl::Milliseconds(5);
constexpr int kShare = 10;

// Interval between requests to nettraced, which knows the services with rings in user space.
constexpr absl::Duration kAskEvery = absl::Milliseconds(250);
// Time for which tracepoints of services with rings are kept after a request that nettraced did not
// answer. nettraced may have restarted, and services then connect again within a few seconds.
constexpr absl::Duration kReturnTime = absl::Seconds(10);

struct WatchArguments {
  std::vector<std::string> patterns;
  std::string socket = control::kControlPath;
  bool json = false;
};

// Returns a probe for each CPU that is online. A probe reports registrations. Returns no probes if
// the kernel cannot report registrations.
std::vector<collector::RegistrationProbe> OpenProbes() {
  std::vector<collector::RegistrationProbe> probes;
  const auto cpus = collector::OnlineCpus();
  if (!cpus.ok()) return probes;
  for (const int cpu : *cpus) {
    auto probe = collector::RegistrationProbe::Open(cpu);
    if (probe.ok()) {
      probes.push_back(*std::move(probe));
    } else if (!absl::IsNotFound(probe.status())) {
      return {};
    }
  }
  return probes;
}

// Waits until the kernel's list of tracepoints may have changed. Wait() returns false after a
// signal that asks the program to end.
class Waiter {
 public:
  // If `has_kernel` is false, there is no list of the kernel, and Wait() waits for kAskEvery.
  explicit Waiter(bool has_kernel) : limit_(has_kernel ? kPoll : kAskEvery) {
    if (has_kernel) probes_ = OpenProbes();
    if (!probes_.empty()) limit_ = kSlow;
    fds_.push_back({cli::StopDescriptor(), POLLIN, 0});
    for (const auto& probe : probes_) fds_.push_back({probe.fd().get(), POLLIN, 0});
  }

  // `busy` is the duration of the last read of the list. The minimum pause is proportional to it.
  bool Wait(absl::Duration busy) {
    if (!Poll(1, std::max(kLeast, (kShare - 1) * busy))) return false;
    if (!Poll(fds_.size(), limit_)) return false;
    for (auto& probe : probes_) probe.Clear();
    return true;
  }

 private:
  bool Poll(std::size_t count, absl::Duration timeout) {
    poll(fds_.data(), count, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
    return !cli::IsStopRequested();
  }

  absl::Duration limit_;  // maximum time to wait for a change
  std::vector<collector::RegistrationProbe> probes_;
  std::vector<pollfd> fds_;  // first cli::StopDescriptor(), then the descriptors of probes_
};

void Print(const Tracepoint& tracepoint, bool has_come, bool as_json) {
  if (!as_json) {
    absl::PrintF("%s %s\n", has_come ? "+" : "-", base::Printable(tracepoint.name));
    return;
  }
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutText(&json, "time", base::FormatUtc(absl::Now()));
  base::PutText(&json, "change", has_come ? "registered" : "gone");
  PutTracepoint(&json, tracepoint);
  json.EndObject();
  base::PrintJsonLine(buffer);
}

using Known = std::map<std::string, Tracepoint>;  // by name

// Prints the tracepoints that have appeared (only in `now`), unless `is_first` is set, and those
// that have disappeared (only in `known`).
void PrintChanges(const Known& known, const Known& now, bool is_first, bool as_json) {
  for (const auto& [name, tracepoint] : now) {
    if (!is_first && !known.contains(name)) Print(tracepoint, true, as_json);
  }
  for (const auto& [name, tracepoint] : known) {
    if (!now.contains(name)) Print(tracepoint, false, as_json);
  }
}

// Watches the tracepoints of services with rings in user space.
class RingWatch {
 public:
  explicit RingWatch(const WatchArguments& arguments)
      : arguments_(arguments), client_(arguments.socket) {}

  // Asks nettraced, unless it was asked within kAskEvery, and prints the changes since the last
  // answer. If `is_first` is set, prints no tracepoint as new. Returns the error if nettraced does
  // not answer.
  absl::Status Look(bool is_first) {
    const absl::Duration now = base::MonotonicNow();
    if (now - asked_ < kAskEvery) return absl::OkStatus();
    asked_ = now;
    const auto services = client_.List();
    if (!services.ok()) {
      keeps_until_ = now + kReturnTime;
      return services.status();
    }
    Known all;
    for (Tracepoint& tracepoint : RingTracepoints(*services, arguments_.patterns)) {
      all.emplace(tracepoint.name, std::move(tracepoint));
    }
    if (now < keeps_until_) all.insert(known_.begin(), known_.end());
    PrintChanges(known_, all, is_first, arguments_.json);
    known_ = std::move(all);
    return absl::OkStatus();
  }

 private:
  const WatchArguments& arguments_;
  ServicesClient client_;
  Known known_;
  // Times of MonotonicNow(). asked_ is the time of the latest request. Until keeps_until_,
  // tracepoints stay in known_ even if nettraced does not list them.
  absl::Duration asked_ = -absl::InfiniteDuration();
  absl::Duration keeps_until_ = -absl::InfiniteDuration();
};

// Reads the tracepoints of the kernel, prints the changes since the last call, and updates `known`.
absl::Status Look(const collector::Tracefs& tracefs, const WatchArguments& arguments, bool is_first,
                  Known* known) {
  Known now;
  const auto unclear = tracefs.ForEachUserEvent([&](const collector::UserEvent& event) {
    std::string name(event.name);
    if (!MatchesAny(name, arguments.patterns)) return;
    const auto before = known->find(name);
    Tracepoint tracepoint = before == known->end() ? Tracepoint() : before->second;
    tracepoint.name = name;
    tracepoint.used_by = std::string(event.used_by);
    now.emplace(std::move(name), std::move(tracepoint));
  });
  if (!unclear.ok()) return unclear.status();
  for (auto& [name, tracepoint] : now) {
    if (!known->contains(name)) ReadDetails(tracefs, &tracepoint);
  }
  PrintChanges(*known, now, is_first, arguments.json);
  *known = std::move(now);
  return absl::OkStatus();
}

void Watch(const WatchArguments& arguments, Invocation* invocation) {
  if (const absl::Status status = cli::CatchSignals(); !status.ok())
    return invocation->Fail(status);
  const auto tracefs = FindUserEvents();
  RingWatch rings(arguments);
  // The Waiter opens the probes before the first read, so that no registration is missed.
  Waiter waiter(tracefs.ok());
  Known known;
  absl::Duration busy;
  for (bool is_first = true; is_first || waiter.Wait(busy); is_first = false) {
    const absl::Duration start = base::MonotonicNow();
    absl::Status status = tracefs.status();
    if (tracefs.ok()) status = Look(*tracefs, arguments, is_first, &known);
    const absl::Status asked = rings.Look(is_first);
    if (!tracefs.ok() && is_first && !asked.ok()) {
      return invocation->Fail(NeitherAnswers(status, asked));
    }
    if (tracefs.ok() && !status.ok()) return invocation->Fail(status);
    if (is_first && absl::IsPermissionDenied(tracefs.status())) {
      invocation->Say(
          absl::StrCat("tracepoints of user_events are not watched: ", tracefs.status().message()));
    }
    if (is_first) invocation->Say("watching");
    invocation->FinishOutput();
    if (invocation->exit_code != cli::kExitOk) return;
    busy = base::MonotonicNow() - start;
  }
}

}  // namespace

void AddWatch(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<WatchArguments>();
  CLI::App* command =
      app.add_subcommand("watch", "Print tracepoints when they are registered and deleted");
  command->add_option("pattern", arguments->patterns,
                      "Shell patterns for the names of tracepoints");
  command->add_option("--socket", arguments->socket, "Control socket of nettraced")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON object per line");
  command->footer(
      "Each line has + and the name of a registered tracepoint, or - and the name of a deleted "
      "one. Existing tracepoints are not printed. 'watching' on standard error reports that the "
      "watch has begun. SIGINT or SIGTERM ends it. Tracepoints of services that use shared memory "
      "are printed as far as nettraced reports them.\n\n"
      "Exit code: 0 ended by a signal; 1 failed; 2 wrong usage.\n\n"
      "Examples:\n"
      "  eventheader watch\n"
      "  eventheader watch --json 'MyCompany_*' | \\\n"
      "      jq -r 'select(.change == \"registered\").name'\n");
  command->callback([arguments, invocation] { Watch(*arguments, invocation); });
}

}  // namespace tools
