#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_stream.h"

namespace tools {
namespace {

struct DumpArguments {
  std::string path;
  bool json = false;
  bool raw = false;
  bool verbose = false;
  bool file_order = false;
  trace::EventFilter filter;
};

void PrintEvents(trace::EventStream* stream, const DumpArguments& arguments) {
  using Step = trace::EventStream::Step;
  const trace::PayloadStyle style =
      arguments.json ? trace::PayloadStyle::kForPrograms : trace::PayloadStyle::kForPeople;
  const trace::PayloadStyle raw =
      arguments.json ? trace::PayloadStyle::kRaw : trace::PayloadStyle::kRawForPeople;
  trace::PayloadJson payloads(arguments.raw ? raw : style);
  // Bytes that are collected before they are written. Each line is shown on a terminal at once.
  const std::size_t piece = isatty(STDOUT_FILENO) != 0 ? 1 : std::size_t{64} << 10;
  std::string lines;
  const auto write = [&lines] {
    const bool written = std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
    lines.clear();
    return written;
  };
  for (Step step = stream->Next(); step != Step::kEnd; step = stream->Next()) {
    if (step == Step::kSequencePoint) {
      payloads.ForgetRows();
      // If the trace is still being recorded, the next event may come much later.
      if (!write()) return;
      std::fflush(stdout);
    }
    if (step != Step::kEvent) continue;
    if (arguments.json) {
      trace::AppendEventJson(stream->reader(), stream->event(), &payloads, &lines);
    } else {
      trace::AppendEventText(stream->reader(), stream->event(), arguments.verbose, &payloads,
                             &lines);
    }
    lines += '\n';
    if (lines.size() >= piece && !write()) return;
  }
  write();
}

// Prints the error of the temporary file for sorting.
void PrintSortError(const std::string& path, const absl::Status& status) {
  PrintInputError("dump", path, status);
  absl::FPrintF(stderr,
                "nettrace dump: sorting needs a temporary file; set TMPDIR to a folder with enough "
                "space, or use --file-order to skip sorting\n");
}

int Dump(const DumpArguments& arguments) {
  // Printing events on a terminal already shows progress.
  Progress progress("dump", isatty(STDOUT_FILENO) == 0);
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> opened = OpenInput(arguments.path, &progress);
  if (!opened.ok()) {
    PrintInputError("dump", arguments.path, opened.status());
    return cli::kExitUnreadable;
  }
  trace::EventStream stream(*std::move(opened),
                            {.filter = &arguments.filter, .file_order = arguments.file_order});
  PrintEvents(&stream, arguments);
  progress.Hide();
  if (const int exit_code = FinishOutput("dump", cli::kExitOk); exit_code != cli::kExitOk)
    return exit_code;
  if (!stream.sort_status().ok()) {
    PrintSortError(arguments.path, stream.sort_status());
    return cli::kExitFailed;
  }
  const nettrace::Reader& reader = stream.reader();
  if (!reader.traceevent_refusal().empty()) {
    PrintInputError("dump", arguments.path, absl::UnimplementedError(RefusalText(reader)));
  }
  if (reader.status().ok()) return cli::kExitOk;
  PrintInputError("dump", arguments.path, reader.status());
  return cli::kExitDamaged;
}

}  // namespace

void AddDump(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<DumpArguments>();
  CLI::App* dump = app.add_subcommand("dump", "Print the events of a NetTrace file");
  dump->add_flag("--json", arguments->json, "Print one JSON object per line");
  dump->add_flag("--raw", arguments->raw,
                 "Show values as they are stored, without their EventHeader formats");
  dump->add_flag("--verbose", arguments->verbose,
                 "Also show tags, attributes and groups; --json always shows them");
  dump->add_flag("--file-order", arguments->file_order,
                 "Print events in the order of the file, without sorting them");
  AddAddedEventOptions(
      dump, &arguments->filter, "show",
      ": losses, CPUs that went offline or online, tracepoints that were left out");
  AddFilterOptions(dump, &arguments->filter);
  dump->add_option("file", arguments->path, "File to read; - is standard input")->required();
  dump->footer(
      "Events are printed in the order of time. Fields of EventHeader events are shown in their "
      "formats: for example errors with their names, IP addresses, and hexadecimal numbers.\n\n"
      "Exit code: 0 the file is complete; 1 it is cut or damaged, and everything before the "
      "damage was printed; 2 it cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace dump trace.nettrace\n"
      "  nettrace dump --json trace.nettrace | \\\n"
      "      jq -c 'select(.level <= 3) | .payload'\n"
      "  nettrace dump --provider MyProvider --level 3 \\\n"
      "      --since 2026-11-21T10:00:00Z trace.nettrace\n");
  dump->callback([arguments, exit_code] {
    *exit_code = WithinMemory("dump", {arguments->path}, [&] { return Dump(*arguments); });
  });
}

}  // namespace tools
