// `nettrace top`: shows statistics of events, live on a full screen, or once as a table or JSON.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/base/progress_line.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/value_options.h"
#include "tools/nettrace/command/color_option.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/top/numbers.h"
#include "tools/nettrace/top/run.h"
#include "tools/trace/event_filter.h"

namespace tools {
namespace {

struct TopArguments : top::RunOptions {
  bool once = false;
};

void AddShown(CLI::App* command, TopArguments* arguments) {
  std::vector<std::string> views;
  views.reserve(top::kViews.size());
  for (const top::View view : top::kViews) views.emplace_back(top::NameOf(view));
  command
      ->add_option_function<std::string>(
          "--by",
          [arguments, views](const std::string& name) {
            const auto found = std::find(views.begin(), views.end(), name);
            arguments->view = top::kViews[static_cast<std::size_t>(found - views.begin())];
          },
          "Kind of rows to show first, or in the table")
      ->check(CLI::IsMember(views))
      ->default_str("event");
  std::vector<std::string> columns;
  columns.reserve(top::kColumns.size());
  for (const top::ColumnFacts& facts : top::kColumns) columns.emplace_back(facts.name);
  command
      ->add_option_function<std::string>(
          "--sort",
          [arguments, columns](const std::string& name) {
            const auto found = std::find(columns.begin(), columns.end(), name);
            arguments->column =
                top::kColumns[static_cast<std::size_t>(found - columns.begin())].column;
          },
          "Column to sort the rows by, the largest value first")
      ->check(CLI::IsMember(columns))
      ->default_str("rate");
  command->add_flag("--reverse", arguments->reverse, "Sort the smallest value first");
  command
      ->add_option("--max-rows", arguments->max_rows,
                   "Maximum number of rows of each kind; if there are more, those with the fewest "
                   "events are combined")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
}

void AddSources(CLI::App* command, TopArguments* arguments) {
  CLI::Option* file =
      command->add_option("file", arguments->paths,
                          "Files to read, or directories whose .nettrace files are read; - is "
                          "standard input");
  CLI::Option* selectors =
      command
          ->add_option("-e", arguments->selectors,
                       "Record these events, like nettrace record -e; may be repeated")
          ->allow_extra_args(false);
  CLI::Option* session = command->add_option("--session", arguments->session,
                                             "Show the events of this session of nettraced");
  command->add_option("--socket", arguments->socket, "Control socket of the daemon")
      ->needs(session);
  command
      ->add_flag("-f,--follow", arguments->follow,
                 "Wait at the end of the file for more events, until the recording ends")
      ->excludes(selectors, session);
  file->excludes(selectors, session);
  selectors->excludes(session);
}

}  // namespace

void AddTop(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<TopArguments>();
  CLI::App* command = app.add_subcommand("top", "Show the rates and durations of events live");
  AddSources(command, arguments.get());
  AddShown(command, arguments.get());
  cli::AddDurationOption(
      command, "--interval", absl::Milliseconds(100),
      [arguments](absl::Duration time) { arguments->interval = time; },
      "Time between two updates, and minimum time over which rates are computed; default 1s, "
      "minimum 100ms");
  command->add_flag("--once", arguments->once,
                    "Print a table at the end of the stream or after --for; the default if "
                    "standard output is not a terminal");
  command->add_flag("--json", arguments->json, "Print a JSON object with all rows; implies --once");
  cli::AddDurationOption(
      command, "--for", absl::ZeroDuration(),
      [arguments](absl::Duration time) { arguments->run_for = time; },
      "Read for this time, e.g. 10s; implies --once. For a table of -e or --session, the default "
      "is --interval");
  AddColorOption(command, &arguments->color,
                 "Color levels, errors, and durations that have grown since the minute before");
  AddFilterOptions(command, &arguments->filter);
  command->footer(
      "Keys: p, e, o, t, c, l and f show providers, events, processes, threads, CPUs, levels and "
      "functions on stacks; left and right select the column to sort by; Enter shows the last "
      "events of a row; "
      "/ filters rows; space freezes the screen; q quits; ? shows all keys.\n\n"
      "Exit code: 0 everything was read, or the user stopped it; 1 the input is truncated or "
      "damaged, and everything before the damage was counted, or the recording failed; 2 the input "
      "cannot be read, or wrong usage; 3 instead of 0 if a selector matched no tracepoint that can "
      "be recorded.\n\n"
      "Examples:\n"
      "  nettrace top --once --by provider trace.nettrace\n"
      "  nettrace top --json trace.nettrace | jq '.byEvent.rows[0]'\n"
      "  nettrace top --once --by function --sort self stacks.nettrace\n"
      "  nettrace top --once -e 'sched:*' --for 2s\n"
      "  nettrace record -o - -e sched:sched_switch --duration 1s | nettrace top -\n");
  command->callback([arguments, exit_code] {
    if (arguments->paths.empty() && arguments->selectors.empty() && arguments->session.empty()) {
      throw CLI::RequiredError("file, -e or --session");
    }
    arguments->filter.processes = trace::EventFilter::Added::kHidden;
    arguments->filter.account = trace::EventFilter::Added::kHidden;
    const bool is_screen = !arguments->once && !arguments->json && !arguments->run_for &&
                           base::IsScreen(STDOUT_FILENO);
    if (!is_screen && arguments->is_live() && !arguments->run_for) {
      arguments->run_for = arguments->interval;
    }
    absl::StatusOr<std::vector<std::string>> found = FindFiles(top::kCommand, arguments->paths);
    if (!found.ok()) {
      PrintFilesError(top::kCommand, found.status());
      *exit_code = cli::kExitUnreadable;
      return;
    }
    arguments->paths = *std::move(found);
    *exit_code = WithinMemory(top::kCommand, {arguments->source()}, [&] {
      return is_screen ? top::RunScreen(*arguments) : top::RunOnce(*arguments);
    });
  });
}

}  // namespace tools
