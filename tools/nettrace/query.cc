// `nettrace query`: answers SQL about the events of files.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/query/database.h"
#include "tools/nettrace/query/inputs.h"
#include "tools/nettrace/query/result_output.h"
#include "tools/trace/event_filter.h"

namespace tools {
namespace {

constexpr char kQueryCommand[] = "query";

struct QueryArguments {
  std::vector<std::string> words;  // files and directories, and the statement
  query::Format format = query::Format::kTable;
  trace::EventFilter filter;

  std::vector<std::string> paths() const { return {words.begin(), words.end() - 1}; }
  const std::string& sql() const { return words.back(); }
};

int FailQuery(const absl::Status& status, int exit_code) {
  std::fflush(stdout);
  absl::FPrintF(stderr, "nettrace query: SQL: %s\n",
                base::Printable(std::string(status.message())));
  return exit_code;
}

// Prints the rows of the statement. Returns the error of the statement. Returns OK if standard
// output cannot be written.
absl::Status PrintRows(query::Database* database, sqlite3_stmt* statement, query::Format format) {
  // On a terminal, each row is shown at once.
  const std::size_t piece = isatty(STDOUT_FILENO) != 0 ? 1 : std::size_t{64} << 10;
  const std::unique_ptr<query::ResultOutput> output = query::CreateOutput(format, statement);
  std::string text;
  const auto write = [&text] {
    const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    text.clear();
    return is_written;
  };
  absl::StatusOr<bool> has_row = database->Step(statement);
  for (; has_row.ok() && *has_row; has_row = database->Step(statement)) {
    output->Add(&text);
    // FinishOutput reports that standard output cannot be written.
    if (text.size() >= piece && !write()) return absl::OkStatus();
  }
  if (has_row.ok() || format != query::Format::kTable) output->Finish(&text);
  write();
  return has_row.status();
}

int RunQuery(const QueryArguments& arguments) {
  Progress progress(kQueryCommand, isatty(STDOUT_FILENO) == 0);
  absl::StatusOr<std::vector<std::string>> paths = FindFiles(kQueryCommand, arguments.paths());
  if (!paths.ok()) {
    PrintFilesError(kQueryCommand, paths.status());
    return cli::kExitUnreadable;
  }
  query::Inputs inputs(*std::move(paths), arguments.filter, &progress);
  absl::StatusOr<std::unique_ptr<query::Database>> database = query::Database::Open(&inputs);
  if (!database.ok()) return FailQuery(database.status(), cli::kExitFailed);
  const absl::StatusOr<query::Statement> statement = (*database)->Prepare(arguments.sql());
  if (!statement.ok()) return FailQuery(statement.status(), cli::kExitUsage);
  if (const absl::Status status = inputs.Check(); !status.ok()) {
    PrintFilesError(kQueryCommand, status);
    return cli::kExitUnreadable;
  }
  const absl::Status status = PrintRows(database->get(), statement->get(), arguments.format);
  progress.Hide();
  if (!status.ok()) return FailQuery(status, cli::kExitFailed);
  if (const int code = FinishOutput(kQueryCommand, cli::kExitOk); code != cli::kExitOk) return code;
  int exit_code = cli::kExitOk;
  for (const std::string& remark : inputs.remarks()) {
    PrintInputError(kQueryCommand, inputs.Name(), absl::ResourceExhaustedError(remark));
    exit_code = cli::kExitFailed;
  }
  return std::max(exit_code, PrintProblems(kQueryCommand, inputs.problems()));
}

}  // namespace

void AddQuery(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<QueryArguments>();
  CLI::App* command = app.add_subcommand("query", "Query the events of a file in SQL");
  CLI::Option* const csv = command->add_flag_callback(
      "--csv", [arguments] { arguments->format = query::Format::kCsv; },
      "Print comma-separated values, with the names of the columns in the first line");
  command
      ->add_flag_callback(
          "--json", [arguments] { arguments->format = query::Format::kJson; },
          "Print one JSON object per line, with a member for each column")
      ->excludes(csv);
  AddAddedEventOptions(command, &arguments->filter, "read", "");
  AddFilterOptions(command, &arguments->filter);
  command
      ->add_option("file", arguments->words,
                   "Files to read, or directories whose .nettrace files are read; - is standard "
                   "input. The last word is the SELECT")
      ->option_text("... SQL")
      ->required()
      ->expected(2, -1);
  command->footer(
      "The tables are events, fields, activities, processes and losses; nettrace-query(1) lists "
      "their columns. Times are in ns since 1970, and durations in ns. utc(time) converts a time "
      "to text, ns(text) converts it back, and percentile(duration, 99) is an aggregate "
      "function.\n\n"
      "Exit code: 0 all rows were printed; 1 the file is truncated or damaged, and everything "
      "before the damage was read, or the statement failed; 2 the file cannot be read, the "
      "statement is wrong, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace query trace.nettrace \\\n"
      "      'SELECT provider, name, count(*) FROM events GROUP BY 1, 2'\n"
      "  nettrace query trace.nettrace \\\n"
      "      'SELECT name, percentile(duration, 99) FROM activities GROUP BY 1'\n"
      "  nettrace query --csv trace.nettrace \\\n"
      "      'SELECT utc(time), payload FROM events WHERE level <= 2'\n");
  command->callback([arguments, exit_code] {
    *exit_code =
        WithinMemory(kQueryCommand, arguments->paths(), [&] { return RunQuery(*arguments); });
  });
}

}  // namespace tools
