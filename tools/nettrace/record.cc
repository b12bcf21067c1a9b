// `nettrace record`: records events to a file.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/json_text.h"
#include "tools/base/progress_line.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/child_process.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/output_sink.h"
#include "tools/cli/signals.h"
#include "tools/cli/space_wait.h"
#include "tools/cli/value_options.h"
#include "tools/collector/dotnet/dotnet_sessions.h"
#include "tools/collector/journal/journal_options.h"
#include "tools/collector/journal/journal_reader.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/session/attach_plan.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/dotnet_recording.h"
#include "tools/collector/session/journal_feed.h"
#include "tools/collector/session/selector.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/symbolize/run.h"
#include "tools/output/atomic_file.h"
#include "tools/output/output_queue.h"
#include "tools/output/zstd_sink.h"
#include "tools/trace/account_summary.h"

namespace tools {
namespace {

constexpr std::size_t kMaxRingSize = std::size_t{1} << 33;  // bytes

constexpr char kNoValue[] = "true";  // text that CLI11 stores for an option without a value

constexpr char kStopWhenFull[] = "stop";
constexpr char kWaitWhenFull[] = "wait";

// Path of the output if there is no -o, and the path to which a file of an earlier recording at
// kDefaultOutput is renamed.
constexpr char kDefaultOutput[] = "trace.nettrace";
constexpr char kPreviousOutput[] = "trace.1.nettrace";

struct RecordArguments {
  std::string output = kDefaultOutput;
  bool keeps_previous = false;  // whether an existing `output` is renamed to kPreviousOutput
  mode_t mode = output::kPrivateMode;
  bool compress = false;
  std::vector<std::string> selectors;
  std::vector<std::string> filters;
  // For each filter, the number of selectors that precede it on the command line. The filter
  // applies to the last of these selectors.
  std::vector<std::size_t> selectors_before;
  // Values of --stacks, and for each the number of selectors that precede it.
  std::vector<std::string> stacks;
  std::vector<std::size_t> selectors_before_stacks;
  std::string cpu_rate;  // "": no samples of CPU time
  bool off_cpu = false;
  std::string dotnet;  // providers of .NET; "": none
  bool dotnet_perf_maps = false;
  std::string journal;  // units, or kNoValue; "": no entries of the journal
  std::string journal_fields;
  std::string journal_folder;
  std::vector<std::string> pids;
  std::vector<std::string> tids;
  std::vector<std::string> cgroups;
  absl::Duration duration = absl::InfiniteDuration();
  std::size_t ring_size = 1 << 20;
  bool has_ring_size = false;  // whether the user has set ring_size
  bool identity = false;
  bool follow = false;
  std::string when_full = kStopWhenFull;
  bool no_symbols = false;  // whether stacks get no names of functions of user space
  bool json = false;
  std::vector<std::string> command;
};

// Renames the regular file `path`, if there is one, to kPreviousOutput. Replaces a file of that
// name.
absl::Status KeepPrevious(const std::string& path) {
  struct stat facts = {};
  if (lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return absl::OkStatus();
  if (std::rename(path.c_str(), kPreviousOutput) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat(path, ": cannot be kept as ", kPreviousOutput),
                             "name another file with -o");
  }
  absl::FPrintF(stderr, "nettrace record: the previous recording was renamed to %s\n",
                kPreviousOutput);
  return absl::OkStatus();
}

// The output of the recording, optionally compressed.
class Output {
 public:
  // Starts the compressing thread if the output is compressed.
  absl::Status Prepare(const RecordArguments& arguments) {
    if (!arguments.compress && !IsCompressedName(arguments.output)) return absl::OkStatus();
    auto destination = std::make_unique<LateSink>();
    destination_ = destination.get();
    compressed_bytes_ = std::make_shared<std::atomic<std::uint64_t>>(0);
    ASSIGN_OR_RETURN(auto queue, output::CompressOnThread(std::move(destination),
                                                          {.written = compressed_bytes_}));
    thread_ = queue->thread_id();
    compressing_ = std::make_unique<output::QueueSink>(std::move(queue));
    return absl::OkStatus();
  }
  bool is_compressed() const { return compressed_bytes_ != nullptr; }
  // Returns the id of the compressing thread; no value if the output is not compressed.
  std::optional<pid_t> thread() const { return thread_; }

  // Opens the file. If `space` is not null, writes wait while the disk is full. Must be called
  // once, after Prepare.
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> Open(const RecordArguments& arguments,
                                                       cli::SpaceWait* space) {
    std::function<bool(int)> retry;
    if (space != nullptr) retry = [space](int error) { return space->Wait(error); };
    if (arguments.keeps_previous) RETURN_IF_ERROR(KeepPrevious(arguments.output));
    auto sink = cli::OpenOutputSink(arguments.output, arguments.mode, std::move(retry));
    if (!sink.ok() || compressing_ == nullptr) return sink;
    destination_->sink = *std::move(sink);
    return std::move(compressing_);
  }

  // Returns the size of the file in bytes. `bytes` is the number of bytes that the Writer has
  // written, before compression.
  std::uint64_t BytesOf(std::uint64_t bytes) const {
    if (replaced_bytes_) return *replaced_bytes_;
    return compressed_bytes_ == nullptr ? bytes : compressed_bytes_->load();
  }
  // Must be called when another file, of `bytes` bytes, has replaced the output.
  void ReplaceBytes(std::uint64_t bytes) { replaced_bytes_ = bytes; }

 private:
  // A sink whose destination is set later, but before its first use. The compressing thread exists
  // before the file is open.
  struct LateSink : nettrace::Sink {
    absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
      return sink->Append(bytes, taken);
    }
    absl::Status Sync() override { return sink->Sync(); }
    std::unique_ptr<nettrace::Sink> sink;
  };

