// `nettrace import`: writes traces of other tools as a NetTrace file.
#include <sys/resource.h>
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
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/import/ctf/ctf_importer.h"
#include "tools/nettrace/import/ctf/trace_folder.h"
#include "tools/nettrace/import/fxt/fxt_importer.h"
#include "tools/nettrace/import/fxt/fxt_reader.h"

namespace tools {
namespace {

constexpr char kImportCommand[] = "import";

struct ImportArguments {
  std::string format;
  std::string input;
  std::string output;
  std::optional<mode_t> mode;
};

void PrintRemark(const ImportArguments& arguments, const std::string& remark) {
  absl::FPrintF(stderr, "nettrace import: %s: %s\n", InputName(arguments.input),
                base::Printable(remark));
}

// Raises the limit of open files to the hard limit, because each stream of a CTF trace is a file
// that stays open during the import.
void RaiseFileLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // if this fails, opening a file reports the error
}

absl::Status CheckStop(Progress* progress, std::uint64_t bytes) {
  progress->AddRead(bytes);
  return cli::IsStopRequested() ? absl::CancelledError("stopped by a signal") : absl::OkStatus();
}

void ReportDamages(const ImportArguments& arguments, const std::vector<absl::Status>& damages,
                   std::uint64_t count) {
  for (const absl::Status& damage : damages) PrintRemark(arguments, std::string(damage.message()));
  if (count > damages.size()) {
    PrintRemark(arguments, absl::StrCat("further damaged places: ", count - damages.size()));
  }
}

// Runs the importer. Prints damage of the input, and how much was written or why writing failed.
// Returns the exit code. `report` prints what else the output lacks or shows differently.
template <typename Importer>
int WriteTrace(const ImportArguments& arguments, const std::vector<struct stat>& files,
               Importer* importer, Progress* progress,
               void (*report)(const ImportArguments&, const Importer&)) {
  OutputFile file(arguments.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink =
      file.Create(OutputAccess(files, arguments.mode));
  absl::Status status = sink.status();
  if (status.ok()) status = importer->Run(*std::move(sink));
  progress->Hide();
  if (status.ok()) {
    ReportDamages(arguments, importer->damages(), importer->damage_count());
    report(arguments, *importer);
    status = file.Keep();
  }
  if (!status.ok()) return FailToWrite(kImportCommand, arguments.output, status);
  const importing::TraceOutput* const trace = &importer->output();
  if (trace->not_kept() > 0) {
    PrintRemark(arguments, absl::StrCat("left out ", base::Counted(trace->not_kept(), "event"),
                                        ", counted as lost; the reason for the first: ",
                                        trace->why_not_kept()));
  }
  if (trace->lost_beyond() > 0) {
    PrintRemark(arguments, absl::StrCat(base::Counted(trace->lost_beyond(), "further lost event"),
                                        " cannot be counted: the file has no room for so large "
                                        "a count between two events"));
  }
  absl::FPrintF(stderr, "nettrace import: %s: %s, %d lost, %s\n", InputName(arguments.output),
                base::Counted(trace->events(), "event"), trace->lost(),
                base::Counted(file.Size(trace->bytes()), "byte"));
  if (importer->damage_count() == 0) return cli::kExitOk;
  absl::FPrintF(stderr, "nettrace import: all undamaged parts were written\n");
  return cli::kExitDamaged;
}

void ReportCtf(const ImportArguments& arguments, const importing::ctf::CtfImporter& importer) {
  if (importer.packets_missing() > 0) {
    PrintRemark(arguments, absl::StrCat("missing packets: ", importer.packets_missing(),
                                        "; the number of their events is unknown"));
  }
  if (importer.moved() > 0) {
    PrintRemark(arguments,
                absl::StrCat("events that are out of order in their stream: ", importer.moved(),
                             "; they got the time of the event before them"));
  }
}

int ImportCtf(const ImportArguments& arguments) {
  RaiseFileLimit();
  Progress progress(kImportCommand);
  std::vector<struct stat> files;
  auto folders = importing::ctf::OpenTraces(arguments.input, &files);
  if (!folders.ok()) {
    // The message already names the file.
    absl::FPrintF(stderr, "nettrace import: %s\n",
                  base::Printable(std::string(folders.status().message())));
    return cli::kExitUnreadable;
  }
  importing::ctf::CtfImporter importer(
      [&](std::uint64_t bytes) { return CheckStop(&progress, bytes); });
  for (importing::ctf::TraceFolder& folder : *folders) {
    for (const auto& stream : folder.streams) progress.AddInput(stream.file->size());
    absl::Status status = importer.AddTrace(folder.metadata, std::move(folder.streams));
    if (!status.ok()) {
      PrintInputError(kImportCommand, folder.name + "/metadata", status);
      return cli::kExitUnreadable;
    }
  }
  if (const absl::Status status = cli::CatchSignals(); !status.ok()) {
    PrintInputError(kImportCommand, arguments.input, status);
    return cli::kExitFailed;
  }
  return WriteTrace(arguments, files, &importer, &progress, ReportCtf);
}

void ReportFxt(const ImportArguments& arguments, const importing::fxt::FxtImporter& importer) {
  if (importer.skipped() > 0) {
    PrintRemark(arguments, absl::StrCat("left out ", base::Counted(importer.skipped(), "record"),
                                        " of kinds that a NetTrace file cannot represent"));
  }
  if (importer.buffers_full() > 0) {
    PrintRemark(arguments, absl::StrCat("a provider's buffer was full ",
                                        base::Counted(importer.buffers_full(), "time"),
                                        "; the number of lost records is unknown"));
  }
}

absl::StatusOr<std::unique_ptr<importing::fxt::FxtReader>> OpenFxt(const std::string& path,
                                                                   Progress* progress,
                                                                   struct stat* file) {
  ASSIGN_OR_RETURN(auto source, OpenSource(path, progress, file));
  return importing::fxt::FxtReader::Open(std::move(source));
}

int ImportFxt(const ImportArguments& arguments) {
  Progress progress(kImportCommand);
  struct stat file = {};
  absl::StatusOr<std::unique_ptr<importing::fxt::FxtReader>> reader =
      OpenFxt(arguments.input, &progress, &file);
  if (!reader.ok()) {
    PrintInputError(kImportCommand, arguments.input, reader.status());
    return cli::kExitUnreadable;
  }
  if (const absl::Status status = CatchSignalsFor(file); !status.ok()) {
    PrintInputError(kImportCommand, arguments.input, status);
    return cli::kExitFailed;
  }
  importing::fxt::FxtImporter importer(*std::move(reader), [&] { return CheckStop(&progress, 0); });
  return WriteTrace(arguments, {file}, &importer, &progress, ReportFxt);
}

int RunImport(const ImportArguments& arguments) {
  if (IsRefusedOutput(kImportCommand, arguments.output, "a file")) return cli::kExitUsage;
  return arguments.format == "ctf" ? ImportCtf(arguments) : ImportFxt(arguments);
}

}  // namespace

void AddImport(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ImportArguments>();
  CLI::App* command =
      app.add_subcommand("import", "Convert a trace of another tool to a NetTrace file");
  command->add_option("--from", arguments->format, "Input format: ctf or fxt")
      ->required()
      ->check(CLI::IsMember({"ctf", "fxt"}));
  command
      ->add_option("input", arguments->input,
                   "For ctf, a directory; for fxt, a file, or - for standard input")
      ->required();
  command->add_option("-o,--output", arguments->output, "File to write")->required();
  AddModeOption(command, "that of the input", [arguments](mode_t mode) { arguments->mode = mode; });
  command->footer(
      "ctf is the Common Trace Format 1.8: a directory as written by LTTng, barectf, babeltrace2, "
      "perf or 'nettrace export'. All traces in and below the directory are merged into one. fxt "
      "is the Fuchsia trace format, in either byte order, optionally compressed with zstd. The "
      "output is a NetTrace V6 file. It gets its name when it is complete, and replaces an "
      "existing file.\n\n"
      "Exit code: 0 written; 1 the output cannot be written, or a part of the input is "
      "truncated or damaged, and everything that can be read was written; 2 the input cannot be "
      "read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace import --from ctf trace.ctf -o again.nettrace && \\\n"
      "      nettrace dump again.nettrace\n"
      "  nettrace import --from ctf trace.ctf -o again.nettrace.zst\n"
      "  nettrace import --from fxt trace.fxt -o from-fuchsia.nettrace\n");
  command->callback([arguments, exit_code] {
    *exit_code =
        WithinMemory(kImportCommand, {arguments->input}, [&] { return RunImport(*arguments); });
  });
}

}  // namespace tools
