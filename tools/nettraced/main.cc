// nettraced: collects events of services and the kernel into NetTrace files, always.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/collector/config/read_settings.h"
#include "tools/collector/control/server.h"
#include "tools/common/completion.h"
#include "tools/common/exit_codes.h"
#include "tools/common/usage.h"
#include "tools/nettraced/daemon.h"
#include "tools/nettraced/log.h"
#include "tools/nettraced/main_loop.h"

namespace nettraced {
namespace {

struct Arguments {
  std::vector<std::string> directories = collector::kSettingsDirectories;
  std::string state_directory;
  std::string runtime_directory;
  bool only_check = false;
};

// The first of these that says something: the command line, systemd, the settings. systemd may name
// several directories, of which the first is the daemon's.
std::string ChooseDirectory(const std::string& argument, const char* variable,
                            const std::string& setting) {
  if (!argument.empty()) return argument;
  const char* const of_systemd = std::getenv(variable);
  if (of_systemd == nullptr || *of_systemd == '\0') return setting;
  const std::vector<std::string> all = absl::StrSplit(of_systemd, ':');
  return all.front();
}

int Fail(const absl::Status& status, int exit_code) {
  Log(LOG_ERR, std::string(status.message()));
  return exit_code;
}

// The settings, with the directories that hold whatever the files say.
absl::StatusOr<collector::DaemonSettings> Read(const Arguments& arguments) {
  absl::StatusOr<collector::DaemonSettings> settings =
      collector::ReadSettings(arguments.directories);
  if (!settings.ok()) return settings;
  settings->state_directory =
      ChooseDirectory(arguments.state_directory, "STATE_DIRECTORY", settings->state_directory);
  settings->runtime_directory = ChooseDirectory(arguments.runtime_directory, "RUNTIME_DIRECTORY",
                                                settings->runtime_directory);
  return settings;
}

int RunDaemon(const Arguments& arguments) {
  absl::StatusOr<collector::DaemonSettings> settings = Read(arguments);
  if (!settings.ok()) return Fail(settings.status(), tools::kExitConfiguration);
  if (arguments.only_check) return tools::kExitOk;
  auto loop = MainLoop::Create();
  if (!loop.ok()) return Fail(loop.status(), tools::kExitFailed);
  collector::ControlServerOptions control;
  control.path = absl::StrCat(settings->runtime_directory, "/control");
  control.control_group = settings->control_group;
  control.look_group = settings->look_group;
  control.version = NETTRACED_VERSION;
  control.on_change = [](const std::string& message) { Log(LOG_NOTICE, message); };
  Daemon daemon(
      *std::move(settings), [&arguments] { return Read(arguments); },
      [loop = loop->get()] { loop->Wake(); });
  const auto server = collector::ControlServer::Start(&daemon, std::move(control));
  if (!server.ok()) {
    // As a group that is not there.
    const bool is_setting = absl::IsInvalidArgument(server.status());
    return Fail(server.status(), is_setting ? tools::kExitConfiguration : tools::kExitFailed);
  }
  (*loop)->Run(&daemon);
  return tools::kExitOk;
}

int Main(int argc, char** argv) {
  CLI::App app("Collects events of C++ services and the kernel into NetTrace files, all the time.",
               "nettraced");
  Arguments arguments;
  int exit_code = tools::kExitOk;
  app.add_option("--config", arguments.directories,
                 "Directories of settings, NAME.toml; a file in an earlier one hides those of its "
                 "name in the others")
      ->capture_default_str();
  app.add_option("--state-directory", arguments.state_directory,
                 "Where files go whose session names no directory; in place of what systemd and "
                 "the settings say");
  app.add_option("--runtime-directory", arguments.runtime_directory,
                 "Where the control socket is; in place of what systemd and the settings say");
  app.add_flag("--check-config", arguments.only_check,
               "Say what is wrong with the settings, and do nothing");
  app.set_version_flag("--version", "nettraced " NETTRACED_VERSION);
  app.footer(
      "SIGTERM ends it, with all events so far in complete files; SIGHUP has it read its settings\n"
      "anew; SIGUSR1 begins new files; SIGUSR2 has all flight recorders write theirs.\n\n"
      "Exit code: 0 it was asked to end; 1 it failed; 2 usage; 78 the settings are wrong.\n\n"
      "Examples:\n"
      "  nettraced --check-config\n"
      "  nettraced --config ./settings --state-directory ./state --runtime-directory ./run\n");
  app.callback([&] {
    if (app.get_subcommands().empty()) exit_code = RunDaemon(arguments);
  });
  tools::AddCompletion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tools::PrintUsage(app, error);
  }
  return exit_code;
}

}  // namespace
}  // namespace nettraced

int main(int argc, char** argv) {
  try {
    return nettraced::Main(argc, argv);
  } catch (const std::exception& error) {
    nettraced::Log(LOG_ERR, error.what());
    return tools::kExitFailed;
  }
}
