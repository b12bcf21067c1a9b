// `eventheader list`: lists the tracepoints of user_events.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/tracepoint_json.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {
namespace {

struct ListArguments {
  std::vector<std::string> patterns;
  bool json = false;
};

constexpr char kRow[] = "%-40s %-6s %-12s %-10s %-10s %-8s %s\n";

void PrintRow(const Tracepoint& tracepoint, const Holders& holders) {
  const auto parts = tracepoint.EventHeader();
  const auto group = parts ? eh::FindOption(parts->options, 'G') : std::nullopt;
  absl::PrintF(kRow, base::Printable(tracepoint.name), parts ? absl::StrCat(parts->level) : "-",
               parts ? absl::StrFormat("0x%x", parts->keyword) : "-",
               group ? std::string(*group) : "-", IsPersistent(tracepoint, holders) ? "yes" : "?",
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

void List(const ListArguments& arguments, Invocation* invocation) {
  const auto tracefs = FindUserEvents();
  if (!tracefs.ok()) return invocation->Fail(tracefs.status());
  const auto list = ListTracepoints(*tracefs, arguments.patterns);
  if (!list.ok()) return invocation->Fail(list.status());
  const Holders holders = FindHolders();
  if (!arguments.json && !list->tracepoints.empty()) {
    absl::PrintF(kRow, "TRACEPOINT", "LEVEL", "KEYWORD", "GROUP", "PERSISTENT", "HITS", "USED BY");
  }
  for (const Tracepoint& tracepoint : list->tracepoints) {
    if (arguments.json) {
      PrintJson(tracepoint, holders);
    } else {
      PrintRow(tracepoint, holders);
    }
    if (tracepoint.IsTaken()) {
      invocation->Say(absl::StrCat("tracepoint ", tracepoint.name,
                                   " has an EventHeader name and the fields '", *tracepoint.fields,
                                   "'; no EventHeader service can use it until 'eventheader "
                                   "unregister' has deleted it"));
    }
  }
  if (list->unclear != 0) {
    invocation->Say(
        absl::StrCat("user_events_status: not listed: ", base::Counted(list->unclear, "line"),
                     " with parts of names that contain line feeds, which tracefs does not show"));
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
  command->add_flag("--json", arguments->json, "Print one JSON object per line");
  command->footer(
      "'-' marks a missing value: level and keyword if the name or the fields are not those of "
      "EventHeader, hits if the tracepoint has no histogram. '?' means that the kernel does not "
      "report whether the tracepoint persists after its last user exits.\n\n"
      "Exit code: 0 tracepoints were listed; 1 failed; 2 wrong usage; 3 no tracepoint "
      "matches.\n\n"
      "Examples:\n"
      "  eventheader list\n"
      "  eventheader list --json 'MyCompany_*' | jq -r 'select(.usedBy == \"\") | .name'\n");
  command->callback([arguments, invocation] { List(*arguments, invocation); });
}

}  // namespace tools
