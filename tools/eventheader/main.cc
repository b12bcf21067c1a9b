// eventheader: registers and lists EventHeader tracepoints, before any service has run.
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eventheader/tracepoint_name.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"
#include "tools/common/exit_codes.h"
#include "tools/common/json_text.h"
#include "tools/common/text.h"
#include "tools/common/usage.h"

namespace {

using tools::kExitFailed;
using tools::kExitOk;

void PrintError(const absl::Status& status) {
  absl::FPrintF(stderr, "eventheader: %s\n", tools::Printable(std::string(status.message())));
}

int RegisterAll(const std::vector<std::string>& names) {
  collector::UserEventRegistrations registrations;
  int exit_code = kExitOk;
  for (const std::string& name : names) {
    if (const absl::Status status = registrations.Register(name, /*persistent=*/true);
        !status.ok()) {
      PrintError(status);
      exit_code = kExitFailed;
    }
  }
  return exit_code;
}

void PrintJson(const collector::UserEvent& event, const eh::TracepointName& parts) {
  rapidjson::StringBuffer buffer;
  tools::JsonWriter json(buffer);
  json.StartObject();
  tools::PutText(&json, "name", event.name);
  tools::PutText(&json, "provider", parts.provider);
  tools::PutNumber(&json, "level", parts.level);
  tools::PutText(&json, "keyword", absl::StrFormat("0x%x", parts.keyword));
  tools::PutText(&json, "options", parts.options);
  tools::PutText(&json, "usedBy", event.used_by);
  json.EndObject();
  tools::PrintJsonLine(buffer);
}

void PrintRow(const collector::UserEvent& event, const std::optional<eh::TracepointName>& parts) {
  absl::PrintF("%-40s %-6s %-12s %s\n", tools::Printable(event.name),
               parts ? absl::StrCat(parts->level) : "-",
               parts ? absl::StrFormat("0x%x", parts->keyword) : "-",
               tools::Printable(event.used_by));
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
  if (!json) absl::PrintF("%-40s %-6s %-12s %s\n", "TRACEPOINT", "LEVEL", "KEYWORD", "USED BY");
  const absl::StatusOr<std::size_t> unclear =
      tracefs->ForEachUserEvent([&](const collector::UserEvent& event) {
        if (fnmatch(pattern.c_str(), std::string(event.name).c_str(), 0) != 0) return;
        const auto parts = eh::ParseTracepointName(event.name);
        if (!json) {
          PrintRow(event, parts);
        } else if (parts) {
          PrintJson(event, *parts);
        }
      });
  if (!unclear.ok()) {
    PrintError(unclear.status());
    return kExitFailed;
  }
  if (*unclear != 0) {
    absl::FPrintF(stderr,
                  "eventheader: %d lines of user_events_status are parts of names with line feeds "
                  "that tracefs does not show; they are not listed\n",
                  *unclear);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    PrintError(absl::DataLossError("standard output cannot be written"));
    return kExitFailed;
  }
  return kExitOk;
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
  CLI::App* list_command =
      app.add_subcommand("list", "List the registered tracepoints and their users");
  list_command->add_option("pattern", pattern, "Shell pattern for the names");
  list_command->add_flag("--json", json, "One JSON object a line; EventHeader tracepoints only");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return tools::PrintUsage(app, error);
  }
  return register_command->parsed() ? RegisterAll(names) : List(pattern, json);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eventheader: %s\n", tools::Printable(error.what()).c_str());
    return kExitFailed;
  }
}
