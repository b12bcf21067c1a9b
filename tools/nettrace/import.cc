// `nettrace import`: traces of other tools as a NetTrace file.
#include <sys/resource.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/collector/output/output_queue.h"
#include "tools/collector/output/zstd_sink.h"
#include "tools/common/atomic_file.h"
#include "tools/common/exit_codes.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/import/ctf/ctf_importer.h"
#include "tools/nettrace/import/ctf/trace_folder.h"
#include "tools/nettrace/import/fxt/fxt_importer.h"
#include "tools/nettrace/import/fxt/fxt_reader.h"
#include "tools/nettrace/open_input.h"
#include "tools/nettrace/output_options.h"

namespace tools {
namespace {

constexpr char kCommand[] = "import";

struct Arguments {
  std::string format;
  std::string input;
  std::string output;
  std::optional<mode_t> mode;
};

void PrintRemark(const Arguments& arguments, const std::string& remark) {
  absl::FPrintF(stderr, "nettrace import: %s: %s\n", InputName(arguments.input), Printable(remark));
}

// The file that is written, by way of a compressor if its name asks for one.
class Output {
 public:
  explicit Output(const Arguments& arguments) : path_(arguments.output), file_(path_) {}

  absl::StatusOr<std::unique_ptr<nettrace::Sink>> Create(const FileAccess& access) {
    absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = file_.Create(access);
    if (!sink.ok() || !IsCompressedName(path_)) return sink;
    collector::ZstdSinkOptions options;
    options.written = written_;
    auto queue = collector::CompressOnThread(*std::move(sink), options);
    if (!queue.ok()) return queue.status();
    return std::make_unique<collector::QueueSink>(*std::move(queue));
  }
  absl::Status Keep() { return file_.Keep(); }
  std::uint64_t Size(std::uint64_t bytes) const {
    return IsCompressedName(path_) ? written_->load() : bytes;
  }

