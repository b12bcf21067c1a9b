// The subcommands of `eventheader`. Each adds itself to the command line; when it is chosen, it
// runs and sets the exit code.
#ifndef TOOLS_EVENTHEADER_COMMANDS_H_
#define TOOLS_EVENTHEADER_COMMANDS_H_

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace tools {

// What the subcommands share. Results go to standard output; messages to standard error, unless
// they are not wanted.
struct Invocation {
  bool quiet = false;
  int exit_code = 0;

  // Prints "eventheader: MESSAGE", and sets the exit code if it is the first that is not 0.
  void Fail(const absl::Status& status, int code);
  void Fail(const absl::Status& status);  // kExitFailed
  // Prints a message that changes nothing.
  void Say(const std::string& message) const;
  // To be called when all has been printed: an output that cannot be written is a failure.
  void FinishOutput();
};

void AddRegister(CLI::App& app, Invocation* invocation);
void AddUnregister(CLI::App& app, Invocation* invocation);
void AddList(CLI::App& app, Invocation* invocation);
void AddWatch(CLI::App& app, Invocation* invocation);
void AddCatalog(CLI::App& app, Invocation* invocation);
void AddDoctor(CLI::App& app, Invocation* invocation);
void AddName(CLI::App& app, Invocation* invocation);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_COMMANDS_H_
