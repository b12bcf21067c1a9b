// `nettrace info`: shows a summary of each file.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/unknown_end.h"

namespace tools {
namespace {

// Counts blocks by the name of their kind. All unknown kinds have one name and are counted
// together.
std::vector<std::pair<std::string, std::uint64_t>> CountBlocks(
    const nettrace::Reader::Stats& stats) {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  std::uint64_t unknown = 0;
  const std::string unknown_name = nettrace::BlockKindName(255);
  for (std::size_t kind = 0; kind < stats.blocks.size(); ++kind) {
    if (stats.blocks[kind] == 0) continue;
    const std::string name = nettrace::BlockKindName(static_cast<std::uint8_t>(kind));
    if (name == unknown_name) {
      unknown += stats.blocks[kind];
    } else {
      counts.emplace_back(name, stats.blocks[kind]);
    }
  }
  if (unknown != 0) counts.emplace_back(unknown_name, unknown);
  return counts;
}

// Counts events. Events that the collector added are counted separately: those that describe
// processes, and those of its account of losses.
struct Events {
  std::uint64_t of_processes = 0;
  std::uint64_t of_account = 0;
  trace::AccountSummary account;
  std::uint64_t left_out = 0;                    // tracepoints that the account reports as left out
  std::uint64_t others = 0;                      // events that the collector did not add
  std::optional<std::uint64_t> first_timestamp;  // earliest time of the other events, in ticks
  std::optional<std::uint64_t> last_timestamp;   // latest time of the other events, in ticks

  void Count(const nettrace::Event& event) {
    if (trace::DescribesProcess(event)) {
      ++of_processes;
      return;
    }
    if (trace::IsAccount(event)) {
      ++of_account;
      const std::optional<trace::AccountEvent> parsed = trace::ParseAccount(event);
      if (!parsed || BeginsWithin(*parsed)) return;
      account.Add(*parsed);
      if (parsed->kind == trace::AccountEvent::Kind::kTracepointLeftOut) ++left_out;
      return;
    }
    ++others;
    first_timestamp = std::min(first_timestamp.value_or(event.timestamp), event.timestamp);
    last_timestamp = std::max(last_timestamp.value_or(0), event.timestamp);
  }

  // Must be called at each sequence point. `lost` is the number of events lost up to that point.
  void EndInterval(std::uint64_t lost) { has_intervals_ = others != 0 || lost != 0; }

 private:
  // Returns whether `event` reports a section that begins inside the file, for example after the
  // output was full. Such an event counts the events of earlier sections. These events are in the
  // same file, so the caller ignores the event. Compares intervals instead of times, because an
  // event of the account may have an earlier time than events before it in the interval.
  bool BeginsWithin(const trace::AccountEvent& event) const {
    return event.kind == trace::AccountEvent::Kind::kSectionBegan && has_intervals_;
  }