 private:
  const std::string path_;
  AtomicFile file_;
  std::shared_ptr<std::atomic<std::uint64_t>> written_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

// Each stream is an open file.
void RaiseFileLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // where that fails, opening says so
}

// Keeps the output if `status`, of writing it, is OK. Prints what was written, or why nothing was.
int Finish(const Arguments& arguments, absl::Status status, Output* output,
           const importing::TraceOutput* trace, bool is_damaged) {
  if (status.ok()) status = output->Keep();
  if (!status.ok()) {
    PrintInputError(kCommand, arguments.output, status);
    absl::FPrintF(stderr, "nettrace import: nothing was written\n");
    return kExitFailed;
  }
  if (trace->not_kept() > 0) {
    PrintRemark(arguments,
                absl::StrCat(trace->not_kept(), " events cannot be written; they count as lost: ",
                             trace->why_not_kept()));
  }
  if (trace->lost_beyond() > 0) {
    PrintRemark(arguments, absl::StrCat(trace->lost_beyond(),
                                        " lost events more are said than a file can have between "
                                        "two events; they are not counted"));
  }
  absl::FPrintF(stderr, "nettrace import: %s: %d events, %d lost, %d bytes\n",
                InputName(arguments.output), trace->events(), trace->lost(),
                output->Size(trace->bytes()));
  if (!is_damaged) return kExitOk;
  absl::FPrintF(stderr, "nettrace import: what is not damaged was written\n");
  return kExitDamaged;
}

absl::Status CheckStop(Progress* progress, std::uint64_t bytes) {
  progress->AddRead(bytes);
  return IsStopRequested() ? absl::CancelledError("stopped by a signal") : absl::OkStatus();
}

void ReportDamages(const Arguments& arguments, const std::vector<absl::Status>& damages,
                   std::uint64_t count) {
  for (const absl::Status& damage : damages) PrintRemark(arguments, std::string(damage.message()));
  if (count > damages.size()) {
    PrintRemark(arguments,
                absl::StrCat("and ", count - damages.size(), " places more are damaged"));
  }
}

void ReportCtf(const Arguments& arguments, const importing::ctf::CtfImporter& importer) {
  ReportDamages(arguments, importer.damages(), importer.damage_count());
  if (importer.packets_missing() > 0) {
    PrintRemark(arguments,
                absl::StrCat(importer.packets_missing(),
                             " packets are missing; how many events they had is not known"));
  }
  if (importer.moved() > 0) {
    PrintRemark(arguments, absl::StrCat(importer.moved(),
                                        " events come after later ones of their stream; they have "
                                        "the time of those"));
  }
}

int ImportCtf(const Arguments& arguments) {
  RaiseFileLimit();
  Progress progress(kCommand);
  std::vector<struct stat> files;
  auto folders = importing::ctf::OpenTraces(arguments.input, &files);
  if (!folders.ok()) {
    // The message names the file.
    absl::FPrintF(stderr, "nettrace import: %s\n",
                  Printable(std::string(folders.status().message())));
    return kExitUnreadable;
  }
  importing::ctf::CtfImporter importer(
      [&](std::uint64_t bytes) { return CheckStop(&progress, bytes); });
  for (importing::ctf::TraceFolder& folder : *folders) {
    for (const auto& stream : folder.streams) progress.AddInput(stream.file->size());
    absl::Status status = importer.AddTrace(folder.metadata, std::move(folder.streams));
    if (!status.ok()) {
      PrintInputError(kCommand, folder.name + "/metadata", status);
      return kExitUnreadable;
    }
  }
  if (const absl::Status status = CatchSignals(); !status.ok()) {
    PrintInputError(kCommand, arguments.input, status);
    return kExitFailed;
  }
  FileAccess access = AccessToAll(files);
  access.mode = arguments.mode.value_or(access.mode);
  Output output(arguments);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = output.Create(access);
  absl::Status status = sink.status();
  if (status.ok()) status = importer.Run(*std::move(sink));
  progress.Hide();
  if (status.ok()) ReportCtf(arguments, importer);
  return Finish(arguments, status, &output, status.ok() ? &importer.output() : nullptr,
                importer.damage_count() > 0);
}

void ReportFxt(const Arguments& arguments, const importing::fxt::FxtImporter& importer) {
  ReportDamages(arguments, importer.damages(), importer.damage_count());
  if (importer.skipped() > 0) {
    PrintRemark(arguments, absl::StrCat(importer.skipped(),
                                        " records are of kinds that a NetTrace file has no place "
                                        "for; they were left out"));
  }
  if (importer.buffers_full() > 0) {
    PrintRemark(arguments, absl::StrCat("a buffer was full ", importer.buffers_full(),
                                        " times; how many records were lost then is not known"));
  }
}

absl::StatusOr<std::unique_ptr<importing::fxt::FxtReader>> OpenFxt(const std::string& path,
                                                                   Progress* progress,
                                                                   struct stat* file) {
  auto source = OpenSource(path, progress, file);
  if (!source.ok()) return source.status();
  return importing::fxt::FxtReader::Open(*std::move(source));
}

int ImportFxt(const Arguments& arguments) {
  Progress progress(kCommand);
  struct stat file = {};
  absl::StatusOr<std::unique_ptr<importing::fxt::FxtReader>> reader =
      OpenFxt(arguments.input, &progress, &file);
  if (!reader.ok()) {
    PrintInputError(kCommand, arguments.input, reader.status());
    return kExitUnreadable;
  }
  // A run that is stopped leaves nothing. One that waits for a pipe could not be stopped then.
  if (S_ISREG(file.st_mode)) {
    if (const absl::Status status = CatchSignals(); !status.ok()) {
      PrintInputError(kCommand, arguments.input, status);
      return kExitFailed;
    }
  }
  importing::fxt::FxtImporter importer(*std::move(reader), [&] { return CheckStop(&progress, 0); });
  FileAccess access = AccessToAll({&file, 1});
  access.mode = arguments.mode.value_or(access.mode);
  Output output(arguments);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = output.Create(access);
  absl::Status status = sink.status();
  if (status.ok()) status = importer.Run(*std::move(sink));
  progress.Hide();
  if (status.ok()) ReportFxt(arguments, importer);
  return Finish(arguments, status, &output, status.ok() ? &importer.output() : nullptr,
                importer.damage_count() > 0);
}

int RunImport(const Arguments& arguments) {
  if (arguments.output == "-") {
    absl::FPrintF(
        stderr,
        "nettrace import: -o -: the output appears as a whole, so it must be a file; name "
        "one\n");
    return kExitUsage;
  }
  return arguments.format == "ctf" ? ImportCtf(arguments) : ImportFxt(arguments);
}

}  // namespace

void AddImport(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("import", "Write a trace of other tools as a V6 file");
  command->add_option("--from", arguments->format, "The format: ctf or fxt")
      ->required()
      ->check(CLI::IsMember({"ctf", "fxt"}));
  command
      ->add_option("input", arguments->input,
                   "What to read: a directory for ctf, a file for fxt; there - is\n"
                   "standard input")
      ->required();
  command->add_option("-o,--output", arguments->output, "File to write")->required();
  AddModeOption(command, "that of the input", [arguments](mode_t mode) { arguments->mode = mode; });
  command->footer(
      "ctf is the Common Trace Format 1.8, a directory as LTTng, barectf, babeltrace2, perf and\n"
      "'nettrace export' write it; traces in directories below it are read, too, as one.\n"
      "fxt is the Fuchsia trace format, of either byte order, which may be compressed with zstd.\n"
      "The output appears by rename, whole or not at all.\n\n"
      "Exit code: 0 written; 1 the output cannot be written, or a part of the input is cut or\n"
      "damaged, and what can be read was written; 2 the input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace import --from ctf trace.ctf -o again.nettrace && nettrace dump again.nettrace\n"
      "  nettrace import --from ctf trace.ctf -o again.nettrace.zst\n"
      "  nettrace import --from fxt trace.fxt -o from-fuchsia.nettrace\n");
  command->callback([arguments, exit_code] {
    *exit_code = WithinMemory(kCommand, {arguments->input}, [&] { return RunImport(*arguments); });
  });
}

}  // namespace tools
