#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "nettrace/time_ordered_reader.h"
#include "tools/common/exit_codes.h"
#include "tools/common/text.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/event_filter.h"
#include "tools/nettrace/event_json.h"
#include "tools/nettrace/open_input.h"

namespace tools {
namespace {

struct Arguments {
  std::string path;
  bool json = false;
  bool raw = false;
  bool verbose = false;
  bool file_order = false;
  bool processes = false;
  bool account = false;
  EventFilter filter;
};

// Prints the events that `steps` goes through: `reader` in the order of the file, or the
// TimeOrderedReader around it in that of time.
template <typename AnyReader>
void PrintEvents(AnyReader* steps, const nettrace::Reader& reader, const Arguments& arguments) {
  using Step = nettrace::Reader::Step;
  const PayloadStyle style = arguments.json ? PayloadStyle::kForPrograms : PayloadStyle::kForPeople;
  const PayloadStyle raw = arguments.json ? PayloadStyle::kRaw : PayloadStyle::kRawForPeople;
  PayloadJson payloads(arguments.raw ? raw : style);
  for (Step step = steps->Next(); step != Step::kEnd; step = steps->Next()) {
    if (step == Step::kSequencePoint) {
      payloads.ForgetRows();
      // Where the trace is still being recorded, what comes next takes a while.
      std::fflush(stdout);
    }
    if (step != Step::kEvent) continue;
    const nettrace::Event& event = steps->event();
    if (!arguments.filter.Passes(reader, event)) continue;
    std::string line = arguments.json ? EventToJson(reader, event, &payloads)
                                      : EventToText(reader, event, arguments.verbose, &payloads);
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) return;
  }
}

// Prints the error of the temporary file.
void PrintSortError(const std::string& path, const absl::Status& status) {
  PrintInputError("dump", path, status);
  absl::FPrintF(stderr,
                "nettrace dump: more lies between two sequence points than is sorted in memory; "
                "TMPDIR names a folder with room for it, and --file-order does not sort\n");
}

int Dump(const Arguments& arguments) {
  // Events on the terminal are progress enough.
  Progress progress("dump", isatty(STDOUT_FILENO) == 0);
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> opened = OpenInput(arguments.path, &progress);
  if (!opened.ok()) {
    PrintInputError("dump", arguments.path, opened.status());
    return kExitUnreadable;
  }
  nettrace::TimeOrderedReader ordered(*std::move(opened));
  nettrace::Reader& reader = ordered.reader();
  if (arguments.file_order) {
    PrintEvents(&reader, reader, arguments);
  } else {
    PrintEvents(&ordered, reader, arguments);
  }
  progress.Hide();
  if (const int exit_code = FinishOutput("dump", kExitOk); exit_code != kExitOk) return exit_code;
  if (!ordered.sort_status().ok()) {
    PrintSortError(arguments.path, ordered.sort_status());
    return kExitFailed;
  }
  if (!reader.traceevent_refusal().empty()) {
    PrintInputError("dump", arguments.path, absl::UnimplementedError(RefusalText(reader)));
  }
  if (reader.status().ok()) return kExitOk;
  PrintInputError("dump", arguments.path, reader.status());
  return kExitDamaged;
}

}  // namespace

void AddDump(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* dump = app.add_subcommand("dump", "Print every event of a NetTrace file");
  dump->add_flag("--json", arguments->json, "One JSON object a line");
  dump->add_flag("--raw", arguments->raw,
                 "Show values as they are in the file, not in their EventHeader formats");
  dump->add_flag("--verbose", arguments->verbose,
                 "Show tags, attributes and groups, too; --json does so at all times");
  dump->add_flag("--file-order", arguments->file_order,
                 "Do not sort: events come in the order of the file");
  dump->add_flag("--processes", arguments->processes,
                 "Show the events that describe processes (provider Universal.System), too");
  dump->add_flag(
      "--account", arguments->account,
      "Show what the recording says of itself (provider NetTrace.Collector), too: losses,\n"
      "CPUs that went and came, tracepoints that were left out");
  AddFilterOptions(dump, &arguments->filter);
  dump->add_option("file", arguments->path, "File to read; - is standard input")->required();
  dump->footer(
      "Events come in the order of time. Fields of EventHeader events are shown in their formats:\n"
      "errnos with their names, addresses, hex, booleans and times.\n\n"
      "Exit code: 0 the file is whole; 1 it is cut or damaged, and all that came before was "
      "printed;\n"
      "2 it cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace dump trace.nettrace\n"
      "  nettrace dump --json trace.nettrace | jq -c 'select(.level <= 3) | .payload'\n"
      "  nettrace dump --provider MyProvider --level 3 --from 2026-11-21T10:00:00Z "
      "trace.nettrace\n");
  dump->callback([arguments, exit_code] {
    if (!arguments->processes) arguments->filter.processes = EventFilter::Added::kHidden;
    if (!arguments->account) arguments->filter.account = EventFilter::Added::kHidden;
    *exit_code = WithinMemory("dump", {arguments->path}, [&] { return Dump(*arguments); });
  });
}

}  // namespace tools
