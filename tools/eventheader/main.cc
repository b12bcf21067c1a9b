// eventheader: registers, shows and explains EventHeader tracepoints, for scripts and users.
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
#include "tools/eventheader/commands.h"

namespace {

int Main(int argc, char** argv) {
  CLI::App app(
      "Register and list EventHeader tracepoints of user_events, and find out why nothing is "
      "recorded from them.",
      "eventheader");
  app.formatter(std::make_shared<cli::HelpFormatter>());
  app.require_subcommand(1);
  app.set_version_flag("--version", "eventheader " PROJECT_VERSION);
  app.fallthrough();
  tools::Invocation invocation;
  app.add_flag("-q,--quiet", invocation.quiet, "Print no messages except errors in the arguments");
  app.footer(
      "Results are printed on standard output, messages on standard error. 'eventheader COMMAND "
      "--help' shows the details of a command.\n\n"
      "Exit code: 0 done; 1 failed, and standard error shows the reason; 2 wrong usage; 3 nothing "
      "matched; 4 a tracepoint is in use; 5 a name has another definition; 6 doctor found a "
      "problem; 78 a file of registrations is invalid.\n\n"
      "Examples:\n"
      "  eventheader register MyCompany_MyService --levels 1-4 --keywords 0x1\n"
      "  eventheader list --json 'MyCompany_*'\n"
      "  eventheader catalog /usr/bin/my-service\n"
      "  eventheader unregister 'MyCompany_*'\n");
  tools::AddRegister(app, &invocation);
  tools::AddUnregister(app, &invocation);
  tools::AddList(app, &invocation);
  tools::AddWatch(app, &invocation);
  tools::AddCatalog(app, &invocation);
  tools::AddDoctor(app, &invocation);
  tools::AddName(app, &invocation);
  cli::AddCompletion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli::PrintUsage(app, error);
  }
  return invocation.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  cli::IgnoreFileSizeSignal();
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eventheader: %s\n", base::Printable(error.what()).c_str());
    return cli::kExitFailed;
  }
}
