#include "tools/nettrace/ctl_tables.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/base/quantities.h"
#include "tools/base/text.h"
#include "tools/control/losses.h"
#include "tools/control/messages.h"
#include "tools/trace/account.h"

namespace tools {
namespace {

using control::SessionStatus;

// Maximum number of rows for losses in the details of a session. The largest losses are shown.
constexpr std::size_t kLossesShown = 20;

// Returns the number of characters of valid UTF-8. Assumes that each character takes one column.
std::size_t WidthOf(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Returns `text`, cut to at most `width` (at least 1) characters. If the text is cut, the last
// character is "~".
std::string Cut(const std::string& text, std::size_t width) {
  if (WidthOf(text) <= width) return text;
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xC0) != 0x80;
    if (begins && shown++ + 1 >= width) break;
  }
  return text.substr(0, end) + "~";
}

// Formats text in columns, two spaces apart.
class Columns {
 public:
  // `heads` holds the names of the columns; a name that begins with '>' makes the column
  // right-aligned.
  explicit Columns(std::vector<std::string> heads) {
    for (std::string& head : heads) {
      right_.push_back(head.starts_with('>'));
      if (right_.back()) head.erase(0, 1);
    }
    Add(std::move(heads));
  }
  void Add(std::vector<std::string> row) {
    widths_.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths_[i] = std::max(widths_[i], WidthOf(row[i]));
    }
    rows_.push_back(std::move(row));
  }
  std::string Text(std::size_t width, std::string_view indent = "") const {
    std::string text;
    for (const std::vector<std::string>& row : rows_) {
      std::string line(indent);
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i > 0) line += "  ";
        const std::string padding(widths_[i] - WidthOf(row[i]), ' ');
        line += right_[i] ? padding + row[i] : row[i] + padding;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += Cut(line, width) + "\n";
    }
    return text;
  }

 private:
  std::vector<bool> right_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

// Formats `number` with at least three significant digits if it has them: "7", "1500", "12.3k",
// "4.56M".
std::string FormatCount(double number) {
  if (number < 9999.5) return absl::StrFormat("%.0f", number);
  return base::FormatScaled(number, 1000, {"", "k", "M", "G", "T"});
}

std::string AgeSince(absl::Time time, absl::Time now) {
  return time == absl::InfinitePast() ? "-" : FormatAge(now - time);
}

std::string FormatLocal(absl::Time time, absl::Time now) {
  if (time == absl::InfinitePast()) return "-";
  return absl::StrCat(absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone()), " (",
                      FormatAge(now - time), " ago)");
}

std::string State(const SessionStatus& session) {
  return std::string(control::StateName(session.state));
}

void PutFact(std::string* text, const char* name, const std::string& value) {
  absl::StrAppendFormat(text, "  %-12s %s\n", name, value);
}

void PutList(std::string* text, const char* title, const std::vector<std::string>& entries) {
  if (entries.empty()) return;
  absl::StrAppend(text, "  ", title, ":\n");
  for (const std::string& entry : entries)
    absl::StrAppend(text, "    ", base::Printable(entry), "\n");
}

std::string CpuText(std::uint32_t cpu) { return cpu == trace::kRingCpu ? "-" : absl::StrCat(cpu); }

void PutLosses(std::string* text, const SessionStatus& session) {
  if (session.losses.empty()) return;
  Columns columns({">EVENTS", ">CPU", "TRACEPOINT"});
  std::uint64_t elsewhere = session.lost;
  for (const control::Loss& loss : control::LargestLosses(session.losses, kLossesShown)) {
    const std::string tracepoint(loss.tracepoint);
    columns.Add({base::FormatGrouped(loss.events), CpuText(loss.cpu),
                 tracepoint.empty() ? "(not known)" : base::Printable(tracepoint)});
    elsewhere -= std::min(elsewhere, loss.events);
  }
  if (elsewhere > 0) columns.Add({base::FormatGrouped(elsewhere), "", "(elsewhere)"});
  absl::StrAppend(text, "  where events were lost:\n", columns.Text(kAnyWidth, "    "));
}

// Adds the settings of samples and stacks, if the session has any.
void PutSamples(std::string* text, const SessionStatus& session) {
  if (session.cpu_rate != 0) {
    PutFact(text, "samples", absl::StrCat(session.cpu_rate, " per second on each busy CPU"));
  }
  if (session.off_cpu) PutFact(text, "off-CPU", "the times in which threads have no CPU");
  PutList(text, "stacks", session.stacks);
}

// Adds the .NET providers that the session records, if any. Also adds how many processes have
// enabled them, and the reasons of the processes that have not.
void PutDotnet(std::string* text, const SessionStatus& session) {
  if (session.dotnet.empty()) return;
  PutFact(text, ".NET", base::Printable(absl::StrJoin(session.dotnet, " ")));
  PutFact(text, "",
          absl::StrCat("processes: ", session.dotnet_enabled, " enabled their events, ",
                       session.dotnet_not_enabled, " did not, ", session.dotnet_not_asked,
                       " were not asked"));
  for (const control::DotnetProcess& process : session.dotnet_processes) {
    if (process.reason.empty()) continue;
    absl::StrAppendFormat(text, "    %u (%s): %s\n", process.pid, base::Printable(process.name),
                          base::Printable(process.reason));
  }
}

