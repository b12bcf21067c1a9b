#include "tools/collector/session/dotnet_recording.h"

#include <linux/capability.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "libeventheader/base/user_events.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/session/selector.h"

namespace collector {

absl::Status DotnetRecording::Prepare(std::vector<DotnetProvider> providers,
                                      const std::string& label, CaptureOptions* capture,
                                      SessionOptions* session) {
  static std::atomic<std::uint64_t> recordings = 0;
  DotnetOptions options;
  options.providers = std::move(providers);
  const std::size_t count = options.providers.size();
  const absl::Status registered =
      RegisterDotnetProviders(
          absl::StrCat("nettrace_dotnet_", getpid(), "_", recordings.fetch_add(1)), &registrations_,
          &options.providers)
          .status();
  if (!allows_streams_) RETURN_IF_ERROR(registered);
  why_only_streams_ = registered;
  for (std::size_t i = 0; registered.ok() && i < count; ++i) {
    Selector selector;
    selector.kind = Selector::Kind::kTracepoint;
    selector.text = absl::StrCat(label, options.providers[i].name);
    selector.system = std::string(Selector::kUserEventsSystem);
    selector.event = options.providers[i].tracepoint;
    session->selectors.push_back(std::move(selector));
  }
  options.perf_maps = wants_perf_maps_;
  options.pids = capture->target.pids;
  options.cgroups = capture->target.cgroups;
  if (registered.ok()) {
    options.open_data = eh::internal::user_events::OpenData;
    capture->tracepoints = true;
  }
  if (allows_streams_) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(options.providers[i].name);
    streams_ = std::make_shared<EventPipeInbox>(std::move(names));
    options.streams = session->streams = streams_;
    capture->streams = true;
  }
  ASSIGN_OR_RETURN(sessions_, DotnetSessions::Create(std::move(options)));
  capture->attachments.own_threads.push_back(sessions_->thread_id());
  return absl::OkStatus();
}

void DotnetRecording::Begin(Session* session) {
  if (!HasCapability(CAP_SYS_PTRACE) || !HasCapability(CAP_DAC_OVERRIDE)) {
    session->LeaveOut(
        "dotnet:others",
        ".NET events of processes of other users: the collector cannot request these events; run "
        "the collector as root, or with CAP_SYS_PTRACE and CAP_DAC_OVERRIDE");
  }
  sessions_->Begin();
}

void DotnetRecording::WaitForEnds() {
  // The thread of `sessions_` records the ends of streams within 0.2 s.
  for (int i = 0; i < 100 && streams_ != nullptr && streams_->has_unrecorded(); ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
}

void DotnetRecording::LeaveOut(bool all, Session* session) {
  report_number_ = sessions_->report_number();
  report_ = sessions_->Report();
  std::set<std::pair<pid_t, std::uint64_t>> left_out;
  for (const DotnetProcess& process : report_.processes) {
    if (process.reason.empty() || !(all || process.given_up)) continue;
    left_out.insert({process.pid, process.start});
    if (left_out_.contains({process.pid, process.start})) continue;
    session->LeaveOut(absl::StrCat("dotnet:", process.pid),
                      absl::StrCat(".NET events of process ", process.pid, " (", process.name,
                                   "): ", process.reason));
  }
  left_out_ = std::move(left_out);
  if (report_.not_asked > not_asked_) {
    session->LeaveOut(
        "dotnet:further",
        absl::StrCat(".NET events of further processes (", report_.not_asked - not_asked_,
                     "): not requested, because the collector requests the events of at most ",
                     DotnetReport::kMaxProcesses,
                     " processes at a time, and at most three quarters of this number may belong "
                     "to one user; select processes with --pid, or with pids in the settings of "
                     "nettraced"));
  }
  not_asked_ = report_.not_asked;
}

void DotnetRecording::ReportGivenUp(Session* session) {
  if (sessions_->report_number() != report_number_) LeaveOut(/*all=*/false, session);
}

bool DotnetRecording::Report(Session* session) {
  LeaveOut(/*all=*/true, session);
  return report_.enabled != 0;
}

}  // namespace collector
