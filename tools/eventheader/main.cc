// eventheader: looks after EventHeader tracepoints from scripts, before a service has ever run.
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "eventheader/tracepoint_name.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

void PrintError(const absl::Status& status) {
  absl::FPrintF(stderr, "eventheader: %s\n", status.message());
}

int RegisterAll(const std::vector<std::string>& names) {
  collector::UserEventRegistrations registrations;
  int exit_code = 0;
  for (const std::string& name : names) {
    if (const absl::Status status = registrations.Register(name, /*persistent=*/true);
        !status.ok()) {
      PrintError(status);
      exit_code = kExitFailed;
    }
  }
  return exit_code;
}

void PrintEvent(const collector::UserEvent& event, bool json) {
  const auto parts = eh::ParseTracepointName(event.name);
  // Names are made of letters, digits and '_' where they are EventHeader's; others pass as they are
  // in the table only.
  if (!parts) {
    if (!json) absl::PrintF("%-40s %-6s %-12s %s\n", event.name, "-", "-", event.used_by);
    return;
  }
  if (json) {
    absl::PrintF(
        "{\"name\":\"%s\",\"provider\":\"%s\",\"level\":%u,\"keyword\":\"0x%x\",\"options\":\"%s\","
        "\"usedBy\":\"%s\"}\n",
        event.name, std::string(parts->provider), parts->level, parts->keyword,
        std::string(parts->options), event.used_by);
  } else {
    absl::PrintF("%-40s %-6u 0x%-10x %s\n", event.name, parts->level, parts->keyword,
                 event.used_by);
  }
}

int List(const std::string& pattern, bool json) {
  absl::StatusOr<collector::Tracefs> tracefs = collector::Tracefs::Find();
  if (!tracefs.ok()) {
    PrintError(tracefs.status());
    return kExitFailed;
  }
  if (!tracefs->HasUserEvents()) {
    PrintError(absl::UnimplementedError(
        "this kernel has no user_events; use Linux 6.4 or newer with CONFIG_USER_EVENTS=y"));
    return kExitFailed;
  }
  absl::StatusOr<std::vector<collector::UserEvent>> events = tracefs->UserEvents();
  if (!events.ok()) {
    PrintError(events.status());
    return kExitFailed;
  }
  if (!json) absl::PrintF("%-40s %-6s %-12s %s\n", "TRACEPOINT", "LEVEL", "KEYWORD", "USED BY");
  for (const collector::UserEvent& event : *events) {
    if (fnmatch(pattern.c_str(), event.name.c_str(), 0) == 0) PrintEvent(event, json);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    PrintError(absl::DataLossError("standard output cannot be written"));
    return kExitFailed;
  }
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app("Registers and lists EventHeader tracepoints of user_events.", "eventheader");
  app.require_subcommand(1);
  app.footer(
      "Exit code: 0 done; 1 something failed, standard error says what; 2 usage.\n\n"
      "Examples:\n"
      "  eventheader register MyCompany_MyService_L4K1 MyCompany_MyService_L2K1\n"
      "  eventheader list\n"
      "  eventheader list --json 'MyCompany_*'\n");

  std::vector<std::string> names;
  CLI::App* register_command = app.add_subcommand(
      "register",
      "Register tracepoints so that they stay until they are deleted or the machine restarts");
  register_command->add_option("names", names, "Tracepoint names, Provider_L<level>K<keyword>")
      ->required();

  std::string pattern = "*";
  bool json = false;
  CLI::App* list_command = app.add_subcommand("list", "List what is registered, and who listens");
  list_command->add_option("pattern", pattern, "Shell pattern for the names");
  list_command->add_flag("--json", json, "One JSON object a line; EventHeader tracepoints only");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return register_command->parsed() ? RegisterAll(names) : List(pattern, json);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eventheader: %s\n", error.what());
    return kExitFailed;
  }
}
