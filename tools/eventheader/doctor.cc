// `eventheader doctor`: why nothing is collected.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/collector/control/messages.h"
#include "tools/common/exit_codes.h"
#include "tools/common/json_text.h"
#include "tools/common/text.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/doctor_checks.h"
#include "tools/eventheader/doctor_facts.h"

namespace tools {
namespace {

struct Arguments {
  std::string subject;
  std::string socket = collector::kControlPath;
  bool json = false;
};

void PrintText(const std::vector<Finding>& findings) {
  if (findings.empty()) std::puts("Nothing is wrong, as far as can be seen.");
  int number = 0;
  for (const Finding& finding : findings) {
    absl::PrintF("%d. %s: %s.\n   %s.\n", ++number, finding.check, Printable(finding.problem),
                 Printable(finding.remedy));
  }
}

void PrintJson(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    json.StartObject();
    PutText(&json, "check", finding.check);
    PutText(&json, "problem", finding.problem);
    PutText(&json, "remedy", finding.remedy);
    json.EndObject();
    PrintJsonLine(buffer);
  }
}

// What could not be looked at: nothing was found there, and nothing was ruled out.
void SayWhatIsUnknown(const Facts& facts, const Invocation& invocation) {
  if (facts.tracepoints && !facts.tracepoints->ok()) {
    invocation.Say(absl::StrCat("not looked at: ", facts.tracepoints->status().message()));
  }
  if (facts.subject && (!facts.subject->mounts || !facts.subject->open_files) &&
      facts.user_name.empty()) {
    invocation.Say(absl::StrCat("not looked at: mounts and descriptors of process ",
                                facts.subject->pid, "; run this as root"));
  }
}

void Doctor(const Arguments& arguments, Invocation* invocation) {
  const FactSources sources = MachineSources(arguments.socket);
  const auto subject = ParseSubject(arguments.subject, sources);
  if (!subject.ok()) return invocation->Fail(subject.status(), kExitUsage);
  const Facts facts = GatherFacts(*subject, sources);
  const std::vector<Finding> findings = Diagnose(facts);
  if (arguments.json) {
    PrintJson(findings);
  } else {
    PrintText(findings);
  }
  SayWhatIsUnknown(facts, *invocation);
  if (!findings.empty()) invocation->exit_code = kExitFound;
  invocation->FinishOutput();
}

}  // namespace

void AddDoctor(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "Say why nothing is collected, and what to do about it");
  command
      ->add_option("--for", arguments->subject,
                   "For whom: a process by its pid, a unit of systemd, or a user")
      ->type_name("PID|UNIT|USER");
  command->add_option("--socket", arguments->socket, "The daemon's control socket")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "One JSON object a line for each finding");
  command->footer(
      "It looks at the kernel, tracefs, permissions, sandboxes and namespaces, limits, names,\n"
      "nettraced and its sessions, in the order in which causes are to be mended. It changes\n"
      "nothing. Root sees everything.\n\n"
      "Exit code: 0 nothing was found; 1 it failed; 2 wrong usage; 6 something was found.\n\n"
      "Examples:\n"
      "  eventheader doctor\n"
      "  eventheader doctor --for nginx.service\n"
      "  eventheader doctor --for 1234 --json | jq -r .check\n");
  command->callback([arguments, invocation] { Doctor(*arguments, invocation); });
}

}  // namespace tools