  std::unique_ptr<nettrace::Sink> compressing_;
  LateSink* destination_ = nullptr;
  std::optional<pid_t> thread_;
  std::shared_ptr<std::atomic<std::uint64_t>> compressed_bytes_;
  std::optional<std::uint64_t> replaced_bytes_;
};

int Fail(const absl::Status& status, int exit_code = cli::kExitFailed) {
  absl::FPrintF(stderr, "nettrace record: %s\n", base::Printable(std::string(status.message())));
  return exit_code;
}

std::string OutputName(const RecordArguments& arguments) {
  return arguments.output == cli::kStandardOutput ? "standard output"
                                                  : base::Printable(arguments.output);
}

// Prints that the disk is full (`waiting`), or has space again. Overwrites a progress line.
void PrintWaiting(const RecordArguments& arguments, bool waiting) {
  absl::FPrintF(stderr, "%snettrace record: %s: %s\n",
                base::IsScreen(STDERR_FILENO) ? "\r\x1b[K" : "", OutputName(arguments),
                waiting ? "the disk is full: waiting for space; events that the rings cannot hold "
                          "are lost; free space on the disk"
                        : "there is space again: continuing");
}

// Reports that a running recording failed, most likely because its sink failed. The written part of
// the file stays, and is readable up to its last complete block.
int FailHalfway(const absl::Status& status, const Output& output,
                const collector::SessionSummary& summary) {
  return Fail(absl::Status(
      status.code(),
      absl::StrCat(
          // Events in the last, incomplete chunk of a compressed file may also be readable.
          status.message(), "; ", output.is_compressed() ? "at least " : "", summary.events_written,
          " events are in the file, ", output.is_compressed() ? "at most " : "",
          summary.events_missing, " more are not (both counts include ",
          summary.process_events + summary.collector_events,
          " events that describe processes and losses); 'nettrace repair' completes the file")));
}

// Warns of tracepoints that patterns select but that are not recorded. Skips the first `shown`
// tracepoints, which an earlier call has printed. Returns the current number of these tracepoints.
std::size_t PrintSkipped(const collector::SkippedTracepoints& tracepoints, std::size_t shown) {
  const std::vector<std::string>& reasons = tracepoints.reasons();
  for (std::size_t i = shown; i < reasons.size(); ++i) {
    absl::FPrintF(stderr, "nettrace record: left out: %s\n", base::Printable(reasons[i]));
  }
  const std::size_t count = tracepoints.count();
  const std::size_t not_named = count - std::max(shown, reasons.size());
  if (not_named != 0) {
    absl::FPrintF(stderr, "nettrace record: left out: %s\n",
                  base::Counted(not_named, "more tracepoint"));
  }
  return count;
}

// Prints warnings about recorded tracepoints. Skips the first `shown` warnings, which an earlier
// call has printed. Returns the number of all warnings.
std::size_t PrintWarnings(const std::vector<std::string>& warnings, std::size_t shown) {
  for (std::size_t i = shown; i < warnings.size(); ++i) {
    absl::FPrintF(stderr, "nettrace record: warning: %s\n", base::Printable(warnings[i]));
  }
  return warnings.size();
}

// Prints a warning about connections of services that were refused since the last call, at most one
// for each user and reason. Overwrites a progress line.
void PrintRefusals(const collector::Capture& capture, collector::RingRefusalNews* news) {
  if (capture.ring_server() == nullptr) return;
  for (const std::string& message : news->Take(capture.ring_server()->refusals())) {
    absl::FPrintF(stderr, "%snettrace record: warning: %s\n",
                  base::IsScreen(STDERR_FILENO) ? "\r\x1b[K" : "", base::Printable(message));
  }
}

// Prints which CPUs came online. The recording lacks the events of such a CPU from before its
// capture began.
void PrintCpuChanges(const trace::AccountSummary& account) {
  constexpr std::size_t kMaxShown = 20;
  std::uint64_t count = 0;
  for (const trace::AccountEvent& change : account.cpu_changes()) {
    if (change.kind != trace::AccountEvent::Kind::kCpuOnline || ++count > kMaxShown) continue;
    const std::string since = trace::AccountTimeText(change.since);
    if (!change.reason.empty()) {
      absl::FPrintF(stderr, "  CPU %d came online at or after %s and could not be recorded: %s\n",
                    change.cpu, since, base::Printable(change.reason));
    } else {
      absl::FPrintF(stderr,
                    "  CPU %d came online; its events between %s and %s were not recorded\n",
                    change.cpu, since, trace::AccountTimeText(change.until));
    }
  }
  if (count > kMaxShown) {
    absl::FPrintF(stderr, "  further times that a CPU came online: %d; see cpuChanges of --json\n",
                  count - kMaxShown);
  }
}

// Prints how many .NET processes enabled their events, did not, wrote perf maps, and were not asked
// to enable them because too many others ran.
void PrintDotnet(const RecordArguments& arguments, const collector::DotnetReport& report) {
  std::uint64_t others = report.not_enabled;
  std::uint64_t by_stream = 0;
  std::uint64_t with_maps = 0;
  for (const collector::DotnetProcess& process : report.processes) {
    if (!process.reason.empty() && !process.given_up &&
        process.state != collector::DotnetProcess::State::kEnabled) {
      ++others;
    }
    by_stream += process.by_stream ? 1 : 0;
    with_maps += process.has_perf_map ? 1 : 0;
  }
  if (report.enabled + others + report.not_asked == 0) {
    absl::FPrintF(stderr, "  no .NET process was found\n");
    return;
  }
  absl::FPrintF(stderr, "  .NET processes: %d enabled their events%s, %d did not\n", report.enabled,
                by_stream == 0 ? "" : absl::StrFormat(" (%d by EventPipe)", by_stream), others);
  if (arguments.dotnet_perf_maps) {
    absl::FPrintF(stderr, "  .NET processes that wrote perf maps: %d\n", with_maps);
  }
  if (report.not_asked != 0) {
    absl::FPrintF(
        stderr,
        "  .NET processes from which no events were requested, because too many others ran: %d\n",
        report.not_asked);
  }
}

void PutDotnet(const collector::DotnetReport& report, base::JsonWriter* json) {
  json->StartArray();
  for (const collector::DotnetProcess& process : report.processes) {
    json->StartObject();
    base::PutNumber(json, "pid", process.pid);
    json->Key("name");
    base::PutString(json, process.name);
    json->Key("state");
    base::PutString(json, collector::DotnetStateName(process.state));
    json->Key("reason");
    base::PutString(json, process.reason);
    json->Key("by");
    base::PutString(json, process.by_stream ? "eventPipe" : "userEvents");
    json->Key("perfMap");
    json->Bool(process.has_perf_map);
    json->Key("ended");
    json->Bool(process.ended);
    json->EndObject();
  }
  json->EndArray();
}

void PrintJson(const collector::SessionSummary& summary, const Output& output,
               const collector::DotnetRecording* dotnet) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutNumber(&json, "events", summary.events);
  base::PutNumber(&json, "lost", summary.lost);
  base::PutNumber(&json, "hits", summary.hits);
  base::PutNumber(&json, "undecoded", summary.undecoded);
  base::PutNumber(&json, "late", summary.late);
  base::PutNumber(&json, "processEvents", summary.process_events);
  base::PutNumber(&json, "collectorEvents", summary.collector_events);
  trace::PutAccount(summary.account, &json);
  base::PutNumber(&json, "bytes", output.BytesOf(summary.bytes));
  base::PutNumber(&json, "uncompressedBytes", summary.bytes);
  base::PutNumber(&json, "threads", summary.threads);
  base::PutNumber(&json, "tracepoints", summary.tracepoints);
  base::PutNumber(&json, "sequencePoints", summary.sequence_points);
  if (summary.watches_registrations) {
    json.Key("watchesRegistrations");
    base::PutString(&json, *summary.watches_registrations ? "kprobe" : "polling");
  }
  json.Key("leftOut");
  json.StartArray();
  for (const std::string& tracepoint : summary.skipped_tracepoints.names())
    base::PutString(&json, tracepoint);
  json.EndArray();
  base::PutNumber(&json, "leftOutCount", summary.skipped_tracepoints.count());
  json.Key("unmatched");
  json.StartArray();
  for (const std::string& selector : summary.unmatched) base::PutString(&json, selector);
  json.EndArray();
  if (dotnet != nullptr) {
    json.Key("dotnet");
    PutDotnet(dotnet->report(), &json);
    base::PutNumber(&json, "dotnetNotAsked", dotnet->report().not_asked);
  }
  json.EndObject();
  base::PrintJsonLine(buffer);
}

