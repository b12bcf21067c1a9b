// nettraced: continuously records events of services and the kernel into NetTrace files.
#include <malloc.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/cli/completion.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/help_formatter.h"
#include "tools/cli/usage.h"
#include "tools/control/server.h"
#include "tools/nettraced/activated_socket.h"
#include "tools/nettraced/config/read_settings.h"
#include "tools/nettraced/daemon.h"
#include "tools/nettraced/log.h"
#include "tools/nettraced/main_loop.h"
#include "tools/nettraced/state_lock.h"

namespace nettraced {
namespace {

struct DaemonArguments {
  std::vector<std::string> directories = kSettingsDirectories;
  std::string state_directory;
  std::string runtime_directory;
  bool only_check = false;
};

// Returns `argument`, the directory of the command line. If it is "", returns the directory in the
// environment variable `variable`, which systemd sets, or else `setting`. systemd may name several
// directories; the first directory is the daemon's.
std::string ChooseDirectory(const std::string& argument, const char* variable,
                            const std::string& setting) {
  if (!argument.empty()) return argument;
  const char* const of_systemd = std::getenv(variable);
  if (of_systemd == nullptr || *of_systemd == '\0') return setting;
  const std::vector<std::string> all = absl::StrSplit(of_systemd, ':');
  return all.front();
}

int Fail(const absl::Status& status, int exit_code) {
  LogBeforeExit(LOG_ERR, std::string(status.message()));
  return exit_code;
}

// Reads the settings. The directories of the command line and of systemd override the directories
// in the files.
absl::StatusOr<DaemonSettings> Read(const DaemonArguments& arguments) {
  absl::StatusOr<DaemonSettings> settings = ReadSettings(
      arguments.directories, ChooseDirectory(arguments.state_directory, "STATE_DIRECTORY", ""));
  if (!settings.ok()) return settings;
  settings->runtime_directory = ChooseDirectory(arguments.runtime_directory, "RUNTIME_DIRECTORY",
                                                settings->runtime_directory);
  return settings;
}

int RunDaemon(const DaemonArguments& arguments) {
  absl::StatusOr<DaemonSettings> settings = Read(arguments);
  if (!settings.ok()) return Fail(settings.status(), cli::kExitConfiguration);
  if (!settings->errors.ok()) {
    // Without a session, the daemon has nothing to do.
    if (arguments.only_check || settings->sessions.empty()) {
      return Fail(settings->errors, cli::kExitConfiguration);
    }
    Log(LOG_ERR, absl::StrCat("invalid settings; the sessions of these files are left out: ",
                              settings->errors.message()));
  }
  if (arguments.only_check) return cli::kExitOk;
  ActivatedSocket ring_socket = TakeActivatedSocket();
  const absl::StatusOr<base::UniqueFd> lock = LockStateDirectory(settings->state_directory);
  if (absl::IsAlreadyExists(lock.status())) return Fail(lock.status(), cli::kExitFailed);
  if (!lock.ok()) {
    // Continues, because sessions with files in other directories can still write.
    Log(LOG_WARNING,
        absl::StrCat(lock.status().message(),
                     "; nettraced cannot check whether another nettraced uses this directory"));
  }
  auto loop = MainLoop::Create();
  if (!loop.ok()) return Fail(loop.status(), cli::kExitFailed);
  control::ControlServerOptions control;
  control.path = absl::StrCat(settings->runtime_directory, "/control");
  control.control_group = settings->control_group;
  control.look_group = settings->look_group;
  control.version = PROJECT_VERSION;
  control.on_change = [](const std::string& message) { Log(LOG_NOTICE, message); };
  DaemonArguments reload = arguments;
  reload.state_directory = settings->state_directory;  // another directory needs a restart
  Daemon daemon(
      *std::move(settings), [reload] { return Read(reload); },
      [loop = loop->get()] { loop->Wake(); });
  daemon.SetRingSocket(std::move(ring_socket));
  const auto server = control::ControlServer::Start(&daemon, std::move(control));
  if (!server.ok()) {
    // InvalidArgument means that the settings are wrong; for example, the group does not exist.
    const bool is_setting = absl::IsInvalidArgument(server.status());
    return Fail(server.status(), is_setting ? cli::kExitConfiguration : cli::kExitFailed);
  }
  (*loop)->Run(&daemon);
  return cli::kExitOk;
}

int Main(int argc, char** argv) {
  // Saves memory. Freed memory stays in the arena of its thread. By default, malloc uses up to 8
  // arenas for each CPU, which fill with the freed memory of the connections' threads.
  mallopt(M_ARENA_MAX, 2);
  CLI::App app("Record events of C++ services and the kernel continuously in NetTrace files.",
               "nettraced");
  app.formatter(std::make_shared<cli::HelpFormatter>());
  DaemonArguments arguments;
  int exit_code = cli::kExitOk;
  app.add_option("--config", arguments.directories,
                 "Directories with settings files NAME.toml, or single files; a file overrides "
                 "files of the same name in later directories")
      ->capture_default_str();
  app.add_option(
      "--state-directory", arguments.state_directory,
      "Directory for the files of sessions whose settings name no directory; overrides systemd "
      "and the settings");
  app.add_option(
      "--runtime-directory", arguments.runtime_directory,
      "Directory of the control socket and of the socket for services; overrides systemd and "
      "the settings");
  app.add_flag("--check-config", arguments.only_check,
               "Check the settings, print their errors, and exit");
  app.set_version_flag("--version", "nettraced " PROJECT_VERSION);
  app.footer(
      "SIGTERM ends the daemon, after all events so far are in complete files. SIGHUP makes it "
      "read its settings again, SIGUSR1 starts new files, and SIGUSR2 makes all flight recorders "
      "write snapshots.\n\n"
      "Exit code: 0 ended by a signal, or --check-config found no error; 1 failed; 2 wrong usage; "
      "78 no session has valid settings, a setting of the control socket is invalid, or "
      "--check-config found an invalid file.\n\n"
      "Examples:\n"
      "  nettraced --check-config\n"
      "  nettraced --check-config --config ./shop.toml\n"
      "  nettraced --config ./settings --state-directory ./state \\\n"
      "      --runtime-directory ./run\n");
  app.callback([&] {
    if (app.get_subcommands().empty()) exit_code = RunDaemon(arguments);
  });
  cli::AddCompletion(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli::PrintUsage(app, error);
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
    return cli::kExitFailed;
  }
}
