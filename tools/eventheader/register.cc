// `eventheader register`: registers tracepoints before the service that writes to them starts.
#include <poll.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/program_files.h"
#include "tools/eventheader/registrations.h"

namespace tools {
namespace {

struct RegisterArguments {
  std::vector<std::string> words;
  std::vector<std::string> inputs;
  std::vector<std::string> programs;
  ProviderSets sets;
  bool hold = false;
  bool persist = false;
  bool notify = false;
};

// Returns the text of a file, or of standard input for "-".
absl::StatusOr<std::string> ReadInput(const std::string& path) {
  // Reads up to one byte more than the limit, so that AddText() can refuse a larger text.
  constexpr std::size_t kMax = Registrations::kMaxText + 1;
  return path == "-" ? base::ReadOpenFile(STDIN_FILENO, kMax, "standard input")
                     : base::ReadFile(path, kMax);
}

// Returns `path`, or the files NAME.conf in it if it is a directory, in the order of their names.
// Leaves out hidden files.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& path) {
  std::error_code error;
  if (path == "-" || !std::filesystem::is_directory(path, error)) return std::vector{path};
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string& file = entry->path().native();
    const bool is_hidden = absl::StartsWith(entry->path().filename().native(), ".");
    if (absl::EndsWith(file, ".conf") && !is_hidden) files.push_back(file);
  }
  if (error) return base::ErrnoStatus(error.value(), path);
  std::sort(files.begin(), files.end());
  return files;
}

void AddInput(const std::string& path, Registrations* registrations, Invocation* invocation) {
  const auto files = FilesOf(path);
  if (!files.ok()) return invocation->Fail(files.status());
  for (const std::string& file : *files) {
    const auto text = ReadInput(file);
    if (!text.ok()) {
      invocation->Fail(text.status());
    } else {
      registrations->AddText(*text, file == "-" ? "standard input" : file);
    }
  }
}

void AddProgram(const std::string& program, Registrations* registrations, Invocation* invocation) {
  const auto files = CatalogsOf(program);
  if (!files.ok()) return invocation->Fail(files.status());
  if (files->empty()) return FailEmpty(program, invocation);
  for (const ProgramFile& file : *files) {
    for (const std::string& name : file.catalog.tracepoints) registrations->AddWord(name, {});
    // Notes that cannot be resolved are reported, but do not prevent the registration of the other
    // tracepoints.
    for (const std::string& text : file.catalog.unclear) {
      invocation->Say(
          absl::StrCat(file.path, ": some of its tracepoints are not registered: ", text));
    }
  }
}

// Returns all tracepoints that the command line names. Fails the invocation if there are errors,
// and prints the first ones.
Registrations Collect(const RegisterArguments& arguments, Invocation* invocation) {
  Registrations registrations;
  for (const std::string& word : arguments.words) registrations.AddWord(word, arguments.sets);
  const bool is_usage = registrations.error_count() != 0;
  for (const std::string& program : arguments.programs) {
    AddProgram(program, &registrations, invocation);
  }
  for (const std::string& input : arguments.inputs) AddInput(input, &registrations, invocation);
  for (const std::string& error : registrations.errors()) {
    invocation->Fail(absl::InvalidArgumentError(error),
                     is_usage ? cli::kExitUsage : cli::kExitConfiguration);
  }
  const std::size_t hidden = registrations.error_count() - registrations.errors().size();
  if (hidden != 0) invocation->Say(absl::StrCat("further errors: ", hidden));
  return registrations;
}

// Fails the invocation for each name that already has another definition, before the first
// registration. Skips names whose definition this process may not read.
void CheckTaken(const Registrations& registrations, Invocation* invocation) {
  const auto tracefs = collector::Tracefs::Find();
  if (!tracefs.ok()) return;
  for (const collector::UserEventDefinition& wanted : registrations.definitions()) {
    const auto found = tracefs->ReadTracepoint("user_events", wanted.name);
    if (!found.ok()) continue;
    const std::string fields = collector::FieldsOfFormat(found->format);
    if (fields == wanted.fields) continue;
    invocation->Fail(
        absl::AlreadyExistsError(absl::StrCat(
            "tracepoint ", wanted.name, " already exists with the fields '", fields,
            "' instead of '", wanted.fields, "'; delete it with 'eventheader unregister ",
            wanted.name, "', or choose another name")),
        cli::kExitTaken);
  }
}

