// `nettrace report`: writes an HTML page about the events of a file.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
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
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/reread_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/report/findings.h"
#include "tools/nettrace/report/report_model.h"
#include "tools/nettrace/report/report_page.h"
#include "tools/trace/account.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/process_names.h"
#include "tools/trace/unknown_end.h"

namespace tools {
namespace {

constexpr char kReportCommand[] = "report";
constexpr char kStopped[] = "stopped by a signal";
constexpr std::uint64_t kDefaultSize = std::uint64_t{10} << 20;
constexpr std::uint64_t kMinSize = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 30;

struct ReportArguments {
  std::string input;
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

// Reads a file twice and collects the contents of its page.
class Report {
 public:
  Report(const ReportArguments& arguments, std::unique_ptr<nettrace::Reader> reader)
      : arguments_(arguments),
        stream_(std::move(reader), {.filter = &arguments.filter, .names = &processes_}),
        model_(stream_.reader(), arguments.window, report::LimitsFor(arguments.size)) {
    const std::size_t folder = arguments.input.rfind('/');
    facts_.name = arguments.input == "-" ? InputName("-") : arguments.input.substr(folder + 1);
    facts_.chosen = ChosenBy(arguments.filter);
  }

  // Reads the whole file, counts its events, and finds what stands out. Damage is no error:
  // reader().status() reports it. Fails if the temporary file for sorting fails, and returns
  // Cancelled after a signal. `file` is the result of fstat for the file.
  absl::Status Count(const struct stat& file);
  // Selects the events that the page shows individually. `again` reads the same file from its
  // start. Fails like Count, and if the page would be too large even without single events. Must be
  // called after Count.
  absl::Status Select(std::unique_ptr<nettrace::Reader> again);
  // Writes the page. Must be called after Select.
  absl::Status Write(nettrace::Sink* sink) {
    return report::WriteReportPage(reader(), model_, facts_, sink);
  }

  const nettrace::Reader& reader() const { return stream_.reader(); }
  const report::ReportModel& model() const { return model_; }

 private:
  // Counts an event by its origin, even if the filter does not select it.
  void OnEvent(const nettrace::Event& event);
  void OnAccount(const nettrace::Event& event);

