// `eventheader unregister`: deletes persistent tracepoints.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/cli/exit_codes.h"
#include "tools/collector/tracefs/user_event_registrations.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {
namespace {

bool IsPattern(const std::string& word) { return word.find_first_of("*?[") != std::string::npos; }

// Returns the names of the tracepoints to delete. A word without a wildcard is a name, which need
// not exist. Any other word is a pattern, which stands for all tracepoints that match it. Fails the
// invocation for a pattern without a match, and continues with the other words.
std::set<std::string> NamesOf(const std::vector<std::string>& words,
                              const collector::Tracefs& tracefs, Invocation* invocation) {
  std::set<std::string> names;
  for (const std::string& word : words) {
    if (!IsPattern(word)) {
      names.insert(word);
      continue;
    }
    const auto list = ListTracepoints(tracefs, {word});
    if (!list.ok()) {
      invocation->Fail(list.status());
    } else if (list->tracepoints.empty()) {
      invocation->Fail(
          absl::NotFoundError(absl::StrCat("no tracepoint matches '", word,
                                           "'; 'eventheader list' shows all tracepoints")),
          cli::kExitUnmatched);
    } else {
      for (const Tracepoint& tracepoint : list->tracepoints) names.insert(tracepoint.name);
    }
  }
  return names;
}

// Fails the invocation and reports the users of the tracepoint `name`, which cannot be deleted.
void FailInUse(const absl::Status& status, const std::string& name,
               const collector::Tracefs& tracefs, const Holders& holders, Invocation* invocation) {
  Tracepoint tracepoint;
  tracepoint.name = name;
  (void)tracefs.ForEachUserEvent([&](const collector::UserEvent& event) {
    if (event.name == name) tracepoint.used_by = std::string(event.used_by);
  });
  invocation->Fail(
      absl::FailedPreconditionError(absl::StrCat(
          status.message(), ": ", DescribeUsers(tracepoint, holders),
          ". If it is not persistent, the kernel deletes it when its last user closes it; see "
          "'eventheader list'")),
      cli::kExitInUse);
}

void Unregister(const std::vector<std::string>& words, Invocation* invocation) {
  const auto tracefs = FindUserEvents();
  if (!tracefs.ok()) return invocation->Fail(tracefs.status());
  const std::set<std::string> names = NamesOf(words, *tracefs, invocation);
  // This object only deletes tracepoints. It registers none, so it does not keep any in use.
  collector::UserEventRegistrations registrations;
  std::optional<Holders> holders;
  for (const std::string& name : names) {
    const absl::Status status = registrations.Delete(name);
    if (absl::IsFailedPrecondition(status)) {
      if (!holders) holders = FindHolders();
      FailInUse(status, name, *tracefs, *holders, invocation);
    } else if (!status.ok()) {
      invocation->Fail(status, absl::IsNotFound(status) ? cli::kExitUnmatched : cli::kExitFailed);
    }
  }
}

}  // namespace

void AddUnregister(CLI::App& app, Invocation* invocation) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("unregister", "Delete persistent tracepoints that are not in use");
  command->add_option("name", *words, "Names of tracepoints, or shell patterns for them")
      ->required();
  command->footer(
      "If a tracepoint cannot be deleted, the others still are. This command needs "
      "CAP_PERFMON.\n\n"
      "Exit code: 0 done; 1 failed; 2 wrong usage; 3 a name or pattern matches no tracepoint; 4 a "
      "tracepoint is in use. After several errors, the exit code is that of the first one.\n\n"
      "Examples:\n"
      "  eventheader unregister MyCompany_MyService_L4K1\n"
      "  eventheader unregister 'MyCompany_*'\n");
  command->callback([words, invocation] { Unregister(*words, invocation); });
}

}  // namespace tools
