// `eventheader doctor`: explains why no events are collected.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/collector/dotnet/dotnet_survey.h"
#include "tools/control/messages.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/doctor_checks.h"
#include "tools/eventheader/doctor_facts.h"

namespace tools {
namespace {

// Limits of --dotnet.
constexpr std::size_t kMaxDotnet = 100;  // processes
constexpr absl::Duration kDotnetTime = absl::Seconds(10);

struct DoctorArguments {
  std::string subject;
  std::string socket = control::kControlPath;
  bool json = false;
  bool dotnet = false;
};

void PrintText(const std::vector<Finding>& findings) {
  if (findings.empty()) std::puts("No problems were found.");
  int number = 0;
  for (const Finding& finding : findings) {
    absl::PrintF("%d. %s: %s.\n   %s.\n", ++number, finding.check, base::Printable(finding.problem),
                 base::Printable(finding.remedy));
  }
}

void PrintJson(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    rapidjson::StringBuffer buffer;
    base::JsonWriter json(buffer);
    json.StartObject();
    base::PutText(&json, "check", finding.check);
    base::PutText(&json, "problem", finding.problem);
    base::PutText(&json, "remedy", finding.remedy);
    json.EndObject();
    base::PrintJsonLine(buffer);
  }
}

// Prints which facts could not be examined. The cause of missing events may be among them.
void SayWhatIsUnknown(const Facts& facts, const Invocation& invocation) {
  if (facts.tracepoints && !facts.tracepoints->ok()) {
    invocation.Say(absl::StrCat("not checked: ", facts.tracepoints->status().message()));
  }
  if (facts.subject && (!facts.subject->mounts || !facts.subject->open_files) &&
      facts.user_name.empty()) {
    invocation.Say(absl::StrCat("not checked: mounts and descriptors of process ",
                                facts.subject->pid, "; run this as root"));
  }
}

// Reports that services pass events through shared memory, if the kernel has no user_events and a
// collector receives these events.
void SayTransport(const Facts& facts, const Invocation& invocation) {
  const std::string why = WhyNoUserEvents(facts);
  if (why.empty() || !facts.ring_socket || !facts.ring_socket->has_collector) return;
  invocation.Say(
      absl::StrCat(why, ": services use shared memory, and connect to ", facts.ring_socket->path));
}

// Reports which services send their events over the socket, and why.
void SayInline(const Facts& facts, const Invocation& invocation) {
  constexpr std::size_t kMost = 10;
  const std::vector<control::ServiceStatus>& services = facts.daemon.inline_services;
  for (std::size_t i = 0; i < std::min(services.size(), kMost); ++i) {
    invocation.Say(absl::StrCat("process ", services[i].pid, " (",
                                base::Printable(services[i].name),
                                ") sends its events over the socket, because ",
                                base::Printable(services[i].inline_reason)));
  }
  if (services.size() > kMost) {
    invocation.Say(absl::StrCat("further services that send their events over the socket: ",
                                services.size() - kMost));
  }
}

// Prints which .NET processes can write events to user_events.
void SayDotnet(const collector::DotnetSurvey& survey, const Invocation& invocation) {
  std::vector<std::string> able;
  for (const collector::DotnetRuntime& runtime : survey.runtimes) {
    if (!runtime.problem.empty()) continue;
    able.push_back(absl::StrCat(runtime.pid, " (", runtime.name, ", ", runtime.version, ")"));
  }
  invocation.Say(absl::StrCat(
      ".NET processes whose runtimes can write events to user_events: ",
      able.empty() ? "none" : base::Printable(absl::StrJoin(able, ", ")),
      survey.is_complete ? "" : "; not checked: further processes, because there are too many"));
}

void Doctor(const DoctorArguments& arguments, Invocation* invocation) {
  const FactSources sources = MachineSources(arguments.socket);
  const auto subject = ParseSubject(arguments.subject, sources);
  if (!subject.ok()) return invocation->Fail(subject.status(), cli::kExitUsage);
  const Facts facts = GatherFacts(*subject, sources);
  std::vector<Finding> findings = Diagnose(facts);
  std::optional<collector::DotnetSurvey> dotnet;
  if (arguments.dotnet) {
    dotnet = collector::SurveyDotnet("/tmp", kMaxDotnet, kDotnetTime);
    for (Finding& finding : CheckDotnet(*dotnet)) findings.push_back(std::move(finding));
  }
  if (arguments.json) {
    PrintJson(findings);
  } else {
    PrintText(findings);
  }
  if (dotnet) SayDotnet(*dotnet, *invocation);
  SayTransport(facts, *invocation);
  SayInline(facts, *invocation);
  SayWhatIsUnknown(facts, *invocation);
  if (!findings.empty()) invocation->exit_code = cli::kExitFound;
  invocation->FinishOutput();
}

}  // namespace

void AddDoctor(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* command =
      app.add_subcommand("doctor", "Find out why nothing is recorded, and how to solve it");
  command
      ->add_option("--for", arguments->subject,
                   "Process (by its pid), systemd unit or user to check")
      ->type_name("PID|UNIT|USER");
  command->add_option("--socket", arguments->socket, "Control socket of the daemon")
      ->capture_default_str();
  command->add_flag(
      "--dotnet", arguments->dotnet,
      "Also check which .NET processes can write events of 'nettrace record --dotnet' to "
      "user_events");
  command->add_flag("--json", arguments->json, "Print one JSON object per line for each problem");
  command->footer(
      "This command checks the kernel, the socket for services without user_events, tracefs, "
      "permissions, sandboxes and namespaces, limits, names, nettraced and its sessions. Problems "
      "are printed in the order in which they should "
      "be solved. Nothing is changed. Only root can check everything.\n\n"
      "Exit code: 0 no problem was found; 1 failed; 2 wrong usage; 6 a problem was found.\n\n"
      "Examples:\n"
      "  eventheader doctor\n"
      "  eventheader doctor --for nginx.service\n"
      "  eventheader doctor --dotnet\n"
      "  eventheader doctor --for 1234 --json | jq -r .check\n");
  command->callback([arguments, invocation] { Doctor(*arguments, invocation); });
}

}  // namespace tools