// Prints why events were lost, and the three tracepoints that lost most. `waited` is the time in
// which the disk was full.
void PrintLosses(const collector::SessionSummary& summary, absl::Duration waited) {
  std::map<std::string, std::uint64_t> by_tracepoint;
  for (const auto& [key, count] : summary.account.losses()) by_tracepoint[key.second] += count;
  std::uint64_t of_streams = 0;
  std::uint64_t of_services = 0;
  for (const auto& [tracepoint, count] : by_tracepoint) {
    if (absl::StartsWith(tracepoint, "dotnet:")) of_streams += count;
    if (absl::StartsWith(tracepoint, "ring:")) of_services += count;
  }
  std::uint64_t of_journal = 0;
  for (const std::string_view name : {collector::kDeletedEntries, collector::kSuppressedMessages}) {
    if (const auto found = by_tracepoint.find(std::string(name)); found != by_tracepoint.end()) {
      of_journal += found->second;
    }
  }
  if (of_journal != 0) {
    absl::FPrintF(stderr,
                  "  lost: journald dropped messages of services that wrote too many, or deleted "
                  "entries before they were read; raise RateLimitBurst=, SystemMaxUse= and "
                  "RuntimeMaxUse= in journald.conf\n");
  }
  if (of_streams != 0) {
    absl::FPrintF(stderr,
                  "  lost: the runtimes of .NET processes wrote events faster than they were read; "
                  "select fewer events with --dotnet\n");
  }
  const std::uint64_t of_rings = summary.lost - of_streams - of_journal;
  if (waited == absl::ZeroDuration()) {
    if (of_services != 0) {
      absl::FPrintF(stderr,
                    "  lost: the memory of services was full; use a larger --ring-size, and set "
                    "a larger EVENTHEADER_RING_SIZE for the services\n");
    }
    if (of_rings != of_services) {
      absl::FPrintF(stderr, "  lost: the rings were full; use a larger --ring-size\n");
    }
  } else if (of_rings != 0) {
    absl::FPrintF(
        stderr,
        "  lost: the rings were full, because the disk was full for %s; free space, or use "
        "another disk\n",
        absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1))));
  }
  std::vector<std::pair<std::uint64_t, std::string>> counts;
  for (const auto& [tracepoint, count] : by_tracepoint) {
    if (!tracepoint.empty()) counts.emplace_back(count, tracepoint);
  }
  std::sort(counts.rbegin(), counts.rend());
  constexpr std::size_t kShown = 3;
  if (counts.size() > kShown) counts.resize(kShown);
  for (const auto& [count, tracepoint] : counts) {
    absl::FPrintF(stderr, "  lost: %s of tracepoint %s\n", base::Counted(count, "event"),
                  base::Printable(tracepoint));
  }
}

// Prints the first services whose losses are unknown.
void PrintUnknownServices(const trace::AccountSummary& account) {
  constexpr std::size_t kShown = 3;
  const std::vector<trace::AccountEvent>& services = account.unknown_services();
  for (std::size_t i = 0; i < std::min(services.size(), kShown); ++i) {
    absl::FPrintF(stderr, "  losses are unknown: %s\n",
                  base::Printable(trace::UnknownServiceText(services[i])));
  }
  if (services.size() > kShown) {
    absl::FPrintF(stderr, "  the losses of %u more services are not known\n",
                  services.size() - kShown + account.unknown_services_left_out());
  }
}

