// The subcommands of `eventheader`. Each function whose name begins with Add adds a subcommand to
// the command line. When the user selects the subcommand, it runs and sets the exit code.
#ifndef TOOLS_EVENTHEADER_COMMANDS_H_
#define TOOLS_EVENTHEADER_COMMANDS_H_

#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace tools {

// Holds the state that all subcommands share. Results go to standard output. Messages go to
// standard error unless `quiet` is set.
struct Invocation {
  bool quiet = false;
  int exit_code = 0;

  // Prints "eventheader: MESSAGE". Sets the exit code if it is still 0.
  void Fail(const absl::Status& status, int code);
  void Fail(const absl::Status& status);  // uses the code kExitFailed
  // Prints a message and leaves the exit code as it is.
  void Say(const std::string& message) const;
  // Flushes standard output. Calls Fail() if standard output cannot be written. Must be called
  // after the last output.
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
