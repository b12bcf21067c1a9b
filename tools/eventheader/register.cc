// `eventheader register`: tracepoints that are there before the service that writes to them.
#include <fcntl.h>
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
#include "tools/collector/base/status_util.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"
#include "tools/common/exit_codes.h"
#include "tools/common/signals.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/program_files.h"
#include "tools/eventheader/registrations.h"

namespace tools {
namespace {

struct Arguments {
  std::vector<std::string> words;
  std::vector<std::string> inputs;
  std::vector<std::string> programs;
  ProviderSets sets;
  bool hold = false;
  bool persist = false;
  bool notify = false;
};

// The text of a file, of standard input for "-"; no more of it than is looked at.
absl::StatusOr<std::string> ReadInput(const std::string& path) {
  collector::UniqueFd opened;
  if (path != "-") {
    opened = collector::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened.valid()) return collector::ErrnoStatus(errno, path);
  }
  const int fd = opened.valid() ? opened.get() : STDIN_FILENO;
  std::string text;
  char buffer[16384];
  while (text.size() <= Registrations::kMaxText) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) break;
    if (got > 0) {
      text.append(buffer, static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      return collector::ErrnoStatus(errno, path);
    }
  }
  return text;
}

// The file itself or, of a directory, its files NAME.conf in the order of their names.
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
  if (error) return collector::ErrnoStatus(error.value(), path);
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
    // What is clear is not to be missed for it.
    for (const std::string& text : file.catalog.unclear) {
      invocation->Say(absl::StrCat(file.path, ": not all of it is registered: ", text));
    }
  }
}

// All that the command line names. Fails the invocation where something is wrong.
Registrations Collect(const Arguments& arguments, Invocation* invocation) {
  Registrations registrations;
  for (const std::string& word : arguments.words) registrations.AddWord(word, arguments.sets);
  const bool is_usage = registrations.error_count() != 0;
  for (const std::string& program : arguments.programs) {
    AddProgram(program, &registrations, invocation);
  }
  for (const std::string& input : arguments.inputs) AddInput(input, &registrations, invocation);
  for (const std::string& error : registrations.errors()) {
    invocation->Fail(absl::InvalidArgumentError(error), is_usage ? kExitUsage : kExitConfiguration);
  }
  const std::size_t hidden = registrations.error_count() - registrations.errors().size();
  if (hidden != 0) invocation->Say(absl::StrCat("and ", hidden, " errors more"));
  return registrations;
}

// Finds names that are taken by other definitions, as far as this process may look, before anything
// is registered.
void CheckTaken(const Registrations& registrations, Invocation* invocation) {
  const auto tracefs = collector::Tracefs::Find();
  if (!tracefs.ok()) return;
  for (const collector::UserEventDefinition& wanted : registrations.definitions()) {
    const auto found = tracefs->ReadTracepoint("user_events", wanted.name);
    if (!found.ok()) continue;
    const std::string fields = collector::FieldsOfFormat(found->format);
    if (fields == wanted.fields) continue;
    invocation->Fail(absl::AlreadyExistsError(absl::StrCat(
                         "tracepoint ", wanted.name, " is there already, defined as '", fields,
                         "' and not as '", wanted.fields, "'; 'eventheader unregister ",
                         wanted.name, "' removes it or says who uses it, or choose another name")),
                     kExitTaken);
  }
}

// Waits for SIGTERM or SIGINT.
void Hold() {
  pollfd stop = {StopDescriptor(), POLLIN, 0};
  while (poll(&stop, 1, -1) < 0 && errno == EINTR) {
  }
}

void Register(const Arguments& arguments, Invocation* invocation) {
  // Before anything is there that a signal is to remove.
  if (arguments.hold) {
    if (const absl::Status status = CatchSignals(); !status.ok()) return invocation->Fail(status);
  }
  const Registrations wanted = Collect(arguments, invocation);
  if (invocation->exit_code != kExitOk) return;
  CheckTaken(wanted, invocation);
  if (invocation->exit_code != kExitOk) return;
  collector::UserEventRegistrations registrations;
  for (const collector::UserEventDefinition& definition : wanted.definitions()) {
    const absl::Status status = registrations.Register(definition, !arguments.hold);
    if (status.ok()) continue;
    invocation->Fail(status, absl::IsAlreadyExists(status) ? kExitTaken : kExitFailed);
    return;  // what is wrong with one is mostly wrong with all
  }
  if (arguments.notify) {
    sd_notifyf(0, "READY=1\nSTATUS=%zu tracepoints are registered", wanted.definitions().size());
  }
  if (arguments.hold) Hold();
}

}  // namespace

void AddRegister(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "register", "Register tracepoints, so that they are there before their service has run");
  command->add_option("name", arguments->words,
                      "An EventHeader tracepoint, Provider_L<level>K<keyword>[Options]; a "
                      "provider, with --levels and --keywords; or a definition with its fields, "
                      "'Name type field; type field'");
  CLI::Option* inputs =
      command
          ->add_option("-i,--input", arguments->inputs,
                       "A file with the same, a line each; a directory of files NAME.conf; - is "
                       "standard input. May be given again")
          ->allow_extra_args(false);  // a name may follow
  inputs->type_name("FILE");
  CLI::Option* programs =
      command
          ->add_option("--from", arguments->programs,
                       "A program, shared object or installed Debian package: all that it may "
                       "write, as 'eventheader catalog' lists it. May be given again")
          ->expected(1)
          ->take_all();
  programs->type_name("PROGRAM");
  command->add_option("--levels", arguments->sets.levels, "Levels of a provider: 1-4 or 1,2,4")
      ->type_name("LEVELS");
  command->add_option("--keywords", arguments->sets.keywords, "Keywords of a provider: 0x1,0x2")
      ->type_name("KEYWORDS");
  command->add_option("--group", arguments->sets.group, "Group of a provider");
  CLI::Option* persist = command->add_flag(
      "--persist", arguments->persist,
      "They stay until they are unregistered or the machine restarts: the default. It needs "
      "CAP_PERFMON");
  command
      ->add_flag("--hold", arguments->hold,
                 "Stay, and keep them until SIGTERM or SIGINT; needs no capability")
      ->excludes(persist);
  command->add_flag("--notify", arguments->notify,
                    "Tell systemd READY=1 when they are registered (Type=notify)");
  command->footer(
      "Everything is read and checked before anything is registered. What is registered already,\n"
      "in the same way, stays as it is. In files, # begins a comment.\n\n"
      "Exit code: 0 done; 1 it failed; 2 wrong usage, also of names; 3 a program has no events; 5 "
      "a name is taken by another\n"
      "definition; 78 a file is wrong.\n\n"
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
          absl::InvalidArgumentError("register: a name, -i FILE or --from PROGRAM is missing"),
          kExitUsage);
      return;
    }
    Register(*arguments, invocation);
  });
}

}  // namespace tools