void PrintSummary(const RecordArguments& arguments, const collector::SessionSummary& summary,
                  const Output& output, absl::Duration waited,
                  const collector::DotnetRecording* dotnet) {
  if (arguments.json) {
    PrintJson(summary, output, dotnet);
    std::fflush(stdout);
  }
  absl::FPrintF(stderr, "%s: %s, %u lost, %s, %s, %s\n", OutputName(arguments),
                base::Counted(summary.events, "event"), summary.lost,
                base::Counted(output.BytesOf(summary.bytes), "byte"),
                base::Counted(summary.threads, "thread"),
                base::Counted(summary.tracepoints, "tracepoint"));
  if (summary.lost != 0) PrintLosses(summary, waited);
  PrintUnknownServices(summary.account);
  if (summary.undecoded != 0) {
    absl::FPrintF(stderr,
                  "  %s could not be decoded; the file has the bytes and the reason in events "
                  "named '%s'\n",
                  base::Counted(summary.undecoded, "event"),
                  collector::SampleConverter::kUndecoded);
  }
  if (summary.late != 0) {
    absl::FPrintF(stderr,
                  "  %s arrived late; each has a later time in the file, and its own time in the "
                  "label '%s'\n",
                  base::Counted(summary.late, "event"), collector::TraceWriter::kLateLabel);
  }
  if (summary.account.throttled() != 0) {
    absl::FPrintF(stderr,
                  "  the kernel stopped the samples of a CPU %s, for up to 10 ms each; use a lower "
                  "rate\n",
                  base::Counted(summary.account.throttled(), "time"));
  }
  if (summary.account.stacks_skipped() != 0) {
    absl::FPrintF(stderr,
                  "  the stacks of %s are cut, because stacks came faster than the collector could "
                  "unwind them; use a larger --ring-size or a lower rate\n",
                  base::Counted(summary.account.stacks_skipped(), "event"));
  }
  if (summary.hits && *summary.hits != summary.events + summary.lost) {
    absl::FPrintF(stderr,
                  "  the kernel counted %s, which differs from events + lost; please report this "
                  "bug\n",
                  base::Counted(*summary.hits, "event"));
  }
  PrintCpuChanges(summary.account);
  if (dotnet != nullptr) PrintDotnet(arguments, dotnet->report());
  for (const std::string& selector : summary.unmatched) {
    absl::FPrintF(stderr, "  selector '%s' matched no tracepoint that can be recorded\n",
                  base::Printable(selector));
  }
}

// Applies each --stacks to the selector directly before it. If --stacks precedes all selectors,
// applies it to the samples of --cpu and --off-cpu.
absl::Status ReadStacks(const RecordArguments& arguments, collector::SessionOptions* session) {
  const bool has_samples = !arguments.cpu_rate.empty() || arguments.off_cpu;
  for (std::size_t i = 0; i < arguments.stacks.size(); ++i) {
    const std::string& text = arguments.stacks[i];
    const std::size_t before = arguments.selectors_before_stacks[i];
    if (before == 0 && !has_samples) {
      return absl::InvalidArgumentError(
          "--stacks must follow the -e that it applies to; before the first -e, it applies to "
          "--cpu and --off-cpu");
    }
    absl::StatusOr<collector::StackOptions> stacks =
        collector::ParseStacks(text == kNoValue ? "" : text, collector::KernelMaxFrames());
    if (!stacks.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--stacks: ", stacks.status().message()));
    }
    if (before != 0) {
      session->selectors[before - 1].stacks = *stacks;
      continue;
    }
    session->sample_stacks = *stacks;
    if (!stacks->any()) session->sample_stacks.user = session->sample_stacks.kernel = true;
  }
  return absl::OkStatus();
}

// Returns the maximum number of bytes of the user stack that are copied with an event, to unwind it
// without frame pointers; 0: no stacks are copied.
std::size_t FindCopiedBytes(const collector::SessionOptions& session) {
  std::uint16_t bytes = 0;
  if (session.cpu_rate != 0 || session.off_cpu) bytes = session.sample_stacks.copied_bytes;
  for (const collector::Selector& selector : session.selectors) {
    if (selector.stacks) bytes = std::max(bytes, selector.stacks->copied_bytes);
  }
  return bytes;
}

// Parses the selectors, and adds each filter to the selector before it.
absl::Status ReadSelectors(const RecordArguments& arguments,
                           std::vector<collector::Selector>* selectors) {
  for (const std::string& text : arguments.selectors) {
    ASSIGN_OR_RETURN(collector::Selector selector, collector::ParseSelector(text));
    selectors->push_back(std::move(selector));
  }
  for (std::size_t i = 0; i < arguments.filters.size(); ++i) {
    const std::string& filter = arguments.filters[i];
    if (arguments.selectors_before[i] == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--filter '", filter, "': --filter must follow the -e that it applies to"));
    }
    if (filter.find_first_not_of(' ') == std::string::npos) {
      return absl::InvalidArgumentError(
          "--filter: the expression is empty; example: 'common_pid == 123'");
    }
    collector::Selector& selector = (*selectors)[arguments.selectors_before[i] - 1];
    selector.filter = collector::BothFilters(selector.filter, filter);
  }
  return absl::OkStatus();
}

// Sets the samples that the session has besides its selectors.
absl::Status ReadSamples(const RecordArguments& arguments, collector::SessionOptions* session) {
  if (!arguments.cpu_rate.empty()) {
    const absl::StatusOr<std::uint32_t> rate = collector::ParseSampleRate(
        arguments.cpu_rate == kNoValue ? collector::kUsualSampleRate : arguments.cpu_rate,
        collector::KernelMaxSampleRate());
    if (!rate.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("--cpu: ", rate.status().message()));
    }
    session->cpu_rate = *rate;
  }
  session->off_cpu = arguments.off_cpu;
  if (session->selectors.empty() && session->cpu_rate == 0 && !session->off_cpu &&
      arguments.dotnet.empty() && arguments.journal.empty()) {
    return absl::InvalidArgumentError(
        "nothing to record: select events with -e, or use --dotnet, --journal, --cpu or --off-cpu");
  }
  return absl::OkStatus();
}

absl::Status ReadIds(const std::vector<std::string>& texts, const char* option,
                     std::vector<pid_t>* ids) {
  if (texts.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<pid_t>> parsed = collector::ParseIds(absl::StrJoin(texts, ","));
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(option, " ", parsed.status().message()));
  }
  *ids = *std::move(parsed);
  return absl::OkStatus();
}

