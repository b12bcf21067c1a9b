#include "tools/control/metrics.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tools/base/open_metrics.h"
#include "tools/base/text.h"
#include "tools/control/losses.h"
#include "tools/control/messages.h"

namespace control {
namespace {

// Returns the value of a label with its escapes, in quotes.
std::string Quoted(std::string_view value) {
  std::string quoted = "\"";
  for (const char c : base::Printable(value)) {
    if (c == '\\' || c == '"') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Label(const SessionStatus& session) {
  return absl::StrCat("session=", Quoted(session.name));
}

using base::kCounter;
using base::kGauge;
using base::PutMetricFamily;

struct Count {
  const char* name;
  const char* type;
  const char* unit;
  const char* help;
  std::uint64_t SessionStatus::*member;
};
constexpr Count kCounts[] = {
    {"events", kCounter, "", "Events written since the session started.", &SessionStatus::events},
    {"lost_events", kCounter, "", "Events lost in rings, or by the output.", &SessionStatus::lost},
    {"dropped_events", kCounter, "",
     "Lost events that were dropped because the output was too slow.", &SessionStatus::dropped},
    {"discarded_events", kCounter, "",
     "Events that were discarded because the output was blocked when the session stopped.",
     &SessionStatus::discarded},
    {"undecoded_events", kCounter, "", "Events whose payload was written without decoding it.",
     &SessionStatus::undecoded},
    {"written_bytes", kCounter, "bytes", "Bytes written, after compression.",
     &SessionStatus::bytes},
    {"snapshots", kCounter, "", "Files that the flight recorder has written.",
     &SessionStatus::snapshots},
    {"refused_snapshots", kCounter, "",
     "Snapshots that triggers requested and the rate limit refused.",
     &SessionStatus::snapshots_refused},
    {"dotnet_processes", kCounter, "", "Processes of .NET that enabled their events.",
     &SessionStatus::dotnet_enabled},
    {"refused_dotnet_processes", kCounter, "",
     "Processes of .NET that did not enable their events: they ended, or several attempts failed.",
     &SessionStatus::dotnet_not_enabled},
    {"unasked_dotnet_processes", kCounter, "",
     "Processes of .NET that got no request for events, because too many others ran.",
     &SessionStatus::dotnet_not_asked},
    {"tracepoints", kGauge, "", "Tracepoints that are recorded.", &SessionStatus::tracepoints},
    {"ring_bytes", kGauge, "bytes", "Size of the ring of each CPU.", &SessionStatus::ring_bytes},
    {"queue_bytes", kGauge, "bytes", "Bytes in the output queue.", &SessionStatus::queue_bytes},
    {"queue_limit_bytes", kGauge, "bytes",
     "Maximum bytes in the output queue; further events are dropped.", &SessionStatus::queue_limit},
    {"flight_memory_bytes", kGauge, "bytes", "Memory that the flight recorder uses.",
     &SessionStatus::memory_bytes},
    {"files", kGauge, "", "Files of the session on disk.", &SessionStatus::files},
    {"files_bytes", kGauge, "bytes", "Size of the files of the session on disk.",
     &SessionStatus::file_bytes},
};

void PutStates(std::string* text, std::span<const SessionStatus> sessions) {
  using State = SessionStatus::State;
  const std::string name = "nettraced_session_state";
  // OpenMetrics has the type stateset for states, but not all readers of the text support it. The
  // states are therefore gauges.
  PutMetricFamily(text, name, kGauge, "",
                  "1 for the current state of the session, 0 for the other states.");
  for (const SessionStatus& session : sessions) {
    for (const State state :
         {State::kRunning, State::kSuspended, State::kFailed, State::kStopped}) {
      absl::StrAppend(text, name, "{", Label(session), ",state=\"", std::string(StateName(state)),
                      "\"} ", session.state == state ? 1 : 0, "\n");
    }
  }
}

void PutStartTimes(std::string* text, std::span<const SessionStatus> sessions) {
  const std::string name = "nettraced_session_start_time_seconds";
  PutMetricFamily(text, name, kGauge, "seconds",
                  "Start time of the session, in seconds since the epoch.");
  for (const SessionStatus& session : sessions) {
    if (session.started == absl::InfinitePast()) continue;
    absl::StrAppendFormat(text, "%s{%s} %.3f\n", name, Label(session),
                          absl::ToDoubleSeconds(session.started - absl::UnixEpoch()));
  }
}

// Writes the numbers of unmatched selectors and of tracepoints that cannot be recorded.
void PutListSizes(std::string* text, std::span<const SessionStatus> sessions) {
  const auto put = [&](const std::string& name, const char* help,
                       std::vector<std::string> SessionStatus::*list) {
    PutMetricFamily(text, name, kGauge, "", help);
    for (const SessionStatus& session : sessions) {
      absl::StrAppend(text, name, "{", Label(session), "} ", (session.*list).size(), "\n");
    }
  };
  put("nettraced_session_unmatched_selectors", "Selectors that match no tracepoint.",
      &SessionStatus::unmatched);
  put("nettraced_session_left_out_tracepoints", "Tracepoints that cannot be recorded.",
      &SessionStatus::left_out);
}

void PutLosses(std::string* text, std::span<const SessionStatus> sessions) {
  const std::string name = "nettraced_session_largest_losses";
  // The type is gauge and not counter, because a series disappears when its loss is no longer among
  // the largest.
  PutMetricFamily(
      text, name, kGauge, "",
      "Lost events by CPU and tracepoint: the largest losses, and the sum of the others.");
  for (const SessionStatus& session : sessions) {
    std::uint64_t others = session.lost;
    for (const Loss& loss : LargestLosses(session.losses, kMaxLossSeries)) {
      absl::StrAppend(text, name, "{", Label(session), ",cpu=\"", loss.cpu,
                      "\",tracepoint=", Quoted(loss.tracepoint), "} ", loss.events, "\n");
      others -= std::min(others, loss.events);
    }
    absl::StrAppend(text, name, "{", Label(session), ",cpu=\"other\",tracepoint=\"other\"} ",
                    others, "\n");
  }
}

// Writes the counts of services with rings in user space.
void PutServiceCounts(std::string* text, const ServicesStatus& services) {
  const ServicesTotals& totals = services.totals;
  const bool is_open = !services.socket.empty();
  const auto put = [&](const char* name, const char* type, const char* unit, const char* help,
                       std::uint64_t value) {
    const std::string family = absl::StrCat("nettraced_services_", name);
    PutMetricFamily(text, family, type, unit, help);
    if (!is_open) return;
    absl::StrAppend(text, family, type == kCounter ? "_total " : " ", value, "\n");
  };
  const auto put_reasons = [&](const char* name, const char* help, const auto& counts) {
    const std::string family = absl::StrCat("nettraced_services_", name);
    PutMetricFamily(text, family, kCounter, "", help);
    if (!is_open) return;
    for (const auto& [reason, count] : counts) {
      absl::StrAppend(text, family, "_total{reason=", Quoted(reason), "} ", count, "\n");
    }
  };
  put("connected", kGauge, "", "Connected services that pass events through rings.",
      services.services.size());
  put("ring_bytes", kGauge, "bytes",
      "Sum of the limits of memory for events of the connected services.", totals.ring_bytes);
  put("events", kCounter, "", "Events read from the rings of services.", totals.events);
  put_reasons("lost_events", "Events that services could not write to their rings, by reason.",
              totals.lost);
  put("corrupt_records", kCounter, "", "Invalid records in the rings of services.", totals.corrupt);
  put_reasons("refused_connections",
              "Connections of services that were refused or ended, by reason.", totals.refused);
}

}  // namespace

std::string FormatMetrics(std::span<const SessionStatus> sessions, const ServicesStatus& services) {
  std::string text;
  PutStates(&text, sessions);
  PutStartTimes(&text, sessions);
  for (const Count& count : kCounts) {
    const std::string name = absl::StrCat("nettraced_session_", count.name);
    const char* suffix = count.type == kCounter ? "_total" : "";
    PutMetricFamily(&text, name, count.type, count.unit, count.help);
    for (const SessionStatus& session : sessions) {
      absl::StrAppend(&text, name, suffix, "{", Label(session), "} ", session.*count.member, "\n");
    }
  }
  PutListSizes(&text, sessions);
  PutLosses(&text, sessions);
  PutServiceCounts(&text, services);
  return text + base::kMetricsEnd;
}

}  // namespace control