  const ReportArguments& arguments_;
  trace::ProcessNames processes_;
  trace::EventStream stream_;
  report::ReportModel model_;
  report::ReportFacts facts_;
  std::uint64_t others_ = 0;    // events that the collector did not add
  bool has_intervals_ = false;  // whether an event was written or lost before the current interval
};

absl::Status Report::Count(const struct stat& file) {
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
      if (step == Step::kEvent) model_.OnEvent(stream_.event(), processes_);
    }
  }
  RETURN_IF_ERROR(stream_.sort_status());
  model_.EndTotals();
  if (const std::optional<trace::AccountEvent> unknown = trace::UnknownEnd(reader(), file)) {
    facts_.account.Add(*unknown);
  }
  facts_.damage = std::string(reader().status().message());
  facts_.findings = report::FindFindings(reader(), model_);
  for (const report::Finding& finding : facts_.findings) {
    const bool is_sampled = finding.until - finding.from < model_.end() - model_.start();
    if (is_sampled && !finding.only_errors) model_.AddInterest(finding.from, finding.until);
  }
  return absl::OkStatus();
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

void Report::OnAccount(const nettrace::Event& event) {
  ++facts_.account_events;
  const std::optional<trace::AccountEvent> account = trace::ParseAccount(event);
  // If a section begins inside the file, its event counts earlier events of the same file, which
  // this page already shows.
  if (!account || (account->kind == trace::AccountEvent::Kind::kSectionBegan && has_intervals_))
    return;
  facts_.account.Add(*account);
}

// Reads the file twice and writes the page to the output path. Prints the error if one of these
// steps fails, and returns the exit code.
int WritePage(const ReportArguments& arguments, const struct stat& file, RereadInput* input,
              Report* run, Progress* progress) {
  OutputFile output(arguments.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink =
      output.Create(OutputAccess({&file, 1}, arguments.mode));
  if (!sink.ok()) return FailToWrite(kReportCommand, arguments.output, sink.status());
  absl::Status status = run->Count(file);
  if (status.ok()) {
    absl::StatusOr<std::unique_ptr<nettrace::Reader>> again = input->ReadAgain();
    status = again.ok() ? run->Select(*std::move(again)) : again.status();
  }
  progress->Hide();
  if (!status.ok()) return FailToWrite(kReportCommand, arguments.input, status);
  status = run->Write(sink->get());
  if (status.ok()) status = output.Keep();
  return status.ok() ? cli::kExitOk : FailToWrite(kReportCommand, arguments.output, status);
}

int RunReport(const ReportArguments& arguments) {
  if (IsRefusedOutput(kReportCommand, arguments.output, "a path")) return cli::kExitUsage;
  Progress progress(kReportCommand);
  struct stat file = {};
  absl::StatusOr<std::unique_ptr<RereadInput>> input =
      RereadInput::Open(arguments.input, &progress, &file);
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      input.ok() ? (*input)->Read() : input.status();
  if (!reader.ok()) {
    PrintInputError(kReportCommand, arguments.input, reader.status());
    return cli::kExitUnreadable;
  }
  struct stat output = {};
  if (stat(arguments.output.c_str(), &output) == 0 && output.st_dev == file.st_dev &&
      output.st_ino == file.st_ino) {
    absl::FPrintF(stderr, "nettrace report: %s: the output is the input; name another path\n",
                  InputName(arguments.output));
    return cli::kExitUsage;
  }
  if (const absl::Status status = CatchSignalsFor(file); !status.ok()) {
    PrintInputError(kReportCommand, arguments.input, status);
    return cli::kExitFailed;
  }
  Report run(arguments, *std::move(reader));
  const int exit_code = WritePage(arguments, file, input->get(), &run, &progress);
  if (exit_code != cli::kExitOk) return exit_code;
  const report::ReportModel& model = run.model();
  absl::FPrintF(stderr, "nettrace report: %s: %s, %d of them in the page, %d lost\n",
                InputName(arguments.output), base::Counted(model.all().events, "event"),
                model.single_events().count(), model.lost());
  if (run.reader().status().ok()) return cli::kExitOk;
  PrintInputError(kReportCommand, arguments.input, run.reader().status());
  absl::FPrintF(stderr, "nettrace report: the page shows everything before the damage\n");
  return cli::kExitDamaged;
}

}  // namespace

void AddReport(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ReportArguments>();
  CLI::App* command = app.add_subcommand("report", "Write an HTML report of a file");
  command->add_option("file", arguments->input, "File to read; - is standard input")->required();
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
      "kinds, errors, the slowest activities with all events inside of them, the events next to "
      "losses, and an even sample of each other kind. --since and --until limit the single events, "
      "but not the totals, and the page opens on this time. The file is read twice; a pipe is "
      "copied to a temporary file in "
      "TMPDIR. The report gets its name when it is complete, and replaces an existing file.\n\n"
      "Exit code: 0 written; 1 the report cannot be written, or the input is cut or damaged, and "
      "the report shows everything before the damage; 2 the input cannot be read, or wrong "
      "usage.\n\n"
      "Examples:\n"
      "  nettrace report trace.nettrace -o report.html\n"
      "  nettrace report --provider MyProvider trace.nettrace.zst -o mine.html\n"
      "  nettrace report --since 2026-11-21T10:00:00Z --until 2026-11-21T10:00:01Z \\\n"
      "      trace.nettrace -o second.html\n");
  command->callback([arguments, exit_code] {
    RefuseCompressedName(arguments->output);
    trace::EventFilter& filter = arguments->filter;
    arguments->window = {std::exchange(filter.from, {}), std::exchange(filter.to, {})};
    *exit_code =
        WithinMemory(kReportCommand, {arguments->input}, [&] { return RunReport(*arguments); });
  });
}

}  // namespace tools