// Converts the command line into options of the collector. Fails if an argument is invalid.
absl::Status ReadArguments(const RecordArguments& arguments, collector::CaptureOptions* capture,
                           collector::SessionOptions* session, absl::Duration* duration) {
  RETURN_IF_ERROR(ReadSelectors(arguments, &session->selectors));
  RETURN_IF_ERROR(ReadStacks(arguments, session));
  RETURN_IF_ERROR(ReadSamples(arguments, session));
  capture->tracepoints = !arguments.selectors.empty();
  capture->stacks = !arguments.stacks.empty() || session->cpu_rate != 0 || session->off_cpu;
  capture->copied_bytes = FindCopiedBytes(*session);
  collector::TargetSelection& target = capture->target;
  RETURN_IF_ERROR(ReadIds(arguments.pids, "--pid", &target.pids));
  RETURN_IF_ERROR(ReadIds(arguments.tids, "--tid", &target.tids));
  target.cgroups = arguments.cgroups;
  *duration = arguments.duration;
  if (arguments.json && arguments.output == cli::kStandardOutput) {
    return absl::InvalidArgumentError("--json: standard output is used for the trace; use -o FILE");
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // Default size of each CPU's ring, in bytes, if events contain copies of stacks.
  constexpr std::size_t kRingOfCopies = std::size_t{4} << 20;
  const bool is_larger = capture->copied_bytes != 0 && !arguments.has_ring_size;
  const std::size_t ring_size = is_larger ? kRingOfCopies : arguments.ring_size;
  capture->ring_size = std::bit_ceil(std::max(ring_size, page));
  capture->identity = arguments.identity;
  target.follow = arguments.follow;
  return absl::OkStatus();
}

// Records until `end`, until a signal arrives, or until `*command` or all recorded processes or
// threads have ended. If `*command` has ended, sets `*exit_code` to its exit code and resets
// `*command`.
absl::Status RecordUntilEnd(collector::Capture* capture, const collector::Session& session,
                            const Output& output, const std::optional<cli::SpaceWait>& space,
                            absl::Time end, std::optional<cli::ChildProcess>* command,
                            int* exit_code) {
  base::ProgressLine progress;
  collector::RingRefusalNews refusals;
  const bool ends = end != absl::InfiniteFuture();
  for (bool stop = false; !stop;) {
    const absl::Duration left = ends ? end - absl::Now() : absl::InfiniteDuration();
    RETURN_IF_ERROR(capture->Poll(left));
    PrintRefusals(*capture, &refusals);
    if (!session.status().ok()) return session.status();
    progress.Update([&] {
      const nettrace::Writer::Stats& stats = session.stats();
      return absl::StrFormat("nettrace record: %d events, %d lost, %d bytes%s", session.events(),
                             stats.lost, output.BytesOf(stats.bytes),
                             space && space->is_waiting() ? ", waiting for space" : "");
    });
    const bool is_woken = cli::ClearWake();
    stop = cli::IsStopRequested() || (ends && absl::Now() >= end) || capture->HasTargetEnded();
    if (!is_woken || !*command) continue;
    if (const std::optional<int> code = (*command)->Reap()) {
      *exit_code = *code;
      command->reset();
      stop = true;
    }
  }
  return absl::OkStatus();
}

// A folder with a socket for the services that the command starts. Services find the socket by the
// environment variable EVENTHEADER_SOCKET, which the command inherits. The destructor deletes the
// folder.
class OwnSocket {
 public:
  OwnSocket() = default;
  OwnSocket(const OwnSocket&) = delete;
  OwnSocket& operator=(const OwnSocket&) = delete;
  ~OwnSocket() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  // Creates the folder, and sets EVENTHEADER_SOCKET to the path of the socket. Returns the path.
  absl::StatusOr<std::string> Make() {
    std::string folder = "/tmp/nettrace-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      return base::ErrnoStatus(errno, "cannot create a directory in /tmp for the services' socket",
                               "set EVENTHEADER_SOCKET to a path in another directory");
    }
    folder_ = folder;
    // Other users can use the socket, because the command may run services as other users.
    if (chmod(folder.c_str(), 0711) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat(folder, ": the mode cannot be set"),
                               "set EVENTHEADER_SOCKET to a path in another directory");
    }
    const std::string path = folder + "/events";
    setenv("EVENTHEADER_SOCKET", path.c_str(), 1);
    return path;
  }

 private:
  std::string folder_;
};

// Makes the capture accept services that pass their events through rings in user space, and sets
// `*why` to the reason for rings. Does so only if the selectors may match tracepoints of services,
// and services use rings instead of user_events. EVENTHEADER_SOCKET states the socket. If this
// variable is not set, uses the default socket of this user. If the user has no default socket, or
// another collector listens on a default socket, creates a folder for a socket in `own`, for the
// services that the command starts. Fails in these two cases if there is no command.
absl::Status AddRings(const RecordArguments& arguments,
                      const std::vector<collector::Selector>& selectors,
                      collector::CaptureOptions* capture, OwnSocket* own, std::string* why) {
  if (std::none_of(selectors.begin(), selectors.end(), collector::MayMatchServices)) {
    return absl::OkStatus();
  }
  *why = collector::WhyServicesUseRings();
  if (why->empty()) return absl::OkStatus();
  capture->rings.emplace();
  const absl::StatusOr<std::string> path = collector::RingSocketPath();
  if (!collector::ChosenRingSocket().empty()) {
    ASSIGN_OR_RETURN(capture->rings->path, path);
  } else if (const std::string other = collector::FindCollector();
             !arguments.command.empty() && (!other.empty() || !path.ok())) {
    if (!other.empty()) {
      absl::FPrintF(stderr,
                    "nettrace record: another collector receives events at %s; recording only the "
                    "services that the command starts\n",
                    base::Printable(other));
    }
    ASSIGN_OR_RETURN(capture->rings->path, own->Make());
  } else {
    // Fails if there is another collector, because services would connect to it and not to this
    // process, even if its socket is not that of this user.
    if (!other.empty()) return collector::TakenError(other);
    RETURN_IF_ERROR(path.status());
    collector::PlaceInSubfolder(*path, &*capture->rings);
  }
  // Services of all users may connect to root's collector.
  if (geteuid() == 0) capture->rings->mode = 0666;
  constexpr std::size_t kMinRing = std::size_t{64} << 10;
  capture->rings->bytes_of_client = std::max(arguments.ring_size, kMinRing);
  return absl::OkStatus();
}

