// `nettrace report`: writes an HTML page about one or more files.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/values.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/cli/value_options.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/reread_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/report/findings.h"
#include "tools/nettrace/report/flame_graph.h"
#include "tools/nettrace/report/report_model.h"
#include "tools/nettrace/report/report_page.h"
#include "tools/trace/account.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/process_names.h"

namespace tools {
namespace {

constexpr char kReportCommand[] = "report";
constexpr char kStopped[] = "stopped by a signal";
constexpr std::uint64_t kDefaultSize = std::uint64_t{10} << 20;
constexpr std::uint64_t kMinSize = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 30;

struct ReportArguments {
  std::vector<std::string> paths;  // files and directories
  std::string output;
  std::optional<mode_t> mode;
  trace::EventFilter filter;  // without --since and --until, which are in `window`
  report::Window window;
  std::uint64_t size = kDefaultSize;  // maximum size of the page, in bytes
};

// Returns the filter as options for the page, such as "--provider A --level 3", without --processes
// and --account; "" if it selects all events.
std::string ChosenBy(const trace::EventFilter& filter) {
  std::vector<std::string> options;
  const auto add = [&options](const char* option, const auto& values) {
    for (const auto& value : values) options.push_back(absl::StrCat(option, " ", value));
  };
  add("--provider", filter.providers);
  add("--event", filter.events);
  add("--pid", filter.pids);
  add("--tid", filter.tids);
  if (filter.level) options.push_back(absl::StrCat("--level ", *filter.level));
  if (filter.keywords != 0) options.push_back(absl::StrFormat("--keyword 0x%x", filter.keywords));
  return absl::StrJoin(options, " ");
}

// Returns the paths without the directories that they have in common.
std::vector<std::string> ShortPaths(const std::vector<std::string>& paths) {
  std::size_t common = paths.front().size();
  for (const std::string& path : paths) {
    const auto differ = std::mismatch(path.begin(), path.end(), paths.front().begin(),
                                      paths.front().begin() + static_cast<std::ptrdiff_t>(common));
    common = static_cast<std::size_t>(differ.first - path.begin());
  }
  const std::size_t folder = std::string_view(paths.front()).substr(0, common).rfind('/');
  std::vector<std::string> names;
  names.reserve(paths.size());
  for (const std::string& path : paths) {
    names.push_back(path.substr(paths.size() == 1 ? path.rfind('/') + 1 : folder + 1));
  }
  return names;
}

// Returns the title of a page about these files.
std::string TitleOf(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front() == "-" ? InputName("-") : names.front();
  if (names.size() == 2) return absl::StrCat(names[0], " and ", names[1]);
  return absl::StrCat(names.front(), " and ", names.size() - 1, " more files");
}

// Reads the input twice and collects the contents of the page.
class Report {
 public:
  Report(const ReportArguments& arguments, const RereadInput& input,
         std::unique_ptr<nettrace::Reader> reader)
      : arguments_(arguments),
        input_(input),
        stream_(std::move(reader), {.filter = &arguments.filter, .names = &processes_}),
        model_(stream_.reader(), arguments.window, report::LimitsFor(arguments.size)) {
    const std::vector<std::string> names = ShortPaths(input.files().paths());
    facts_.name = TitleOf(names);
    facts_.chosen = ChosenBy(arguments.filter);
    if (names.size() == 1) return;
    for (std::size_t i = 0; i < names.size(); ++i) {
      facts_.files.push_back(
          {names[i], static_cast<std::uint64_t>(input.facts()[i].st_size), /*damage=*/""});
    }
  }

  // Reads the whole input and counts its events. Fails if the temporary file for sorting fails, and
  // returns Cancelled after a signal.
  absl::Status Count();
  // Selects the events that the page shows individually. `again` reads the same input from its
  // start. Fails like Count, and if the page would be too large even without these events. Must be
  // called after Count.
  absl::Status Select(std::unique_ptr<nettrace::Reader> again);
  // Writes the page. Must be called after Select.
  absl::Status Write(nettrace::Sink* sink) {
    return report::WriteReportPage(reader(), model_, facts_, sink);
  }

  const nettrace::Reader& reader() const { return stream_.reader(); }
  const report::ReportModel& model() const { return model_; }
  // Returns the files that are damaged or not readable, with the errors. Must be called after
  // Count.
  const std::vector<InputFiles::Problem>& problems() const { return problems_; }

 private:
  // Counts an event as an event about processes, of the account, or of another kind. Must be called
  // even if the filter does not select the event.
  void OnEvent(const nettrace::Event& event);
  // Adds a selected event to the sums.
  void OnSelected(const nettrace::Event& event);
  void OnAccount(const nettrace::Event& event);
  void FindProblems();