void PutOutput(std::string* text, const SessionStatus& session) {
  PutFact(
      text, "output",
      session.kind == "flight" ? "a flight recorder, in memory" : base::Printable(session.kind));
  if (!session.current_file.empty()) PutFact(text, "writes", base::Printable(session.current_file));
  PutFact(
      text, "written",
      absl::StrCat(base::FormatBytes(session.bytes), ", ",
                   base::FormatBytes(static_cast<std::uint64_t>(session.bytes_per_second)), "/s"));
  PutFact(text, "on disk",
          absl::StrCat(session.files, session.files == 1 ? " file, " : " files, ",
                       base::FormatBytes(session.file_bytes)));
  if (session.kind != "flight") return;
  PutFact(text, "in memory", base::FormatBytes(session.memory_bytes));
  PutFact(
      text, "snapshots",
      absl::StrCat(base::FormatGrouped(session.snapshots), " written, ",
                   base::FormatGrouped(session.snapshots_refused), " refused by the rate limit"));
}

// Returns the names of the sessions that have enabled one of the listed tracepoints of the service;
// "-" if there are none.
std::string SessionNames(const control::ServiceStatus& service) {
  std::set<std::string> names;
  for (const control::ServiceStatus::Tracepoint& tracepoint : service.tracepoints) {
    names.insert(tracepoint.sessions.begin(), tracepoint.sessions.end());
  }
  return names.empty() ? "-" : base::Printable(absl::StrJoin(names, " "));
}

std::string CountTracepoints(const control::ServiceStatus& service) {
  return absl::StrCat(service.tracepoints.size(), service.has_more_tracepoints ? "+" : "");
}

// Returns the text for a reason in ServiceStatus::losses. If the reason is unknown, because
// nettraced is newer than this program, returns the reason itself.
std::string LossText(const std::string& reason) {
  if (reason == "ringFull") return "because its ring was full; use a larger ring_size";
  if (reason == "signalHandler") return "in signal handlers that interrupted a write";
  if (reason == "tooManyThreads") return "because too many of its threads write events; use fewer";
  return base::Printable(reason);
}

std::string TextOrDash(const std::string& text) {
  return text.empty() ? "-" : base::Printable(text);
}

void PutRefused(std::string* text, const control::ServicesStatus& services, absl::Time now) {
  if (services.refused.empty()) return;
  absl::StrAppend(text, "Refused connections of services:\n");
  for (const control::RefusedServices& refused : services.refused) {
    absl::StrAppendFormat(text, "  user %s, process %u: %s, the last one %s ago: %s; %s\n",
                          refused.uid ? absl::StrCat(*refused.uid) : "-", refused.pid,
                          base::Counted(refused.count, "connection"), AgeSince(refused.last, now),
                          base::Printable(refused.message), base::Printable(refused.remedy));
  }
}

}  // namespace

std::string ServicesTable(const control::ServicesStatus& services, absl::Time now,
                          std::size_t width) {
  std::string text;
  if (!services.services.empty()) {
    Columns columns({">PID", ">USER", "NAME", ">CONNECTED", ">RING", ">EVENTS", ">LOST",
                     ">TRACEPOINTS", "SESSIONS"});
    for (const control::ServiceStatus& service : services.services) {
      columns.Add({absl::StrCat(service.pid), absl::StrCat(service.uid),
                   Cut(TextOrDash(service.name), 32), AgeSince(service.connected, now),
                   base::FormatBytes(service.ring_bytes),
                   FormatCount(static_cast<double>(service.events)),
                   FormatCount(static_cast<double>(service.lost)), CountTracepoints(service),
                   SessionNames(service)});
    }
    text = columns.Text(width);
  } else if (services.socket.empty()) {
    absl::StrAppend(&text, "No service can connect: ", base::Printable(services.why_none), ".\n");
  } else {
    absl::StrAppend(&text, "No service is connected to ", base::Printable(services.socket), ".\n");
  }
  PutRefused(&text, services, now);
  return text;
}