// If services pass events through rings, prints the reason and the socket. Also prints the error if
// the kernel's events are not available.
void PrintRings(const collector::Capture& capture, const std::string& why) {
  const collector::RingServer* const server = capture.ring_server();
  if (server != nullptr) {
    absl::FPrintF(stderr, "nettrace record: %s: services use shared memory, and connect to %s\n",
                  why, base::Printable(server->path()));
  }
  if (!capture.kernel_status().ok()) {
    absl::FPrintF(stderr, "nettrace record: the kernel's events are not available: %s\n",
                  base::Printable(std::string(capture.kernel_status().message())));
  }
}

// If events of .NET come only through EventPipe streams, prints the reason.
void PrintStreams(const collector::DotnetRecording& dotnet) {
  if (dotnet.why_only_streams().ok()) return;
  absl::FPrintF(stderr,
                "nettrace record: --dotnet: events come through EventPipe, without stacks: %s\n",
                base::Printable(std::string(dotnet.why_only_streams().message())));
}

// Adds the names of functions of user space to the stacks of the complete file, and prints what was
// found. The file stays as it is if this fails, or if a signal ends the process.
void AddSymbols(const RecordArguments& arguments, Output* output,
                collector::SessionSummary* summary) {
  struct stat facts = {};
  if (arguments.no_symbols ||
      (arguments.stacks.empty() && arguments.cpu_rate.empty() && !arguments.off_cpu) ||
      summary->events == 0 || lstat(arguments.output.c_str(), &facts) != 0 ||
      !S_ISREG(facts.st_mode)) {
    return;
  }
  constexpr char kLater[] = "'nettrace symbolize' adds them";
  constexpr off_t kMaxSize = off_t{1} << 30;
  if (facts.st_size > kMaxSize) {
    absl::FPrintF(
        stderr,
        "nettrace record: the file is larger than 1 GiB, so no names of functions were added; %s\n",
        kLater);
    return;
  }
  const cli::DefaultSignals signals;
  symbolize::Options options;
  options.command = "record";
  options.input = options.output = arguments.output;
  options.mode = facts.st_mode & 07777;
  options.has_prompt_files_only = true;
  const absl::StatusOr<symbolize::Summary> symbols = symbolize::Run(options);
  if (!symbols.ok()) {
    absl::FPrintF(stderr, "nettrace record: warning: no names of functions were added: %s; %s\n",
                  base::Printable(std::string(symbols.status().message())), kLater);
    return;
  }
  if (symbols->bytes != 0) {
    output->ReplaceBytes(symbols->bytes);
    summary->bytes = symbols->uncompressed_bytes;
  }
  constexpr std::size_t kShown = 5;
  symbolize::PrintSummary(*symbols, kShown, "nettrace record: names of ");
}

// Prepares the recording of .NET if the arguments include --dotnet.
absl::Status PrepareDotnet(const RecordArguments& arguments, collector::CaptureOptions* capture,
                           collector::SessionOptions* session,
                           std::optional<collector::DotnetRecording>* dotnet) {
  if (arguments.dotnet.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      std::vector<collector::DotnetProvider> providers,
      collector::ParseDotnetProviders(arguments.dotnet == kNoValue ? "" : arguments.dotnet));
  dotnet->emplace().AllowStreams();
  if (arguments.dotnet_perf_maps) (*dotnet)->RequestPerfMaps();
  absl::Status prepared = (*dotnet)->Prepare(std::move(providers), "--dotnet=", capture, session);
  if (prepared.ok()) return prepared;
  return absl::Status(prepared.code(), absl::StrCat("--dotnet: ", prepared.message()));
}

// Opens the journal if the arguments include --journal.
absl::Status PrepareJournal(const RecordArguments& arguments, collector::CaptureOptions* capture,
                            collector::SessionOptions* session) {
  if (arguments.journal.empty()) return absl::OkStatus();
  collector::JournalOptions options;
  if (arguments.journal != kNoValue) {
    ASSIGN_OR_RETURN(options.units, collector::ParseJournalUnits(arguments.journal));
  }
  if (!arguments.journal_fields.empty()) {
    ASSIGN_OR_RETURN(options.fields, collector::ParseJournalFields(arguments.journal_fields));
  }
  options.folder = arguments.journal_folder;
  options.pids = capture->target.pids;
  ASSIGN_OR_RETURN(session->journal, collector::JournalReader::Open(options));
  capture->streams = true;
  capture->attachments.own_threads.push_back(session->journal->thread_id());
  if (!session->journal->reads_all()) {
    absl::FPrintF(stderr,
                  "nettrace record: --journal: entries of other users are missing; run as root, or "
                  "as a user in the group systemd-journal\n");
  }
  return absl::OkStatus();
}

// Prepares the .NET processes and the journal as sources of events.
absl::Status PrepareSources(const RecordArguments& arguments, collector::CaptureOptions* capture,
                            collector::SessionOptions* session,
                            std::optional<collector::DotnetRecording>* dotnet) {
  RETURN_IF_ERROR(PrepareDotnet(arguments, capture, session, dotnet));
  absl::Status journal = PrepareJournal(arguments, capture, session);
  if (journal.ok()) return journal;
  return absl::Status(journal.code(), absl::StrCat("--journal: ", journal.message()));
}