  const ReportArguments& arguments_;
  const RereadInput& input_;
  trace::ProcessNames processes_;
  trace::EventStream stream_;
  report::ReportModel model_;
  report::StackSums stacks_;
  report::ReportFacts facts_;
  std::vector<InputFiles::Problem> problems_;
  std::uint64_t others_ = 0;    // events that the collector did not add
  bool has_intervals_ = false;  // whether an event was written or lost before the current interval
};

absl::Status Report::Count() {
  using Step = trace::EventStream::Step;
  for (Step step = stream_.Next(); step != Step::kEnd; step = stream_.Next()) {
    if (cli::IsStopRequested()) return absl::CancelledError(kStopped);
    if (step == Step::kLoss) {
      model_.OnLoss(*stream_.loss().capture_thread, stream_.loss().count, stream_.ticks());
    } else if (step == Step::kSequencePoint) {
      model_.OnRowsEnd();
      has_intervals_ = others_ != 0 || model_.lost() != 0;
    } else {
      OnEvent(stream_.event());
      if (step == Step::kEvent) OnSelected(stream_.event());
    }
  }
  RETURN_IF_ERROR(stream_.sort_status());
  model_.EndTotals();
  facts_.stacks = stacks_.Finish(report::LimitsFor(arguments_.size).stack_bytes);
  FindProblems();
  facts_.findings = report::FindFindings(reader(), model_);
  for (const report::Finding& finding : facts_.findings) {
    const bool is_part = finding.until - finding.from < model_.end() - model_.start();
    if (is_part) model_.AddInterest(finding.from, finding.until, !finding.only_errors);
  }
  return absl::OkStatus();
}

void Report::FindProblems() {
  const std::vector<trace::AccountEvent> unknown_ends = input_.UnknownEnds(reader());
  for (const trace::AccountEvent& unknown : unknown_ends) facts_.account.Add(unknown);
  facts_.is_complete = unknown_ends.empty();
  problems_ = input_.Problems(reader());
  const std::vector<std::string>& paths = input_.files().paths();
  for (const InputFiles::Problem& problem : problems_) {
    if (paths.size() == 1) {
      facts_.damage = std::string(problem.status.message());
      continue;
    }
    const auto path = std::find(paths.begin(), paths.end(), problem.path);
    facts_.files[static_cast<std::size_t>(path - paths.begin())].damage =
        std::string(problem.status.message());
  }
}

absl::Status Report::Select(std::unique_ptr<nettrace::Reader> again) {
  ASSIGN_OR_RETURN(const std::size_t bytes,
                   report::BytesForEvents(reader(), model_, facts_, arguments_.size));
  trace::ProcessNames processes;
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  trace::EventStream stream(std::move(again), {.filter = &arguments_.filter, .names = &processes});
  model_.BeginSelection(bytes, [&](const nettrace::Event& event) {
    return trace::EventToJson(stream.reader(), event, &payloads);
  });
  using Step = trace::EventStream::Step;
  for (Step step = stream.Next(); step != Step::kEnd; step = stream.Next()) {
    if (cli::IsStopRequested()) return absl::CancelledError(kStopped);
    if (step == Step::kSequencePoint) {
      payloads.ForgetRows();
      model_.OnRowsEnd();
    } else if (step == Step::kEvent || step == Step::kOtherEvent) {
      if (trace::DescribesProcess(stream.event())) model_.OnProcessNamed();
      if (step == Step::kEvent) model_.Select(stream.event(), processes);
    }
  }
  model_.EndSelection();
  return stream.sort_status();
}

void Report::OnEvent(const nettrace::Event& event) {
  stacks_.OnEvent(event);
  if (trace::DescribesProcess(event)) {
    ++facts_.process_events;
    model_.OnProcessNamed();
    model_.OnProcessChange(event, processes_);
  } else if (trace::IsAccount(event)) {
    OnAccount(event);
  } else {
    ++others_;
  }
}

void Report::OnSelected(const nettrace::Event& event) {
  const auto [kind, thread] = model_.OnEvent(event, processes_);
  stacks_.Add(event, reader().trace().pointer_size, kind, thread);
}

void Report::OnAccount(const nettrace::Event& event) {
  ++facts_.account_events;
  const std::optional<trace::AccountEvent> account = trace::ParseAccount(event);
  // If a section begins inside the file, the event that reports it counts earlier events of the
  // same file, which this page already shows.
  if (!account || (account->kind == trace::AccountEvent::Kind::kSectionBegan && has_intervals_))
    return;
  facts_.account.Add(*account);
}

// Reads the input twice and writes the page to the output path. Prints the error if one of these
// steps fails, and returns the exit code.
int WritePage(const ReportArguments& arguments, RereadInput* input, Report* run,
              Progress* progress) {
  OutputFile output(arguments.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink =
      output.Create(OutputAccess(input->facts(), arguments.mode));
  if (!sink.ok()) return FailToWrite(kReportCommand, arguments.output, sink.status());
  absl::Status status = run->Count();
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<nettrace::Reader>> again = input->ReadAgain();
    if (!again.ok()) {
      progress->Hide();
      PrintFilesError(kReportCommand, again.status());
      absl::FPrintF(stderr, "nettrace report: nothing was written\n");
      return cli::kExitFailed;
    }
    status = run->Select(*std::move(again));
  }
  progress->Hide();
  if (!status.ok()) return FailToWrite(kReportCommand, input->files().Name(), status);
  status = run->Write(sink->get());
  if (status.ok()) status = output.Keep();
  return status.ok() ? cli::kExitOk : FailToWrite(kReportCommand, arguments.output, status);
}

absl::StatusOr<std::unique_ptr<RereadInput>> OpenInputs(const ReportArguments& arguments,
                                                        Progress* progress) {
  ASSIGN_OR_RETURN(std::vector<std::string> paths, FindFiles(kReportCommand, arguments.paths));
  return RereadInput::Open(std::move(paths), progress);
}

// Returns whether the output path names one of the inputs.
bool IsInput(const RereadInput& input, const std::string& path) {
  struct stat output = {};
  if (stat(path.c_str(), &output) != 0) return false;
  return std::any_of(input.facts().begin(), input.facts().end(),
                     [&output](const struct stat& file) {
                       return file.st_dev == output.st_dev && file.st_ino == output.st_ino;
                     });
}

int RunReport(const ReportArguments& arguments) {
  if (IsRefusedOutput(kReportCommand, arguments.output, "a path")) return cli::kExitUsage;
  Progress progress(kReportCommand);
  absl::StatusOr<std::unique_ptr<RereadInput>> input = OpenInputs(arguments, &progress);
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      input.ok() ? (*input)->Read() : input.status();
  if (!reader.ok()) {
    PrintFilesError(kReportCommand, reader.status());
    return cli::kExitUnreadable;
  }
  if (IsInput(**input, arguments.output)) {
    absl::FPrintF(stderr, "nettrace report: %s: the output is the input; name another path\n",
                  InputName(arguments.output));
    return cli::kExitUsage;
  }
  if (const absl::Status status = CatchSignalsFor((*input)->facts().front()); !status.ok()) {
    PrintInputError(kReportCommand, (*input)->files().Name(), status);
    return cli::kExitFailed;
  }
  Report run(arguments, **input, *std::move(reader));
  const int exit_code = WritePage(arguments, input->get(), &run, &progress);
  if (exit_code != cli::kExitOk) return exit_code;
  const report::ReportModel& model = run.model();
  absl::FPrintF(stderr, "nettrace report: %s: %s, %d of them listed one by one, %d lost\n",
                InputName(arguments.output), base::Counted(model.all().events, "event"),
                model.single_events().count(), model.lost());
  const int damage = PrintProblems(kReportCommand, run.problems());
  if (damage == cli::kExitOk) return damage;
  absl::FPrintF(stderr, "nettrace report: the page shows everything before the damage\n");
  return damage;
}

}  // namespace

void AddReport(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "Write an HTML report of files");
  AddFilesOption(command, &arguments->paths);
  command->add_option("-o,--output", arguments->output, "HTML file to write, e.g. report.html")
      ->required();
  cli::AddSizeOption(
      command, "--size", kMaxSize,
      [arguments](std::uint64_t size) {
        if (size < kMinSize) {
          throw CLI::ValidationError(
              "--size", absl::StrCat("the size must be at least ", base::FormatSize(kMinSize)));
        }
        arguments->size = size;
      },
      "Maximum size of the page, e.g. 2M or 100M")
      ->default_str("10M");
  AddAddedEventOptions(command, &arguments->filter, "show", "; losses are always shown");
  AddModeOption(command, "that of the input", [arguments](mode_t mode) { arguments->mode = mode; });
  AddFilterOptions(command, &arguments->filter, /*has_to=*/false);
  command->footer(
      "The report is a single file and needs no network. It has totals and tables of all selected "
      "events, and single events with their fields, as many as --size permits: all events of rare "
      "kinds, errors, the slowest and a typical activity of each kind with all events inside of "
      "them, the events next to losses and findings, and an even sample of each other kind. If "
      "events have stacks, a flame graph shows "
      "their functions, in at most an eighth of the page. --since and --until limit the single "
      "events, "
      "but not the totals, and the page opens on this time. Several files, and the files of a "
      "directory, are read as one, in the order of time. They are read twice; a pipe is copied to "
      "a temporary file in TMPDIR. The report gets its name when it is complete, and replaces an "
      "existing file.\n\n"
      "Exit code: 0 written; 1 the report cannot be written, or the input is truncated or damaged, "
      "and the report shows everything before the damage; 2 the input cannot be read, or wrong "
      "usage.\n\n"
      "Examples:\n"
      "  nettrace report trace.nettrace -o report.html\n"
      "  nettrace report a.nettrace b.nettrace -o both.html\n"
      "  nettrace report --provider MyProvider trace.nettrace.zst -o mine.html\n"
      "  nettrace report --since 2026-11-21T10:00:00Z --until 2026-11-21T10:00:01Z \\\n"
      "      trace.nettrace -o second.html\n");
  command->callback([arguments, exit_code] {
    RefuseCompressedName(arguments->output);
    trace::EventFilter& filter = arguments->filter;
    arguments->window = {std::exchange(filter.from, {}), std::exchange(filter.to, {})};
    *exit_code =
        WithinMemory(kReportCommand, arguments->paths, [&] { return RunReport(*arguments); });
  });
}

}  // namespace tools