// Waits for a signal that asks the program to end.
void Hold() {
  pollfd stop = {cli::StopDescriptor(), POLLIN, 0};
  while (poll(&stop, 1, -1) < 0 && errno == EINTR) {
  }
}

void Register(const RegisterArguments& arguments, Invocation* invocation) {
  // Catches signals before the first registration, so that no signal ends the process without
  // cleaning up.
  if (arguments.hold) {
    if (const absl::Status status = cli::CatchSignals(); !status.ok())
      return invocation->Fail(status);
  }
  const Registrations wanted = Collect(arguments, invocation);
  if (invocation->exit_code != cli::kExitOk) return;
  CheckTaken(wanted, invocation);
  if (invocation->exit_code != cli::kExitOk) return;
  collector::UserEventRegistrations registrations;
  for (const collector::UserEventDefinition& definition : wanted.definitions()) {
    const absl::Status status = registrations.Register(definition, !arguments.hold);
    if (status.ok()) continue;
    invocation->Fail(status, absl::IsAlreadyExists(status) ? cli::kExitTaken : cli::kExitFailed);
    return;  // the cause of the error usually applies to all tracepoints
  }
  if (arguments.notify) {
    sd_notifyf(0, "READY=1\nSTATUS=Registered tracepoints: %zu", wanted.definitions().size());
  }
  if (arguments.hold) Hold();
}

}  // namespace

void AddRegister(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<RegisterArguments>();
  CLI::App* command =
      app.add_subcommand("register", "Register tracepoints before their service has run");
  command->add_option("name", arguments->words,
                      "An EventHeader tracepoint, Provider_L<level>K<keyword>[Options]; a "
                      "provider, with --levels and --keywords; or a name with its fields, 'Name "
                      "type field; type field'");
  CLI::Option* inputs =
      command
          ->add_option("-i,--input", arguments->inputs,
                       "Read names from a file, one per line, or from all files NAME.conf of a "
                       "directory; - is standard input; may be repeated")
          ->allow_extra_args(false);  // a name may follow the option
  inputs->type_name("FILE");
  CLI::Option* programs =
      command
          ->add_option("--from", arguments->programs,
                       "Register all tracepoints of a program, shared object or installed Debian "
                       "package, as listed by 'eventheader catalog'; may be repeated")
          ->expected(1)
          ->take_all();
  programs->type_name("PROGRAM");
  command->add_option("--levels", arguments->sets.levels, "Levels of a provider, e.g. 1-4 or 1,2,4")
      ->type_name("LEVELS");
  command
      ->add_option("--keywords", arguments->sets.keywords, "Keywords of a provider, e.g. 0x1,0x2")
      ->type_name("KEYWORDS");
  command->add_option("--group", arguments->sets.group, "Group of a provider");
  CLI::Option* persist = command->add_flag(
      "--persist", arguments->persist,
      "Keep the tracepoints until they are unregistered or the machine restarts (default); needs "
      "CAP_PERFMON");
  command
      ->add_flag("--hold", arguments->hold,
                 "Keep running, and keep the tracepoints until SIGTERM or SIGINT; needs no "
                 "capability")
      ->excludes(persist);
  command->add_flag("--notify", arguments->notify,
                    "Send READY=1 to systemd when the tracepoints are registered (Type=notify)");
  command->footer(
      "Everything is read and checked before the first tracepoint is registered. A tracepoint "
      "that already exists with the same fields is left as it is. In files, # begins a "
      "comment.\n\n"
      "Exit code: 0 done; 1 failed; 2 wrong usage, or an invalid name; 3 a program has no events; "
      "5 a name has another definition; 78 a file is invalid.\n\n"
      "Examples:\n"
      "  eventheader register MyCompany_MyService_L4K1 MyCompany_MyService_L2K1\n"
      "  eventheader register MyCompany_MyService --levels 1-4 --keywords 0x1,0x2\n"
      "  eventheader register 'Plain u32 count; char[8] tag'\n"
      "  eventheader register -i /etc/eventheader/registrations.d\n"
      "  eventheader register --from /usr/bin/my-service\n"
      "  eventheader register --hold MyCompany_MyService_L4K1 &\n");
  command->callback([arguments, inputs, programs, invocation] {
    if (arguments->words.empty() && inputs->empty() && programs->empty()) {
      invocation->Fail(
          absl::InvalidArgumentError("register: nothing to register; use a name, -i FILE or "
                                     "--from PROGRAM"),
          cli::kExitUsage);
      return;
    }
    Register(*arguments, invocation);
  });
}

}  // namespace tools
