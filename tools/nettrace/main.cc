// nettrace: records, shows and checks NetTrace files, and sends requests to nettraced.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>

#include "tools/common/completion.h"
#include "tools/common/exit_codes.h"
#include "tools/common/help_formatter.h"
#include "tools/common/signals.h"
#include "tools/common/text.h"
#include "tools/common/usage.h"
#include "tools/nettrace/commands.h"

namespace {

int Main(int argc, char** argv) {
  CLI::App app("Record events of C++ services and the kernel in NetTrace files, and show them.",
               "nettrace");
  app.formatter(std::make_shared<tools::HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", "nettrace " PROJECT_VERSION);
  app.footer(
      "'nettrace COMMAND --help' shows the details of a command, with examples.\n\n"
      "Exit code: 0 done; 2 wrong usage. The help of each command has its other codes.\n");
  int exit_code = tools::kExitOk;
  tools::AddRecord(app, &exit_code);
  tools::AddDump(app, &exit_code);
  tools::AddInfo(app, &exit_code);
  tools::AddTop(app, &exit_code);
  tools::AddVerify(app, &exit_code);
  tools::AddRepair(app, &exit_code);
  tools::AddCut(app, &exit_code);
  tools::AddMerge(app, &exit_code);
  tools::AddExport(app, &exit_code);
  tools::AddImport(app, &exit_code);
  tools::AddReport(app, &exit_code);
  tools::AddCtl(app, &exit_code);
  tools::AddCompletion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (argc > 1 && app.get_subcommands().empty()) {
      std::fprintf(stderr, "nettrace: unknown command '%s'; 'nettrace --help' lists the commands\n",
                   tools::Printable(argv[1]).c_str());
      return tools::kExitUsage;
    }
    return tools::PrintUsage(app, error);
  } catch (const CLI::ParseError& error) {
    return tools::PrintUsage(app, error);
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  tools::IgnoreFileSizeSignal();
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nettrace: %s\n", tools::Printable(error.what()).c_str());
    return tools::kExitFailed;
  }
}
