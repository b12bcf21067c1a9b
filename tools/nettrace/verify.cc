// `nettrace verify`: checks files against the specification of the format.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "nettrace/verifier.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"

namespace tools {
namespace {

const char* SeverityName(nettrace::Severity severity) {
  return severity == nettrace::Severity::kError ? "error" : "hazard";
}

void PrintJson(const std::string& file, const nettrace::VerifyReport& report) {
  for (const nettrace::Finding& finding : report.findings) {
    rapidjson::StringBuffer buffer;
    base::JsonWriter json(buffer);
    json.StartObject();
    base::PutText(&json, "file", file);
    base::PutText(&json, "rule", finding.rule->name);
    base::PutText(&json, "severity", SeverityName(finding.rule->severity));
    base::PutText(&json, "section", finding.rule->section);
    base::PutNumber(&json, "offset", finding.offset);
    base::PutText(&json, "explanation", finding.explanation);
    json.EndObject();
    base::PrintJsonLine(buffer);
  }
}

void PrintText(const std::string& file, const nettrace::VerifyReport& report) {
  const std::string path = InputName(file);
  for (const nettrace::Finding& finding : report.findings) {
    absl::PrintF("%s: offset %d: %s: %s: %s\n", path, finding.offset,
                 SeverityName(finding.rule->severity), finding.rule->name,
                 base::Printable(finding.explanation));
  }
  absl::PrintF("%s: V%d, %s, %s, %s\n", path, report.version, base::Counted(report.events, "event"),
               base::Counted(report.errors, "error"), base::Counted(report.hazards, "hazard"));
}

int Verify(const std::string& path, bool strict, bool json) {
  Progress progress("verify");
  absl::StatusOr<std::unique_ptr<nettrace::Source>> source = OpenSource(path, &progress);
  if (!source.ok()) {
    PrintInputError("verify", path, source.status());
    return cli::kExitUnreadable;
  }
  const absl::StatusOr<nettrace::VerifyReport> report = nettrace::Verify(*std::move(source));
  progress.Hide();
  if (!report.ok()) {
    PrintInputError("verify", path, report.status());
    return cli::kExitUnreadable;
  }
  if (json) {
    PrintJson(path, *report);
  } else {
    PrintText(path, *report);
  }
  const bool violations = report->errors > 0 || (strict && report->hazards > 0);
  return FinishOutput("verify", violations ? cli::kExitViolations : cli::kExitOk);
}

// Checks each file. Returns the largest exit code.
int VerifyAll(const std::vector<std::string>& arguments, bool strict, bool json) {
  const absl::StatusOr<std::vector<std::string>> paths = FindFiles("verify", arguments);
  if (!paths.ok()) {
    PrintFilesError("verify", paths.status());
    return cli::kExitUnreadable;
  }
  int exit_code = cli::kExitOk;
  for (const std::string& path : *paths) {
    exit_code = std::max(exit_code, Verify(path, strict, json));
  }
  return exit_code;
}

}  // namespace

void AddVerify(CLI::App& app, int* exit_code) {
  struct VerifyArguments {
    std::vector<std::string> paths;
    bool strict = false;
    bool json = false;
  };
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* verify =
      app.add_subcommand("verify", "Check a NetTrace file against the format specification");
  verify->add_flag("--strict", arguments->strict,
                   "Also fail on hazards: valid content that TraceEvent misreads");
  verify->add_flag("--json", arguments->json, "Print one JSON object per line for each finding");
  AddFilesOption(verify, &arguments->paths);
  verify->footer(
      "Errors violate the specification of the format. Hazards conform to it, but TraceEvent, the "
      "reader in PerfView and dotnet-trace, rejects them or shows them incorrectly. The first 20 "
      "findings of each rule are printed, and all are counted. "
      "/usr/share/doc/nettraced/format/verify-rules.md explains the rules.\n\n"
      "Exit code: 0 no errors; 1 there are errors, or hazards with --strict; 2 a file cannot be "
      "read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace verify trace.nettrace\n"
      "  nettrace verify --strict --json trace.nettrace | jq -r .rule | sort | uniq -c\n");
  verify->callback([arguments, exit_code] {
    *exit_code = WithinMemory("verify", arguments->paths, [&] {
      return VerifyAll(arguments->paths, arguments->strict, arguments->json);
    });
  });
}

}  // namespace tools
