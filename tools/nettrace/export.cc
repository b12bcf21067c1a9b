// `nettrace export`: writes the events of files in a format of other tools.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/unique_fd.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/export/csv/csv_exporter.h"
#include "tools/nettrace/export/ctf/ctf_exporter.h"
#include "tools/nettrace/export/export_feed.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/fxt/fxt_exporter.h"
#include "tools/nettrace/export/json/trace_event_exporter.h"
#include "tools/nettrace/export/otlp/otlp_exporter.h"
#include "tools/nettrace/export/parquet/dataset_exporter.h"
#include "tools/nettrace/export/parquet/parquet_exporter.h"
#include "tools/nettrace/export/stacks/stacks_exporter.h"
#include "tools/nettrace/ship/connection_options.h"
#include "tools/nettrace/ship/destination.h"
#include "tools/nettrace/ship/url_exporter.h"
#include "tools/output/atomic_file.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/payload_json.h"

namespace tools {
namespace {

using exporting::Exporter;

constexpr char kExportCommand[] = "export";
constexpr char kEvents[] = "events";  // value of --weight

struct ExportArguments {
  std::string format;
  std::vector<std::string> paths;     // files and directories
  const InputFiles* input = nullptr;  // the files that `paths` stands for
  std::string output;
  std::string profile;
  std::string weight;
  bool is_typed = false;
  std::vector<std::string> partition;
  bool raw = false;
  std::optional<mode_t> mode;
  ship::ConnectionOptions connection;  // used if `output` is a URL
  trace::EventFilter filter;
};

bool IsOtlp(const ExportArguments& arguments) { return arguments.format.starts_with("otlp"); }

otlp::OtlpForm OtlpFormOf(const ExportArguments& arguments) {
  const std::string_view format = arguments.format;
  return {format.ends_with("-json") ? otlp::Encoding::kJson : otlp::Encoding::kProtobuf,
          format.starts_with("otlp-spans") ? otlp::Signal::kSpans : otlp::Signal::kLogs};
}

bool IsUrl(std::string_view output) {
  return output.starts_with("http://") || output.starts_with("https://");
}

bool IsCtf(const ExportArguments& arguments) {
  return arguments.format == "ctf" || arguments.format == "ctf2";
}

// Returns whether the output is a folder of Parquet files.
bool IsDataset(const ExportArguments& arguments) {
  return arguments.is_typed || !arguments.partition.empty();
}

// Returns the format of the command line if it is one that adds up events by stack, else nullopt.
std::optional<stacks::Format> StacksFormat(const ExportArguments& arguments) {
  if (arguments.format == "folded") return stacks::Format::kFolded;
  if (arguments.format == "speedscope") return stacks::Format::kSpeedscope;
  if (arguments.format == "pprof") return stacks::Format::kPprof;
  return std::nullopt;
}

// Prints that `stacks` events have a stack, and that the output lacks these stacks or the names of
// their functions.
void PrintLostStacks(const ExportArguments& arguments, std::uint64_t stacks) {
  const bool has_addresses = IsCtf(arguments) || IsOtlp(arguments);
  absl::FPrintF(stderr,
                "nettrace export: %s: %s with a stack, but %s has %s; folded, speedscope and pprof "
                "have the stacks with the names of functions\n",
                arguments.input->Name(), base::Counted(stacks, "event"), arguments.format,
                has_addresses ? "only the addresses" : "no stacks");
}

// Prints what the output lacks. Must be called only after the whole export has succeeded.
void PrintRemarks(const ExportArguments& arguments, const ExportFeed& run,
                  const Exporter& exporter) {
  if (const std::string remark = exporter.Remark(); !remark.empty()) {
    absl::FPrintF(stderr, "nettrace export: %s: %s\n", arguments.input->Name(), remark);
  }
  if (run.stacks() != 0 && !exporter.keeps_stacks()) PrintLostStacks(arguments, run.stacks());
}

trace::PayloadStyle PayloadStyleOf(const ExportArguments& arguments) {
  return arguments.raw ? trace::PayloadStyle::kRaw : trace::PayloadStyle::kForPrograms;
}

// Runs the export and gives the output, a file or folder, its final name. Prints the error if it
// fails, and returns the exit code.
template <typename Output>
int Write(const ExportArguments& arguments, ExportFeed* run, Exporter* exporter, Output* output,
          Progress* progress) {
  absl::Status status = run->Run(exporter);
  progress->Hide();
  const bool is_inputs = run->sort_failed() || absl::IsUnimplemented(status);
  if (status.ok()) status = output->Keep();
  if (!status.ok()) {
    return FailToWrite(kExportCommand, is_inputs ? arguments.input->Name() : arguments.output,
                       status);
  }
  PrintRemarks(arguments, *run, *exporter);
  return cli::kExitOk;
}

int ExportCtf(const ExportArguments& arguments, const output::FileAccess& access, ExportFeed* run,
              Progress* progress) {
  output::AtomicFolder folder(arguments.output);
  if (const absl::Status status = folder.Create(access); !status.ok()) {
    return FailToWrite(kExportCommand, arguments.output, status);
  }
  const auto version = arguments.format == "ctf2" ? ctf::Version::k2 : ctf::Version::k1;
  const auto profile = arguments.profile == "lttng" ? ctf::Profile::kLttng : ctf::Profile::kPlain;
  ctf::CtfExporter exporter(run->reader(), version, profile, &folder);
  return Write(arguments, run, &exporter, &folder, progress);
}

parquet::DatasetOptions DatasetOptionsOf(const ExportArguments& arguments) {
  const auto has = [&](std::string_view key) {
    return std::find(arguments.partition.begin(), arguments.partition.end(), key) !=
           arguments.partition.end();
  };
  return {arguments.is_typed, {has("date"), has("hour"), has("host")}};
}

int ExportDataset(const ExportArguments& arguments, const output::FileAccess& access,
                  ExportFeed* run, Progress* progress) {
  output::AtomicFolder folder(arguments.output);
  if (const absl::Status status = folder.Create(access); !status.ok()) {
    return FailToWrite(kExportCommand, arguments.output, status);
  }
  parquet::DatasetExporter exporter(
      run->reader().trace(), DatasetOptionsOf(arguments),
      [&folder](const std::string& path, std::string_view bytes) {
        return folder.Append(path, std::as_bytes(std::span(bytes.data(), bytes.size())));
      });
  return Write(arguments, run, &exporter, &folder, progress);
}

// Returns the columns for the fields of all events that will be exported. Reads the whole input in
// an additional pass.
absl::StatusOr<csv::FieldColumns> FindColumns(const ExportArguments& arguments,
                                              Progress* progress) {
  ASSIGN_OR_RETURN(InputFiles::Opened opened, arguments.input->Open(progress));
  trace::EventStream stream(std::move(opened.reader),
                            {.filter = &arguments.filter, .file_order = true});
  using Step = trace::EventStream::Step;
  csv::FieldColumns columns;
  absl::flat_hash_set<const nettrace::EventMetadata*> known;
  for (Step step = stream.Next(); step != Step::kEnd; step = stream.Next()) {
    if (cli::IsStopRequested()) return absl::CancelledError("stopped by a signal");
    if (step == Step::kSequencePoint) known.clear();
    if (step != Step::kEvent || !known.insert(stream.event().metadata).second) continue;
    RETURN_IF_ERROR(columns.Add(*stream.event().metadata));
  }
  return columns;
}

// Returns the exporter for a format that consists of one file. For csv, reads the input once to
// find the columns, and writes their names.
absl::StatusOr<std::unique_ptr<Exporter>> CreateExporter(const ExportArguments& arguments,
                                                         const nettrace::Reader& reader,
                                                         Progress* progress, nettrace::Sink* sink) {
  if (arguments.format == "json") {
    const auto profile =
        arguments.profile == "speedscope" ? json::Profile::kSpeedscope : json::Profile::kPlain;
    return std::make_unique<json::TraceEventExporter>(reader, profile, sink);
  }
  if (const std::optional<stacks::Format> format = StacksFormat(arguments)) {
    const stacks::Weight weight = arguments.weight.empty()      ? stacks::Weight::kAutomatic
                                  : arguments.weight == kEvents ? stacks::Weight::kEvents
                                                                : stacks::Weight::kField;
    return std::make_unique<stacks::StacksExporter>(reader, *format, weight, arguments.weight,
                                                    sink);
  }
  if (arguments.format == "fxt") return std::make_unique<fxt::FxtExporter>(sink);
  if (arguments.format == "parquet") {
    return std::make_unique<parquet::ParquetExporter>(reader.trace(), sink);
  }
  if (IsOtlp(arguments)) {
    return std::make_unique<otlp::OtlpExporter>(OtlpFormOf(arguments), reader.trace(), sink);
  }
  ASSIGN_OR_RETURN(csv::FieldColumns columns, FindColumns(arguments, progress));
  auto exporter = std::make_unique<csv::CsvExporter>(std::move(columns), sink);
  RETURN_IF_ERROR(exporter->WriteHeader());
  return exporter;
}

int ExportFile(const ExportArguments& arguments, const output::FileAccess& access, ExportFeed* run,
               Progress* progress) {
  OutputFile file(arguments.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = file.Create(access);
  if (!sink.ok()) return FailToWrite(kExportCommand, arguments.output, sink.status());
  absl::StatusOr<std::unique_ptr<Exporter>> exporter =
      CreateExporter(arguments, run->reader(), progress, sink->get());
  if (!exporter.ok()) {
    progress->Hide();
    return FailToWrite(kExportCommand, arguments.input->Name(), exporter.status());
  }
  return Write(arguments, run, exporter->get(), &file, progress);
}

// Sends the events to the receiver at a URL. After an error, the receiver has a part of them.
int ExportToUrl(const ExportArguments& arguments, ExportFeed* run, Progress* progress) {
  const auto exporter = ship::UrlExporter::Create(arguments.connection, arguments.output,
                                                  OtlpFormOf(arguments), run->reader().trace());
  absl::Status status = exporter.status();
  if (status.ok()) status = run->Run(exporter->get());
  progress->Hide();
  if (run->sort_failed()) {
    PrintInputError(kExportCommand, arguments.input->Name(), status);
    return cli::kExitFailed;
  }
  if (!status.ok()) {
    absl::FPrintF(stderr, "nettrace export: %s\n", std::string(status.message()));
    return cli::kExitFailed;
  }
  PrintRemarks(arguments, *run, **exporter);
  const ship::DeliveryCounts& sent = (*exporter)->delivered();
  absl::FPrintF(
      stderr,
      "nettrace export: %s: %s accepted, %d rejected individually, %d in refused requests\n",
      arguments.output, base::Counted(sent.accepted, "record"), sent.rejected, sent.refused);
  return sent.rejected + sent.refused == 0 ? cli::kExitOk : cli::kExitFailed;
}

// Exports to standard output. After an error, standard output has the part that was written before
// the error.
int ExportToStandardOutput(const ExportArguments& arguments, ExportFeed* run, Progress* progress) {
  std::unique_ptr<nettrace::Sink> sink;
  std::unique_ptr<Exporter> exporter;
  const auto write = [&]() -> absl::Status {
    base::UniqueFd copy(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!copy.valid()) return base::DescriptorStatus(errno, "using standard output: fcntl");
    sink = std::make_unique<nettrace::FdSink>(copy.release(), "standard output");
    ASSIGN_OR_RETURN(exporter, CreateExporter(arguments, run->reader(), progress, sink.get()));
    return run->Run(exporter.get());
  };
  const absl::Status status = write();
  progress->Hide();
  if (status.ok()) {
    PrintRemarks(arguments, *run, *exporter);
    return cli::kExitOk;
  }
  if (run->sort_failed()) {
    PrintInputError(kExportCommand, arguments.input->Name(), status);
  } else {
    absl::FPrintF(stderr, "nettrace export: %s\n", std::string(status.message()));
  }
  return cli::kExitFailed;
}

// Takes the reader of `opened` and exports its events. Prints the result, errors and damage, and
// returns the exit code.
int ExportOpened(const ExportArguments& arguments, const std::vector<struct stat>& facts,
                 InputFiles::Opened* opened, Progress* progress) {
  if (const absl::Status status = CatchSignalsFor(facts.front()); !status.ok()) {
    PrintInputError(kExportCommand, arguments.input->Name(), status);
    return cli::kExitFailed;
  }
  const output::FileAccess access = OutputAccess(facts, arguments.mode);
  ExportFeed run(arguments.filter, PayloadStyleOf(arguments), std::move(opened->reader));
  const int exit_code = IsCtf(arguments)          ? ExportCtf(arguments, access, &run, progress)
                        : IsDataset(arguments)    ? ExportDataset(arguments, access, &run, progress)
                        : IsUrl(arguments.output) ? ExportToUrl(arguments, &run, progress)
                        : arguments.output == "-"
                            ? ExportToStandardOutput(arguments, &run, progress)
                            : ExportFile(arguments, access, &run, progress);
  if (exit_code != cli::kExitOk) return exit_code;
  absl::FPrintF(stderr, "nettrace export: %s: %s, %d lost\n",
                arguments.output == "-" ? "standard output" : base::Printable(arguments.output),
                base::Counted(run.events(), "event"), run.lost());
  const int damage =
      PrintProblems(kExportCommand, arguments.input->Problems(*opened, run.reader().status()));
  if (damage == cli::kExitOk) return damage;
  absl::FPrintF(stderr, "nettrace export: everything before the damage was written\n");
  return damage;
}

int RunExport(ExportArguments arguments) {
  if ((IsCtf(arguments) || IsDataset(arguments)) &&
      IsRefusedOutput(kExportCommand, arguments.output, "a path")) {
    return cli::kExitUsage;
  }
  if (IsUrl(arguments.output)) {
    absl::StatusOr<std::string> url =
        ship::ReceiverUrl(arguments.output, OtlpFormOf(arguments).signal);
    if (!url.ok()) {
      absl::FPrintF(stderr, "nettrace export: -o: %s\n", std::string(url.status().message()));
      return cli::kExitUsage;
    }
    arguments.output = *std::move(url);
  }
  const bool is_binary = arguments.format == "fxt" || arguments.format == "parquet" ||
                         arguments.format == "pprof" ||
                         (IsOtlp(arguments) && !arguments.format.ends_with("-json"));
  if (arguments.output == "-" && is_binary && isatty(STDOUT_FILENO) == 1) {
    absl::FPrintF(stderr,
                  "nettrace export: -o -: standard output is a terminal, and %s is binary; "
                  "redirect the output, or name a file\n",
                  arguments.format);
    return cli::kExitUsage;
  }
  absl::StatusOr<std::vector<std::string>> paths = FindFiles(kExportCommand, arguments.paths);
  if (!paths.ok()) {
    PrintFilesError(kExportCommand, paths.status());
    return cli::kExitUnreadable;
  }
  const InputFiles input(*std::move(paths));
  arguments.input = &input;
  Progress progress(kExportCommand);
  std::vector<struct stat> facts;
  absl::StatusOr<InputFiles::Opened> opened = input.Open(&progress, &facts);
  if (!opened.ok()) {
    PrintFilesError(kExportCommand, opened.status());
    return cli::kExitUnreadable;
  }
  const bool are_files = std::all_of(facts.begin(), facts.end(),
                                     [](const struct stat& each) { return S_ISREG(each.st_mode); });
  if (arguments.format == "csv" && !are_files) {
    absl::FPrintF(stderr,
                  "nettrace export: %s: csv reads the input twice, so it must be a regular file; "
                  "save the stream to a file first\n",
                  input.Name());
    return cli::kExitUsage;
  }
  return ExportOpened(arguments, facts, &*opened, &progress);
}

}  // namespace

void AddExport(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "Convert a file to a format of other tools");
  command
      ->add_option(
          "--to", arguments->format,
          "Output format: ctf, ctf2, fxt, json, csv, parquet, otlp, otlp-json, otlp-spans or "
          "otlp-spans-json; for stacks: folded, speedscope or pprof")
      ->required()
      ->check(CLI::IsMember({"ctf", "ctf2", "fxt", "json", "csv", "parquet", "otlp", "otlp-json",
                             "otlp-spans", "otlp-spans-json", "folded", "speedscope", "pprof"}));
  AddFilesOption(command, &arguments->paths);
  command
      ->add_option(
          "-o,--output", arguments->output,
          "Output: a directory for ctf and ctf2, and for parquet with --typed or --partition; "
          "otherwise a file, or - for standard output; for otlp and otlp-spans also the URL of a "
          "receiver, such as http://localhost:4318")
      ->required();
  command
      ->add_option("--profile", arguments->profile,
                   "For ctf and ctf2: lttng, like a trace of LTTng-UST, for the views of Trace "
                   "Compass. For json: speedscope, activities as calls of their threads")
      ->check(CLI::IsMember({"lttng", "speedscope"}));
  command
      ->add_option("--weight", arguments->weight,
                   "For folded, speedscope and pprof: events, or a field whose numbers are summed; "
                   "by default, a cswitch event counts its ns off the CPU, and others count 1")
      ->type_name("events|FIELD");
  command->add_flag("--typed", arguments->is_typed,
                    "For parquet: write one file for each kind of event, with a typed column for "
                    "each field, into a directory");
  command
      ->add_option("--partition", arguments->partition,
                   "For parquet: divide the rows by these keys, into directories such as "
                   "date=2026-11-23/hour=13/host=web1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"date", "hour", "host"}));
  command->add_flag(
      "--raw", arguments->raw,
      "For fxt, json, csv, parquet, otlp and otlp-json: write values as they are stored, without "
      "their EventHeader formats; ctf and ctf2 always contain stored values");
  const std::vector<CLI::Option*> connection =
      ship::AddConnectionOptions(command, &arguments->connection, "1m");
  for (CLI::Option* const option : connection) option->group("Options for -o URL");
  AddAddedEventOptions(command, &arguments->filter, "export", "");
  AddModeOption(command, "that of the input", [arguments](mode_t mode) { arguments->mode = mode; });
  // Other commands accept --to as an older name of --until. Here, --to sets the format.
  AddFilterOptions(command, &arguments->filter, /*has_to=*/false);
  command->footer(
      "ctf is the Common Trace Format 1.8, a directory that babeltrace2 and Trace Compass read. "
      "ctf2 is its version 2, for babeltrace2 2.1 and later. The directory must not exist yet or "
      "must be empty. fxt is the Fuchsia trace format, which Perfetto reads. json is the "
      "trace-event format, which Perfetto reads; with --profile speedscope, speedscope reads it, "
      "too. csv has a line for each event, and a column for each field of all events. parquet is a "
      "table "
      "with a row for each event and its fields in JSON, for DuckDB, ClickHouse and Spark; with "
      "--typed, each kind of event is a table with a column for each field. otlp contains log "
      "records for OpenTelemetry, as requests in protobuf, each after its length; otlp-json has a "
      "request in JSON on each line, which the collector's otlpjsonfile receiver reads. otlp-spans "
      "and otlp-spans-json have the activities of the selected events as spans. With the URL of a "
      "receiver, requests are sent and repeated as nettrace ship does, without a state: use ship "
      "if all events must arrive even after an interruption.\n\n"
      "folded, speedscope and pprof have the sums of events by their stacks, with the names of "
      "modules and functions: lines for flamegraph.pl and inferno, JSON for speedscope.app, and "
      "profile.proto for 'go tool pprof'. Events without a stack are left out.\n\n"
      "The output gets its name when it is complete; a file replaces an existing file. Standard "
      "output has what was written before an error.\n\n"
      "Exit code: 0 written; 1 the output cannot be written, or a receiver did not accept all "
      "records, or the input is truncated or damaged, and everything before the damage was "
      "written; 2 the input cannot be read, or wrong "
      "usage.\n\n"
      "Examples:\n"
      "  nettrace export --to ctf trace.nettrace -o trace.ctf && babeltrace2 trace.ctf\n"
      "  nettrace export --to ctf --profile lttng trace.nettrace -o for-trace-compass\n"
      "  nettrace export --to ctf --provider MyProvider trace.nettrace.zst -o mine\n"
      "  nettrace export --to ctf2 trace.nettrace -o trace.ctf2\n"
      "  nettrace export --to fxt trace.nettrace -o trace.fxt\n"
      "  nettrace export --to json trace.nettrace -o trace.json\n"
      "  nettrace export --to json --profile speedscope trace.nettrace \\\n"
      "      -o for-speedscope.json\n"
      "  nettrace export --to csv --event Order trace.nettrace -o orders.csv\n"
      "  nettrace export --to parquet trace.nettrace -o events.parquet\n"
      "  nettrace export --to parquet --typed trace.nettrace -o tables\n"
      "  nettrace export --to parquet --partition date,hour,host trace.nettrace \\\n"
      "      -o dataset\n"
      "  nettrace export --to otlp-json trace.nettrace -o logs.json\n"
      "  nettrace export --to otlp-spans --provider Shop trace.nettrace \\\n"
      "      -o http://localhost:4318\n"
      "  nettrace export --to folded stacks.nettrace -o stacks.folded\n"
      "  nettrace export --to speedscope stacks.nettrace -o for-speedscope.json\n"
      "  nettrace export --to pprof stacks.nettrace -o profile.pb.gz\n");
  command->callback([arguments, connection, exit_code] {
    const bool sends = IsUrl(arguments->output);
    if (sends && !IsOtlp(*arguments)) {
      throw CLI::ValidationError("-o",
                                 "a URL needs --to otlp, otlp-json, otlp-spans or "
                                 "otlp-spans-json");
    }
    for (const CLI::Option* const option : connection) {
      if (option->count() != 0 && !sends) {
        throw CLI::ValidationError(option->get_name(), "needs -o with the URL of a receiver");
      }
    }
    if ((arguments->profile == "lttng" && !IsCtf(*arguments)) ||
        (arguments->profile == "speedscope" && arguments->format != "json")) {
      throw CLI::ValidationError("--profile",
                                 "lttng needs --to ctf or ctf2, and speedscope needs --to json");
    }
    if (!arguments->weight.empty() && !StacksFormat(*arguments)) {
      throw CLI::ValidationError("--weight", "needs --to folded, speedscope or pprof");
    }
    if (IsDataset(*arguments) && arguments->format != "parquet") {
      throw CLI::ValidationError(arguments->is_typed ? "--typed" : "--partition",
                                 "needs --to parquet");
    }
    const parquet::Partition partition = DatasetOptionsOf(*arguments).partition;
    if (partition.by_hour && !partition.by_date) {
      throw CLI::ValidationError("--partition", "hour needs date, as in date,hour");
    }
    RefuseCompressedName(arguments->output);
    *exit_code =
        WithinMemory(kExportCommand, arguments->paths, [&] { return RunExport(*arguments); });
  });
}

}  // namespace tools