std::string ServiceDetails(const control::ServiceStatus& service, absl::Time now) {
  std::string text = absl::StrCat("process ", service.pid, ": ", TextOrDash(service.name), "\n");
  PutFact(&text, "user", absl::StrCat(service.uid));
  PutFact(&text, "executable", TextOrDash(service.executable));
  PutFact(&text, "cgroup", TextOrDash(service.cgroup));
  PutFact(&text, "started", FormatLocal(service.started, now));
  PutFact(&text, "connected", FormatLocal(service.connected, now));
  PutFact(&text, "ring",
          absl::StrCat(
              base::FormatBytes(service.ring_bytes), ", ", base::Printable(service.transport),
              service.inline_reason.empty() ? "" : ": ", base::Printable(service.inline_reason)));
  PutFact(&text, "events", base::FormatGrouped(service.events));
  PutFact(&text, "lost", base::FormatGrouped(service.lost));
  for (const control::ServiceStatus::Loss& loss : service.losses) {
    absl::StrAppendFormat(&text, "    %s %s\n", base::FormatGrouped(loss.events),
                          LossText(loss.reason));
  }
  if (service.corrupt != 0) {
    PutFact(&text, "invalid", base::FormatGrouped(service.corrupt) + " records");
  }
  absl::StrAppend(&text, "  tracepoints:\n");
  Columns columns({"TRACEPOINT", "SESSIONS"});
  for (const control::ServiceStatus::Tracepoint& tracepoint : service.tracepoints) {
    columns.Add({base::Printable(tracepoint.name),
                 tracepoint.sessions.empty()
                     ? "-"
                     : base::Printable(absl::StrJoin(tracepoint.sessions, " "))});
  }
  if (service.has_more_tracepoints) columns.Add({"(more)", ""});
  return text + columns.Text(kAnyWidth, "    ");
}

std::string FormatAge(absl::Duration age) {
  const std::int64_t seconds = std::max<std::int64_t>(absl::ToInt64Seconds(age), 0);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  const std::int64_t minutes = seconds / 60;
  if (minutes < 60) return absl::StrFormat("%dm %02ds", minutes, seconds % 60);
  const std::int64_t hours = minutes / 60;
  if (hours < 24) return absl::StrFormat("%dh %02dm", hours, minutes % 60);
  return absl::StrFormat("%dd %02dh", hours / 24, hours % 24);
}

std::string ListText(std::span<const SessionStatus> sessions) {
  if (sessions.empty()) return "There are no sessions.\n";
  Columns columns({"SESSION", "KIND", "STATE"});
  for (const SessionStatus& session : sessions) {
    columns.Add({base::Printable(session.name), base::Printable(session.kind), State(session)});
  }
  return columns.Text(kAnyWidth);
}

std::string StatusTable(std::span<const SessionStatus> sessions, absl::Time now,
                        std::size_t width) {
  if (sessions.empty()) return "There are no sessions.\n";
  Columns columns({"SESSION", "STATE", ">SINCE", ">EVENTS", ">EVENTS/S", ">LOST", ">WRITTEN",
                   ">FILES", "LAST ERROR"});
  for (const SessionStatus& session : sessions) {
    columns.Add(
        {Cut(base::Printable(session.name), 32), State(session), AgeSince(session.state_since, now),
         FormatCount(static_cast<double>(session.events)), FormatCount(session.events_per_second),
         FormatCount(static_cast<double>(session.lost)), base::FormatBytes(session.bytes),
         FormatCount(static_cast<double>(session.files)),
         session.error.empty() ? "-" : base::Printable(session.error)});
  }
  return columns.Text(width);
}

std::string StatusDetails(const SessionStatus& session, absl::Time now) {
  std::string text = absl::StrCat(base::Printable(session.name), ": ", State(session), " since ",
                                  FormatLocal(session.state_since, now), "\n");
  PutFact(&text, "started", FormatLocal(session.started, now));
  PutFact(&text, "last error",
          session.error.empty() ? "none"
                                : absl::StrCat(base::Printable(session.error), ", ",
                                               FormatLocal(session.error_time, now)));
  PutFact(&text, "events",
          absl::StrCat(base::FormatGrouped(session.events), ", ",
                       FormatCount(session.events_per_second), "/s"));
  PutFact(&text, "lost",
          absl::StrCat(base::FormatGrouped(session.lost), " (",
                       base::FormatGrouped(session.dropped), " because of a slow output)"));
  if (session.discarded != 0) {
    PutFact(
        &text, "discarded",
        absl::StrCat(base::FormatGrouped(session.discarded),
                     " of the events, because they were not written before the session stopped"));
  }
  PutFact(&text, "undecoded", base::FormatGrouped(session.undecoded));
  PutFact(&text, "tracepoints", base::FormatGrouped(session.tracepoints));
  PutSamples(&text, session);
  PutDotnet(&text, session);
  PutFact(&text, "rings", absl::StrCat(base::FormatBytes(session.ring_bytes), " for each CPU"));
  PutFact(&text, "queue",
          absl::StrCat(base::FormatBytes(session.queue_bytes), " of ",
                       base::FormatBytes(session.queue_limit), " waiting for the output"));
  PutOutput(&text, session);
  PutLosses(&text, session);
  PutList(&text, "selectors without a tracepoint", session.unmatched);
  PutList(&text, "tracepoints left out", session.left_out);
  PutList(&text, "warnings", session.warnings);
  return text;
}

}  // namespace tools