  bool has_intervals_ = false;  // whether an event was written or lost before the current interval
};

void PrintJson(const std::string& path, const nettrace::Reader& reader, const Events& events) {
  const nettrace::Reader::Stats& stats = reader.stats();
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutText(&json, "file", path);
  base::PutNumber(&json, "version", reader.major_version());
  base::PutNumber(&json, "events", events.others);
  base::PutNumber(&json, "processEvents", events.of_processes);
  base::PutNumber(&json, "collectorEvents", events.of_account);
  base::PutNumber(&json, "lost", stats.lost);
  trace::PutAccount(events.account, &json);
  base::PutNumber(&json, "dropped", events.account.dropped());
  base::PutNumber(&json, "tracepointsLeftOut", events.left_out);
  json.Key("continues");
  if (const auto& section = events.account.section()) {
    json.StartObject();
    base::PutNumber(&json, "section", section->number);
    base::PutNumber(&json, "eventsBefore", section->events_before);
    base::PutNumber(&json, "lostBefore", section->lost_before);
    json.EndObject();
  } else {
    json.Null();
  }
  json.Key("unknown");
  if (const auto& unknown = events.account.unknown()) {
    json.StartObject();
    trace::PutAccountTime(&json, "since", unknown->since);
    trace::PutAccountTime(&json, "until", unknown->until);
    json.EndObject();
  } else {
    json.Null();
  }
  base::PutNumber(&json, "sequencePoints", stats.sequence_points);
  base::PutNumber(&json, "threads", stats.threads);
  base::PutNumber(&json, "metadata", stats.metadata);
  base::PutNumber(&json, "firstTimestamp", events.first_timestamp);
  base::PutNumber(&json, "lastTimestamp", events.last_timestamp);
  json.Key("blocks");
  json.StartObject();
  for (const auto& [name, count] : CountBlocks(stats)) {
    base::PutNumber(&json, name.c_str(), count);
  }
  json.EndObject();
  const nettrace::TraceInfo& trace = reader.trace();
  base::PutText(&json, "syncTime", base::FormatUtc(trace.sync_time));
  json.Key("syncTicks");
  base::PutInteger(&json, trace.sync_ticks);
  json.Key("ticksPerSecond");
  base::PutInteger(&json, trace.ticks_per_second);
  json.Key("pointerSize");
  json.Int(trace.pointer_size);
  json.Key("keyValues");
  json.StartObject();
  for (const auto& [key, value] : trace.key_values) {
    base::PutKey(&json, key);
    base::PutString(&json, value);
  }
  json.EndObject();
  json.Key("complete");
  json.Bool(stats.complete);
  json.Key("traceeventRefusal");
  if (reader.traceevent_refusal().empty()) {
    json.Null();
  } else {
    base::PutString(&json, reader.traceevent_refusal());
  }
  json.EndObject();
  base::PrintJsonLine(buffer);
}

std::string TimeText(const nettrace::Reader& reader, const std::optional<std::uint64_t>& ticks) {
  return ticks ? base::FormatUtc(reader.TimeOf(*ticks)) : "-";
}

void PrintRow(const char* name, const std::string& value) {
  absl::PrintF("%-16s %s\n", name, base::Printable(value));
}

// Returns " on CPU N" for a message, or "" if the events came through a ring in user space, which
// has no CPU.
std::string OnCpu(std::uint32_t cpu) {
  return cpu == trace::kRingCpu ? "" : absl::StrCat(" on CPU ", cpu);
}

// Prints what the account reports: the largest losses, services with unknown losses, dropped
// events, earlier sections, the last changes of CPUs, how often samples were throttled, and the
// numbers of stacks that were not unwound and of tracepoints that were left out.
void PrintAccount(const Events& events) {
  constexpr std::size_t kShown = 10;
  const trace::AccountSummary& account = events.account;
  std::vector<std::pair<trace::AccountSummary::Key, std::uint64_t>> losses(account.losses().begin(),
                                                                           account.losses().end());
  std::stable_sort(losses.begin(), losses.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::uint64_t left = account.lost();
  for (std::size_t i = 0; i < std::min(losses.size(), kShown); ++i) {
    const auto& [key, count] = losses[i];
    PrintRow("lost of", absl::StrCat(key.second.empty() ? "unknown tracepoints" : key.second,
                                     OnCpu(key.first), ": ", count));
    left -= count;
  }
  if (left != 0) PrintRow("lost of", absl::StrCat("others: ", left));
  const std::vector<trace::AccountEvent>& services = account.unknown_services();
  for (std::size_t i = 0; i < std::min(services.size(), kShown); ++i) {
    PrintRow("losses unknown", trace::UnknownServiceText(services[i]));
  }
  if (const std::uint64_t more =
          services.size() - std::min(services.size(), kShown) + account.unknown_services_left_out();
      more != 0) {
    PrintRow("losses unknown", absl::StrCat(more, " more"));
  }
  if (account.dropped() != 0) {
    PrintRow("dropped",
             absl::StrCat(account.dropped(), " of the lost events: ", account.dropped_reason()));
  }
  if (const auto& section = account.section()) {
    PrintRow("continues",
             absl::StrCat("earlier sections with ", section->events_before, " events and ",
                          section->lost_before, " lost; this file begins with section ",
                          section->number, ", counted from 0"));
  }
  const auto& changes = account.cpu_changes();
  const std::size_t skipped = changes.size() - std::min(changes.size(), kShown);
  for (std::size_t i = skipped; i < changes.size(); ++i) {
    const trace::AccountEvent& change = changes[i];
    const bool is_online = change.kind == trace::AccountEvent::Kind::kCpuOnline;
    PrintRow("CPU change",
             absl::StrCat("CPU ", change.cpu,
                          is_online ? " came online; not recorded from " : " went offline between ",
                          trace::AccountTimeText(change.since), is_online ? " to " : " and ",
                          trace::AccountTimeText(change.until), change.reason.empty() ? "" : ": ",
                          change.reason));
  }
  if (const std::uint64_t more = skipped + account.cpu_changes_left_out(); more != 0) {
    PrintRow("CPU change", absl::StrCat(more, " more"));
  }
  if (account.throttled() != 0) {
    PrintRow("throttled",
             absl::StrCat("the kernel stopped the samples of a CPU ",
                          base::Counted(account.throttled(), "time"), ", until its next tick"));
  }
  if (account.stacks_skipped() != 0) {
    PrintRow("stacks not unwound", absl::StrCat(base::Counted(account.stacks_skipped(), "event"),
                                                " with a stack that lacks callers"));
  }
  if (events.left_out != 0) PrintRow("left out", base::Counted(events.left_out, "tracepoint"));
}

void PrintTable(const nettrace::Reader& reader, const Events& events) {
  const nettrace::Reader::Stats& stats = reader.stats();
  const auto& row = PrintRow;
  row("version", absl::StrCat(reader.major_version(), ".", reader.minor_version()));
  row("events", absl::StrCat(events.others));
  row("process events", absl::StrCat(events.of_processes));
  row("collector events", absl::StrCat(events.of_account));
  const auto& unknown = events.account.unknown();
  row("lost",
      absl::StrCat(stats.lost, unknown ? "; losses are unknown " + trace::UnknownText(*unknown)
                                       : std::string()));
  PrintAccount(events);
  row("first event", TimeText(reader, events.first_timestamp));
  row("last event", TimeText(reader, events.last_timestamp));
  row("metadata rows", absl::StrCat(stats.metadata));
  row("threads", absl::StrCat(stats.threads));
  row("sequence points", absl::StrCat(stats.sequence_points));
  row("bytes", absl::StrCat(stats.bytes));
  std::string blocks;
  for (const auto& [name, count] : CountBlocks(stats)) {
    absl::StrAppend(&blocks, blocks.empty() ? "" : ", ", count, " ", name);
  }
  row("blocks", blocks);
  const nettrace::TraceInfo& trace = reader.trace();
  row("clock", absl::StrCat(trace.ticks_per_second, " ticks a second, ", trace.sync_ticks, " at ",
                            base::FormatUtc(trace.sync_time)));
  row("pointer size", absl::StrCat(trace.pointer_size));
  for (const auto& [key, value] : trace.key_values) {
    row("key", absl::StrCat(key, " = ", value));
  }
  if (!reader.traceevent_refusal().empty()) row("warning", base::Printable(RefusalText(reader)));
  row("complete", stats.complete ? "yes" : "no: the end is missing; all complete blocks were read");
}

int Info(const std::string& path, bool json) {
  Progress progress("info");
  struct stat file = {};
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> opened = OpenInput(path, &progress, &file);
  if (!opened.ok()) {
    PrintInputError("info", path, opened.status());
    return cli::kExitUnreadable;
  }
  trace::EventStream stream(*std::move(opened), {.file_order = true});
  const nettrace::Reader& reader = stream.reader();
  Events events;
  using Step = trace::EventStream::Step;
  for (Step step = stream.Next(); step != Step::kEnd; step = stream.Next()) {
    if (step == Step::kEvent) events.Count(stream.event());
    if (step == Step::kSequencePoint) events.EndInterval(reader.stats().lost);
  }
  progress.Hide();
  if (const std::optional<trace::AccountEvent> unknown = trace::UnknownEnd(reader, file)) {
    events.account.Add(*unknown);
  }
  if (json) {
    PrintJson(path, reader, events);
  } else {
    PrintTable(reader, events);
  }
  const int exit_code = FinishOutput("info", cli::kExitOk);
  if (reader.status().ok()) return exit_code;
  PrintInputError("info", path, reader.status());
  return cli::kExitDamaged;
}

// Prints a summary of each file. Returns the largest exit code.
int InfoOfAll(const std::vector<std::string>& arguments, bool json) {
  const absl::StatusOr<std::vector<std::string>> paths = FindFiles("info", arguments);
  if (!paths.ok()) {
    PrintFilesError("info", paths.status());
    return cli::kExitUnreadable;
  }
  int exit_code = cli::kExitOk;
  for (const std::string& path : *paths) {
    if (paths->size() > 1 && !json) {
      if (path != paths->front()) std::putchar('\n');
      PrintRow("file", InputName(path));
    }
    exit_code = std::max(exit_code, Info(path, json));
  }
  return exit_code;
}

}  // namespace

void AddInfo(CLI::App& app, int* exit_code) {
  struct InfoArguments {
    std::vector<std::string> paths;
    bool json = false;
  };
  auto arguments = std::make_shared<InfoArguments>();
  CLI::App* info = app.add_subcommand("info", "Show a summary of a NetTrace file");
  info->add_flag("--json", arguments->json, "Print a JSON object for each file");
  AddFilesOption(info, &arguments->paths);
  info->footer(
      "Threads and metadata are counted as rows of the file. CPUs that captured events also have "
      "rows among the threads.\n\n"
      "Exit code: 0 all files are complete; 1 one is truncated or damaged, and the numbers cover "
      "the part before the damage; 2 one cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace info trace.nettrace\n"
      "  nettrace info a.nettrace b.nettrace\n"
      "  nettrace info --json trace.nettrace | jq .lost\n");
  info->callback([arguments, exit_code] {
    *exit_code = WithinMemory("info", arguments->paths,
                              [&] { return InfoOfAll(arguments->paths, arguments->json); });
  });
}

}  // namespace tools
