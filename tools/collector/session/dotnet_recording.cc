#include "tools/collector/session/dotnet_recording.h"

#include <unistd.h>

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "libeventheader/base/user_events.h"
#include "tools/base/status_macros.h"
#include "tools/collector/session/selector.h"

namespace collector {

absl::Status DotnetRecording::Prepare(std::vector<DotnetProvider> providers,
                                      const std::string& label, CaptureOptions* capture,
                                      SessionOptions* session) {
  DotnetOptions options;
  options.providers = std::move(providers);
  ASSIGN_OR_RETURN(const std::size_t recorded,
                   RegisterDotnetProviders(absl::StrCat("nettrace_dotnet_", getpid()),
                                           &registrations_, &options.providers));
  for (std::size_t i = 0; i < recorded; ++i) {
    Selector selector;
    selector.kind = Selector::Kind::kTracepoint;
    selector.text = absl::StrCat(label, options.providers[i].name);
    selector.system = std::string(Selector::kUserEventsSystem);
    selector.event = options.providers[i].tracepoint;
    session->selectors.push_back(std::move(selector));
  }
  options.pids = capture->target.pids;
  options.open_data = eh::internal::user_events::OpenData;
  ASSIGN_OR_RETURN(sessions_, DotnetSessions::Create(std::move(options)));
  capture->attachments.own_threads.push_back(sessions_->thread_id());
  return absl::OkStatus();
}

bool DotnetRecording::Report(Session* session) {
  report_ = sessions_->Report();
  bool any = false;
  for (const DotnetProcess& process : report_.processes) {
    any = any || process.state == DotnetProcess::State::kEnabled;
    if (process.reason.empty()) continue;
    session->LeaveOut(absl::StrCat("dotnet:", process.pid),
                      absl::StrCat("events of .NET of process ", process.pid, " (", process.name,
                                   "): ", process.reason));
  }
  return any;
}

}  // namespace collector
