// eventheader: registers, shows and explains EventHeader tracepoints, for scripts and people.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tools/common/completion.h"
#include "tools/common/exit_codes.h"
#include "tools/common/text.h"
#include "tools/common/usage.h"
#include "tools/eventheader/commands.h"

namespace {

int Main(int argc, char** argv) {
  CLI::App app(
      "Registers and lists EventHeader tracepoints of user_events, and says why nothing "
      "is collected from them.",
      "eventheader");
  app.require_subcommand(1);
  app.fallthrough();
  tools::Invocation invocation;
  app.add_flag("-q,--quiet", invocation.quiet,
               "Print no messages, but for those about the command line; the exit code tells");
  app.footer(
      "Results go to standard output, messages to standard error. 'eventheader COMMAND --help' "
      "says\n"
      "more.\n\n"
      "Exit code: 0 done; 1 it failed, standard error says what; 2 usage; 3 nothing matched; 4 in\n"
      "use; 5 a name is taken by another definition; 6 doctor has found something; 78 a file of\n"
      "registrations is wrong.\n\n"
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
  tools::AddCompletion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tools::PrintUsage(app, error);
  }
  return invocation.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eventheader: %s\n", tools::Printable(error.what()).c_str());
    return tools::kExitFailed;
  }
}