int Record(const RecordArguments& arguments) {
  collector::CaptureOptions capture_options;
  collector::SessionOptions session_options;
  absl::Duration duration;
  if (absl::Status status = ReadArguments(arguments, &capture_options, &session_options, &duration);
      !status.ok()) {
    return Fail(status, cli::kExitUsage);
  }
  if (absl::Status status = cli::CatchSignals(); !status.ok()) return Fail(status);
  Output output;
  if (absl::Status status = output.Prepare(arguments); !status.ok()) return Fail(status);
  if (output.thread()) capture_options.attachments.own_threads.push_back(*output.thread());
  std::optional<cli::SpaceWait> space;
  if (arguments.when_full == kWaitWhenFull) {
    space.emplace([&arguments](bool waiting) { PrintWaiting(arguments, waiting); });
  }
  std::optional<collector::DotnetRecording> dotnet;
  if (absl::Status status = PrepareSources(arguments, &capture_options, &session_options, &dotnet);
      !status.ok()) {
    return Fail(status, absl::IsInvalidArgument(status) ? cli::kExitUsage : cli::kExitFailed);
  }
  OwnSocket own_socket;
  std::string why_rings;
  if (absl::Status status =
          AddRings(arguments, session_options.selectors, &capture_options, &own_socket, &why_rings);
      !status.ok()) {
    return Fail(status);
  }
  const auto capture = collector::Capture::Open(capture_options);
  if (!capture.ok()) return Fail(capture.status());
  const auto started = (*capture)->StartSession(
      session_options, [&] { return output.Open(arguments, space ? &*space : nullptr); });
  if (!started.ok()) return Fail(started.status());
  if (dotnet) PrintStreams(*dotnet);
  collector::Session* const session = *started;
  if (dotnet) dotnet->Begin(session);
  PrintRings(**capture, why_rings);
  if (absl::Status status = (*capture)->WakeOn(cli::WakeDescriptor()); !status.ok()) {
    return Fail(status);
  }
  const collector::SessionSummary begun = session->Summarize();
  const std::size_t skipped = PrintSkipped(begun.skipped_tracepoints, 0);
  const std::size_t warnings = PrintWarnings(begun.warnings, 0);
  const absl::Time end = absl::Now() + duration;
  if (space) space->EndAt(end);

  int exit_code = cli::kExitOk;
  absl::Status recorded;
  std::optional<cli::ChildProcess> command;
  if (!arguments.command.empty()) {
    absl::StatusOr<cli::ChildProcess> child =
        cli::ChildProcess::Start(arguments.command, arguments.output == cli::kStandardOutput);
    if (child.ok()) {
      command = *std::move(child);
      if (space) space->EndWith(command->pid());
    } else {
      exit_code = Fail(child.status(), cli::kExitNoCommand);
    }
  }
  if (exit_code == cli::kExitOk) {
    recorded = RecordUntilEnd(capture->get(), *session, output, space, end, &command, &exit_code);
  }
  if (space) space->End();
  // Ends the command if it still runs, because it was started only for the recording.
  if (command) command->Terminate();
  if (!recorded.ok()) return FailHalfway(recorded, output, session->Summarize());
  if (absl::Status status = (*capture)->EndStreams(session); !status.ok()) {
    return FailHalfway(status, output, session->Summarize());
  }
  if (dotnet) dotnet->WaitForEnds();
  const bool dotnet_enabled = !dotnet || dotnet->Report(session);
  collector::SessionSummary summary = (*capture)->StopSession(session);
  if (!summary.status.ok()) return FailHalfway(summary.status, output, summary);
  AddSymbols(arguments, &output, &summary);
  PrintSkipped(summary.skipped_tracepoints, skipped);
  PrintWarnings(summary.warnings, warnings);
  PrintSummary(arguments, summary, output, space ? space->waited() : absl::ZeroDuration(),
               dotnet ? &*dotnet : nullptr);
  if (const collector::RingServer* const server = (*capture)->ring_server();
      server != nullptr && server->refused() != 0) {
    absl::FPrintF(stderr, "  %s of services refused\n",
                  base::Counted(server->refused(), "connection"));
  }
  // The kernel needs time to release each tracepoint. Without this message, the process would seem
  // to hang.
  constexpr std::uint64_t kMany = 100;
  if (summary.tracepoints >= kMany) {
    absl::FPrintF(stderr,
                  "  the file is complete; waiting for the kernel to release the tracepoints\n");
  }
  const bool unmatched = !summary.unmatched.empty() || !dotnet_enabled;
  return exit_code == cli::kExitOk && unmatched ? cli::kExitUnmatched : exit_code;
}

void AddTargets(CLI::App* record, RecordArguments* arguments) {
  CLI::Option* pid = record->add_option(
      "--pid", arguments->pids, "Record only events of these processes, e.g. 12 or 12,34,56");
  CLI::Option* tid =
      record->add_option("--tid", arguments->tids, "Record only events of these threads");
  CLI::Option* cgroup = record->add_option(
      "--cgroup", arguments->cgroups,
      "Record only events of this cgroup (version 2) and the cgroups below it: a path, or a name "
      "such as nginx.service; may be repeated");
  record
      ->add_flag("--follow", arguments->follow,
                 "Wait for the cgroup to appear, and follow it when it is recreated (needs "
                 "exactly one --cgroup)")
      ->needs(cgroup);
  for (CLI::Option* option : {pid, tid, cgroup}) option->allow_extra_args(false);
  pid->excludes(tid, cgroup);
  tid->excludes(cgroup);
}

}  // namespace

