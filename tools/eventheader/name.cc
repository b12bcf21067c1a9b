// `eventheader name`: parses and formats the names of EventHeader tracepoints. It does not need the
// kernel.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/name_problem.h"
#include "tools/eventheader/tracepoint_json.h"

namespace tools {
namespace {

struct NameArguments {
  std::vector<std::string> names;
  bool json = false;
  std::string provider;
  std::string level;
  std::string keyword;
  std::string group;
  std::string options;
};

void FailName(const std::string& name, Invocation* invocation) {
  invocation->Fail(absl::InvalidArgumentError(absl::StrCat("'", name, "': ", NameProblem(name))),
                   cli::kExitViolations);
}

void Parse(const NameArguments& arguments, Invocation* invocation) {
  for (const std::string& name : arguments.names) {
    const auto parts = eh::ParseTracepointName(name);
    if (!parts) {
      FailName(name, invocation);
      continue;
    }
    if (!arguments.json) {
      absl::PrintF("%s %d 0x%x %s\n", std::string(parts->provider), parts->level, parts->keyword,
                   parts->options.empty() ? "-" : std::string(parts->options));
      continue;
    }
    rapidjson::StringBuffer buffer;
    base::JsonWriter json(buffer);
    json.StartObject();
    base::PutText(&json, "name", name);
    PutName(&json, parts);
    json.EndObject();
    base::PrintJsonLine(buffer);
  }
  invocation->FinishOutput();
}

void Format(const NameArguments& arguments, Invocation* invocation) {
  const auto fail = [invocation](const std::string& message) {
    invocation->Fail(absl::InvalidArgumentError(message), cli::kExitUsage);
  };
  const auto level = base::ParseUint64(arguments.level);
  const auto keyword = base::ParseUint64(arguments.keyword);
  if (!eh::IsValidProviderName(arguments.provider)) {
    return fail(absl::StrCat("invalid provider name '", arguments.provider,
                             "'; use letters, digits and _, and do not start with a digit"));
  }
  if (!level || *level == 0 || *level > 255) {
    return fail(absl::StrCat("invalid level '", arguments.level, "'; use 1 to 255"));
  }
  if (!keyword) {
    return fail(absl::StrCat("invalid keyword '", arguments.keyword, "'; use a number, e.g. 0x1"));
  }
  const std::string options = arguments.group.empty() ? arguments.options : "G" + arguments.group;
  if (!eh::AreValidOptions(options)) {
    return fail(absl::StrCat("invalid options '", options,
                             "'; use upper-case letters in ascending order, each followed by any "
                             "number of lower-case letters and digits"));
  }
  std::array<char, eh::kMaxTracepointName + 1> name;
  const std::size_t size = eh::FormatTracepointName(
      {arguments.provider, static_cast<std::uint8_t>(*level), *keyword, options}, name);
  if (size == 0) {
    return fail(absl::StrCat(arguments.provider, ": the tracepoint name would have more than ",
                             eh::kMaxTracepointName,
                             " characters; shorten the name of the provider or the options"));
  }
  std::puts(name.data());
  invocation->FinishOutput();
}

void CheckName(const NameArguments& arguments, Invocation* invocation) {
  for (const std::string& name : arguments.names) {
    if (!eh::ParseTracepointName(name)) FailName(name, invocation);
  }
}

}  // namespace

void AddName(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<NameArguments>();
  CLI::App* command =
      app.add_subcommand("name", "Split names of tracepoints into parts, or build them from parts");
  command->require_subcommand(1);
  command->footer(
      "These commands work without user_events in the kernel and without privileges. 'eventheader "
      "name COMMAND --help' shows the details of a command.\n");

  CLI::App* parse = command->add_subcommand("parse", "Print the parts of EventHeader names");
  parse->add_option("name", arguments->names, "Names of tracepoints")->required();
  parse->add_flag("--json", arguments->json, "Print one JSON object per line");
  parse->footer(
      "Each line has the provider, level, keyword and options of a name, separated by blanks; '-' "
      "if there are no options.\n\n"
      "Exit code: 0 done; 1 a name is not an EventHeader name; 2 wrong usage.\n\n"
      "Examples:\n"
      "  eventheader name parse MyCompany_MyService_L4K1\n"
      "  eventheader list --json | jq -r 'select(.eventHeader) | .name' | \\\n"
      "      xargs eventheader name parse\n");
  parse->callback([arguments, invocation] { Parse(*arguments, invocation); });

  CLI::App* format =
      command->add_subcommand("format", "Print the name that consists of these parts");
  format->add_option("provider", arguments->provider, "Name of the provider")->required();
  format->add_option("level", arguments->level, "Level, 1 to 255")->required();
  format->add_option("keyword", arguments->keyword, "Keyword, decimal, or hexadecimal after 0x")
      ->required();
  CLI::Option* group = format->add_option("--group", arguments->group, "Group of the provider");
  format->add_option("--options", arguments->options, "All options, e.g. Gmygroup")
      ->excludes(group);
  format->footer(
      "Exit code: 0 done; 2 invalid parts, or wrong usage.\n\n"
      "Example:\n"
      "  eventheader register \"$(eventheader name format MyCompany_MyService 4 0x1)\"\n");
  format->callback([arguments, invocation] { Format(*arguments, invocation); });

  CLI::App* check = command->add_subcommand("check", "Check names, and print their errors");
  check->add_option("name", arguments->names, "Names of tracepoints")->required();
  check->footer(
      "Exit code: 0 all names are valid; 1 a name is invalid, and standard error shows the "
      "reason; 2 wrong usage.\n\n"
      "Example:\n"
      "  eventheader name check MyCompany_MyService_L4K1\n");
  check->callback([arguments, invocation] { CheckName(*arguments, invocation); });
}

}  // namespace tools
