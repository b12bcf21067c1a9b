// `eventheader list`: lists the tracepoints of user_events, and those of services that pass their
// events through rings in user space.
#include <CLI/CLI.hpp>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/control/messages.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/ring_tracepoints.h"
#include "tools/eventheader/tracepoint_json.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {
namespace {

struct ListArguments {
  std::vector<std::string> patterns;
  std::string socket = control::kControlPath;
  bool json = false;
  bool verbose = false;
};

constexpr char kRow[] = "%-40s %-6s %-12s %-10s %-10s %-8s %s\n";

const char* PersistentText(const Tracepoint& tracepoint, const Holders& holders) {
  const std::optional<bool> is_persistent = IsPersistent(tracepoint, holders);
  if (!is_persistent) return "?";
  return *is_persistent ? "yes" : "no";
}

void PrintRow(const Tracepoint& tracepoint, const Holders& holders) {
  const auto parts = tracepoint.EventHeader();
  const auto group = parts ? eh::FindOption(parts->options, 'G') : std::nullopt;
  absl::PrintF(kRow, base::Printable(tracepoint.name), parts ? absl::StrCat(parts->level) : "-",
               parts ? absl::StrFormat("0x%x", parts->keyword) : "-",
               group ? std::string(*group) : "-", PersistentText(tracepoint, holders),
               tracepoint.hits ? absl::StrCat(*tracepoint.hits) : "-",
               base::Printable(tracepoint.used_by));
}

void PrintJson(const Tracepoint& tracepoint, const Holders& holders) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  PutTracepoint(&json, tracepoint);
  json.Key("persistent");
  if (const auto persistent = IsPersistent(tracepoint, holders); persistent) {
    json.Bool(*persistent);
  } else {
    json.Null();
  }
  json.EndObject();
  base::PrintJsonLine(buffer);
}

// Prints the tracepoints. Reports the tracepoints that no EventHeader service can use.
void Print(const std::vector<Tracepoint>& tracepoints, bool as_json, const Invocation& invocation) {
  const Holders holders = FindHolders();
  if (!as_json && !tracepoints.empty()) {
    absl::PrintF(kRow, "TRACEPOINT", "LEVEL", "KEYWORD", "GROUP", "PERSISTENT", "HITS", "USED BY");
  }
  for (const Tracepoint& tracepoint : tracepoints) {
    if (as_json) {
      PrintJson(tracepoint, holders);
    } else {
      PrintRow(tracepoint, holders);
    }
    if (tracepoint.IsTaken()) {
      invocation.Say(absl::StrCat(
          "tracepoint ", tracepoint.name,
          " has an EventHeader name, but not EventHeader's fields (it has '", *tracepoint.fields,
          "'); services cannot register it until 'eventheader unregister' has deleted it"));
    }
  }
}

// Returns the tracepoints of user_events whose names match one of the patterns.
absl::StatusOr<TracepointList> ListOfKernel(const std::vector<std::string>& patterns) {
  ASSIGN_OR_RETURN(const collector::Tracefs tracefs, FindUserEvents());
  return ListTracepoints(tracefs, patterns);
}

void List(const ListArguments& arguments, Invocation* invocation) {
  absl::StatusOr<TracepointList> list = ListOfKernel(arguments.patterns);
  const auto services = ServicesClient(arguments.socket).List();
  if (!list.ok() && !services.ok()) {
    return invocation->Fail(NeitherAnswers(list.status(), services.status()));
  }
  if (!list.ok()) {
    // Without tracefs or user_events, services use only rings, so the list is complete, and the
    // error is reported only on request. Without permission, tracepoints may be missing.
    if (arguments.verbose || absl::IsPermissionDenied(list.status())) {
      invocation->Say(
          absl::StrCat("tracepoints of user_events are not listed: ", list.status().message()));
    }
    list = TracepointList();
  }
  if (services.ok()) {
    std::vector<Tracepoint> more = RingTracepoints(*services, arguments.patterns);
    std::move(more.begin(), more.end(), std::back_inserter(list->tracepoints));
  } else if (arguments.verbose) {
    invocation->Say(absl::StrCat("services that use shared memory are not listed: ",
                                 services.status().message()));
  }
  Print(list->tracepoints, arguments.json, *invocation);
  if (list->unclear != 0) {
    invocation->Say(
        absl::StrCat("user_events_status: ", base::Counted(list->unclear, "line"),
                     " cannot be assigned to tracepoints, because some names contain line feeds; "
                     "all other tracepoints are listed"));
  }
  if (list->tracepoints.empty()) {
    invocation->Fail(
        absl::NotFoundError(
            arguments.patterns.empty()
                ? "no tracepoint is registered; start a service, or use 'eventheader register'"
                : "no tracepoint matches a pattern; 'eventheader list' shows all tracepoints"),
        cli::kExitUnmatched);
  }
  invocation->FinishOutput();
}

}  // namespace

void AddList(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<ListArguments>();
  CLI::App* command = app.add_subcommand("list", "List the tracepoints and their users");
  command->add_option("pattern", arguments->patterns,
                      "Shell patterns for the names of tracepoints");
  command->add_option("--socket", arguments->socket, "Control socket of nettraced")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON object per line");
  command->add_flag("-v,--verbose", arguments->verbose,
                    "Report why tracepoints of the kernel or of nettraced are missing");
  command->footer(
      "'-' marks a missing value: level and keyword if the name or the fields are not those of "
      "EventHeader, hits if the tracepoint has no histogram. '?' means that the kernel does not "
      "report whether the tracepoint persists after its last user exits.\n\n"
      "Services without user_events pass their events to nettraced through shared memory. Their "
      "tracepoints are listed only if nettraced runs. The column 'used by' then has the sessions "
      "of nettraced, as nettraced:SESSION.\n\n"
      "Exit code: 0 tracepoints were listed; 1 failed; 2 wrong usage; 3 no tracepoint "
      "matches.\n\n"
      "Examples:\n"
      "  eventheader list\n"
      "  eventheader list --json 'MyCompany_*' | jq -r 'select(.usedBy == \"\") | .name'\n");
  command->callback([arguments, invocation] { List(*arguments, invocation); });
}

}  // namespace tools
