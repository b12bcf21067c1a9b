// nettrace: records, shows and checks NetTrace files, and sends requests to nettraced.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>

#include "tools/base/text.h"
#include "tools/cli/completion.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/help_formatter.h"
#include "tools/cli/signals.h"
#include "tools/cli/usage.h"
#include "tools/nettrace/commands.h"

namespace {

int Main(int argc, char** argv) {
  CLI::App app("Record events of C++ services and the kernel in NetTrace files, and show them.",
               "nettrace");
  app.formatter(std::make_shared<cli::HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", "nettrace " PROJECT_VERSION);
  app.footer(
      "'nettrace COMMAND --help' shows the details of a command.\n\n"
      "Exit code: 0 done; 2 wrong usage. The help of each command has its other codes.\n\n"
      "Examples:\n"
      "  nettrace record -e 'MyCompany_*' -o trace.nettrace\n"
      "  nettrace dump trace.nettrace\n"
      "  nettrace report -o report.html trace.nettrace\n"
      "  nettrace ctl status\n");
  int exit_code = cli::kExitOk;
  tools::AddRecord(app, &exit_code);
  tools::AddDump(app, &exit_code);
  tools::AddInfo(app, &exit_code);
  tools::AddTop(app, &exit_code);
  tools::AddVerify(app, &exit_code);
  tools::AddRepair(app, &exit_code);
  tools::AddCut(app, &exit_code);
  tools::AddMerge(app, &exit_code);
  tools::AddSymbolize(app, &exit_code);
  tools::AddExport(app, &exit_code);
  tools::AddImport(app, &exit_code);
  tools::AddQuery(app, &exit_code);
  tools::AddReport(app, &exit_code);
  tools::AddShip(app, &exit_code);
  tools::AddCtl(app, &exit_code);
  cli::AddCompletion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli::PrintUsage(app, error);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  cli::IgnoreFileSizeSignal();
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nettrace: %s\n", base::Printable(error.what()).c_str());
    return cli::kExitFailed;
  }
}