void AddRecord(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* record = app.add_subcommand("record", "Record events to a NetTrace file");
  CLI::Option* const output = record->add_option(
      "-o,--output", arguments->output,
      "File to write; - is standard output. The default is trace.nettrace; a file of this name is "
      "kept as trace.1.nettrace");
  AddModeOption(record, "0600", [arguments](mode_t mode) { arguments->mode = mode; });
  record->add_flag("--compress", arguments->compress,
                   "Compress with zstd; the default if the file name ends with .zst");
  CLI::Option* selectors =
      record
          ->add_option(
              "-e,--event", arguments->selectors,
              "Events to record: Provider[:level[:any keyword[:all keywords]]], Provider_LxKy, "
              "system:event or a pattern such as 'sched:*'; may be repeated")
          ->allow_extra_args(false);
  CLI::Option* filters =
      record
          ->add_option(
              "--filter", arguments->filters,
              "Record only events of the preceding -e for which this expression is true, in the "
              "kernel's filter language, e.g. 'prev_prio < 100'")
          ->allow_extra_args(false);
  CLI::Option* stacks = record->add_flag(
      "--stacks", arguments->stacks,
      "Record the stack of each event of the preceding -e: --stacks=user, =kernel or =both; =max=N "
      "or =user,max=N limits the frames. The default is user for events of services, and both for "
      "others. =dwarf unwinds code without frame pointers. Before all -e, it applies to --cpu and "
      "--off-cpu");
  record->add_flag("--cpu", arguments->cpu_rate,
                   "Sample the CPU time of threads, with stacks: 997 times per second on each CPU, "
                   "or at the rate of --cpu=RATE, e.g. --cpu=99Hz");
  record->add_flag("--off-cpu", arguments->off_cpu,
                   "Record the times in which threads have no CPU, with the stacks of where they "
                   "were switched out");
  CLI::Option* dotnet =
      record->add_flag("--dotnet", arguments->dotnet,
                       "Record events of .NET processes: those of the runtime, or of "
                       "--dotnet=PROVIDER[:level[:keywords]],..., e.g. --dotnet=gc,MyCompany-Shop");
  CLI::Option* journal =
      record->add_flag("--journal", arguments->journal,
                       "Record entries of the journal of systemd: all, or those of the units of "
                       "--journal=UNIT,...");
  CLI::Option* fields =
      record->add_option("--journal-fields", arguments->journal_fields,
                         "Further fields of entries to record, e.g. MESSAGE_ID,_UID");
  CLI::Option* folder =
      record->add_option("--journal-dir", arguments->journal_folder,
                         "Directory of the journal's files, e.g. those of the host");
  for (CLI::Option* option : {fields, folder}) option->needs(journal);
  record
      ->add_flag("--dotnet-perf-maps", arguments->dotnet_perf_maps,
                 "Also make the processes of --dotnet write perf maps, so that stacks have "
                 "the names of methods")
      ->needs(dotnet);
  record->add_flag("--no-symbols", arguments->no_symbols,
                   "Do not add the names of user functions to stacks when the recording ends "
                   "(see symbolize)");
  AddTargets(record, arguments.get());
  for (CLI::Option* option : {dotnet, journal}) option->excludes("--tid");
  cli::AddDurationOption(
      record, "--duration", absl::Nanoseconds(1),
      [arguments](absl::Duration duration) { arguments->duration = duration; },
      "Stop after this time, e.g. 500ms, 10s, 1h30m");
  cli::AddSizeOption(
      record, "--ring-size", kMaxRingSize,
      [arguments](std::uint64_t size) {
        arguments->ring_size = size;
        arguments->has_ring_size = true;
      },
      "Size of each CPU's ring, e.g. 64K or 4M; rounded up to a power of two")
      ->default_str("1M");
  record->add_flag("--identity", arguments->identity,
                   "Also record the executable, cgroup, systemd unit and container of each "
                   "event's thread");
  record
      ->add_option("--when-full", arguments->when_full,
                   "If the disk is full, stop with an error or wait for space")
      ->check(CLI::IsMember({kStopWhenFull, kWaitWhenFull}))
      ->capture_default_str();
  record->add_flag("--json", arguments->json, "Also print the summary as JSON to standard output");
  record->add_option("command", arguments->command,
                     "Command to start, after --; the recording ends when it ends");
  record->footer(
      "The recording stops after --duration, when the command ends, when all processes of --pid or "
      "threads of --tid have ended, or on SIGINT, SIGTERM, SIGQUIT or SIGHUP. If the command is "
      "still running then, it receives SIGTERM. If the program that reads the output does not "
      "read, "
      "a second SIGINT ends the recording without waiting for it.\n\n"
      "Exit code: that of the command if the recording ended because the command ended, else 0; 1 "
      "the recording failed; 2 wrong usage; 3 instead of 0 if a selector matched no tracepoint "
      "that can be recorded, or no process could enable the events of --dotnet; 127 the command "
      "cannot be started.\n\n"
      "Examples:\n"
      "  nettrace record -e MyCompany_MyService --duration 10s\n"
      "  nettrace record -o trace.nettrace \\\n"
      "      -e MyCompany_MyService:warning:0x3 -- ./service\n"
      "  nettrace record -o trace.nettrace -e MyCompany_MyService_L4K1\n"
      "  nettrace record -o trace.nettrace -e 'sched:*' -e 'irq:*_entry' -- make\n"
      "  nettrace record -o trace.nettrace -e 'syscalls:sys_enter_*' --pid 1234\n"
      "  nettrace record -o trace.nettrace -e 'MyCompany_*' --cgroup nginx.service\n"
      "  nettrace record -o trace.nettrace \\\n"
      "      -e sched:sched_switch --filter 'prev_prio < 100'\n"
      "  nettrace record -e MyCompany_MyService:warning --stacks -- ./service\n"
      "  nettrace record --cpu --duration 10s\n"
      "  nettrace record --journal=nginx.service -e 'MyCompany_*'\n"
      "  nettrace record --cpu --off-cpu --pid 1234 --duration 10s\n"
      "  nettrace record -o - -e sched:sched_switch --duration 1s | nettrace dump -\n");
  record->callback([arguments, exit_code, record, selectors, filters, stacks, output] {
    arguments->keeps_previous = output->count() == 0;
    std::size_t before = 0;
    for (const CLI::Option* option : record->parse_order()) {
      if (option == selectors) ++before;
      if (option == filters) arguments->selectors_before.push_back(before);
      if (option == stacks) arguments->selectors_before_stacks.push_back(before);
    }
    *exit_code = WithinMemory(
        "record", {arguments->output}, [&] { return Record(*arguments); }, cli::kExitFailed);
  });
}

}  // namespace tools
