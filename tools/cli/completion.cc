#include "tools/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace cli {
namespace {

// The values of an option or an argument: fixed words, or the lines that a shell command prints.
// The lines must not contain characters that are special to a shell.
struct Values {
  std::string words;  // separated by spaces
  std::string command;

  bool empty() const { return words.empty() && command.empty(); }
};

struct Word {
  std::string text;  // "--json", "list"
  std::string description;
  bool has_value = false;  // whether the next word is the value of this option
  Values values;           // values of this option; if empty, the shell suggests files
};

// A command and its path in the tree of commands.
struct Command {
  std::string path;  // "nettrace ctl start"
  std::vector<Word> commands;
  std::vector<Word> options;  // including those inherited from the parent commands
  Values arguments;           // values of its arguments; if empty, commands or files are suggested
};

// Shell commands that print the names of all tracepoints, of the tracepoints of user_events, and of
// sessions. The names of user_events are printed without "user_events:". Only names without special
// characters are printed, because other users may choose the names of tracepoints. `|| :` hides a
// failure of sed, which would end a shell that runs with `set -e`.
constexpr char kTracepoints[] =
    "sed -n 's/^user_events://; /^[A-Za-z0-9_.:-]*$/p' /sys/kernel/tracing/available_events "
    "2>/dev/null || :";
constexpr char kUserEvents[] =
    "sed -n 's/^user_events:\\([A-Za-z0-9_.-]*\\)$/\\1/p' /sys/kernel/tracing/available_events "
    "2>/dev/null || :";
constexpr char kSessions[] =
    "nettrace ctl list --json 2>/dev/null | sed -n "
    "'s/^{\"name\":\"\\([A-Za-z0-9_.-]*\\)\".*/\\1/p'";

// Returns the values that a shell suggests for an option or argument of the command `path`; empty
// if no values are known.
Values ValuesOf(const CLI::Option& option, const std::string& path) {
  const auto is_named = [&option](const char* name) {
    return option.check_name(name) || option.get_name(/*positional=*/true) == name;
  };
  if (is_named("session") || is_named("--session")) return {"", kSessions};
  if (is_named("-e")) return {"", kTracepoints};
  const bool takes_names =
      path == "eventheader unregister" || path == "eventheader list" || path == "eventheader watch";
  if (takes_names && option.get_positional()) return {"", kUserEvents};
  if (is_named("--state")) return {"running suspended failed stopped", ""};
  // The type name of an option with CLI::IsMember contains the accepted words, as in
  // "TEXT:{ctf,fxt}".
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  if (begin == type.npos || type.back() != '}') return {};
  return {absl::StrReplaceAll(type.substr(begin + 1, type.size() - begin - 2), {{",", " "}}), ""};
}

std::string OneLine(const std::string& text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

std::vector<Word> OptionsOf(const CLI::App& app, const std::string& path) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden in --help
    const bool has_value = option->get_items_expected_max() > 0;
    const std::string description = OneLine(option->get_description());
    const Values values = has_value ? ValuesOf(*option, path) : Values();
    for (const std::string& name : option->get_lnames()) {
      words.push_back({"--" + name, description, has_value, values});
    }
    for (const std::string& name : option->get_snames()) {
      words.push_back({"-" + name, description, has_value, values});
    }
  }
  return words;
}

void Collect(const CLI::App& app, const std::string& path, const std::vector<Word>& above,
             std::vector<Command>* all) {
  Command command{path, {}, OptionsOf(app, path), {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) command.arguments = ValuesOf(*option, path);
  }
  // `above` has the options of the parent commands that the parser also accepts here. Options that
  // this command defines again, such as --help, are not added.
  for (const Word& word : above) {
    const auto is_same = [&](const Word& own) { return own.text == word.text; };
    if (std::none_of(command.options.begin(), command.options.end(), is_same)) {
      command.options.push_back(word);
    }
  }
  const auto subcommands =
      app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  for (const CLI::App* sub : subcommands) {
    command.commands.push_back({sub->get_name(), OneLine(sub->get_description()), false, {}});
  }
  const std::size_t index = all->size();
  all->push_back(std::move(command));
  for (const CLI::App* sub : subcommands) {
    const std::vector<Word> inherited =
        sub->get_fallthrough() ? (*all)[index].options : std::vector<Word>();
    Collect(*sub, absl::StrCat(path, " ", sub->get_name()), inherited, all);
  }
}

// Quotes text for sh, bash and zsh.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}
// Quotes text for fish.
std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string Texts(const std::vector<Word>& words, bool only_with_value = false) {
  std::vector<std::string> texts;
  for (const Word& word : words) {
    if (word.has_value || !only_with_value) texts.push_back(word.text);
  }
  return absl::StrJoin(texts, " ");
}

// Returns the branches of a case statement for bash and zsh, one for each option whose values are
// known. A branch matches the path of a command, followed by the option as the word before the
// current word. It sets the shell variable `suggested` to the option's values, in the form that
// `assigned` returns.
std::string ValueCases(const std::vector<Command>& all, std::string (*assigned)(const Values&)) {
  std::string text;
  for (const Command& command : all) {
    for (const Word& option : command.options) {
      if (option.values.empty()) continue;
      absl::StrAppend(&text, "    '", command.path, " ", option.text,
                      "') suggested=", assigned(option.values), " ;;\n");
    }
  }
  return text;
}

// Returns the branches of a case statement for bash and zsh, one for each subcommand. A branch
// matches the path of a command, followed by the subcommand. It sets the shell variable `at` to the
// path of the subcommand.
std::string PathCases(const std::vector<Command>& all, const std::string& indent) {
  std::string text;
  for (const Command& command : all) {
    for (const Word& sub : command.commands) {
      absl::StrAppend(&text, indent, "'", command.path, " ", sub.text, "') at='", command.path, " ",
                      sub.text, "' ;;\n");
    }
  }
  return text;
}

std::string BashValues(const Values& values) {
  return values.command.empty() ? Quoted(values.words) : absl::StrCat("$(", values.command, ")");
}

std::string Bash(const std::string& name, const std::vector<Command>& all) {
  const std::string function = "_" + name;
  std::string text = absl::StrCat(
      "# Completion of ", name, " for bash.\n", function, "() {\n",
      "  local first=$COMP_CWORD current=${COMP_WORDS[COMP_CWORD]}\n"
      "  # The shell splits words at colons.\n"
      "  while ((first > 1)) && [[ $current == :* || ${COMP_WORDS[first - 1]} == *: ]]; do\n"
      "    first=$((first - 1))\n"
      "    current=${COMP_WORDS[first]}$current\n"
      "  done\n"
      "  local previous=${COMP_WORDS[first - 1]}\n"
      "  local at=",
      name,
      " suggested='' commands='' options='' values='' i\n"
      "  for ((i = 1; i < first; i++)); do\n"
      "    case \"$at ${COMP_WORDS[i]}\" in\n",
      PathCases(all, "      "),
      "    esac\n"
      "  done\n"
      "  case $at in\n");
  for (const Command& command : all) {
    absl::StrAppend(&text, "    '", command.path, "')\n", "      commands='",
                    Texts(command.commands), "'\n", "      options='", Texts(command.options),
                    "'\n", "      values='", Texts(command.options, true), "'\n      ;;\n");
  }
  absl::StrAppend(&text,
                  "  esac\n"
                  "  COMPREPLY=()\n"
                  "  case \"$at $previous\" in\n",
                  ValueCases(all, BashValues),
                  "    *)\n"
                  "      # Other values of options, and other arguments, are completed as files, "
                  "by -o default.\n"
                  "      case \" $values \" in *\" $previous \"*) return ;; esac\n"
                  "      case $current in\n"
                  "        -*) suggested=$options ;;\n"
                  "        *) suggested=$commands ;;\n"
                  "      esac\n");
  std::string arguments;
  for (const Command& command : all) {
    if (command.arguments.empty()) continue;
    absl::StrAppend(&arguments, "        '", command.path,
                    "') suggested=", BashValues(command.arguments), " ;;\n");
  }
  if (!arguments.empty()) {
    absl::StrAppend(&text, "      [[ $current == -* ]] || case $at in\n", arguments,
                    "      esac\n");
  }
  absl::StrAppend(&text,
                  "      ;;\n"
                  "  esac\n"
                  "  mapfile -t COMPREPLY < <(compgen -W \"$suggested\" -- \"$current\")\n"
                  "  if ((first != COMP_CWORD)); then\n"
                  "    COMPREPLY=(\"${COMPREPLY[@]#\"${current%\"${current##*:}\"}\"}\")\n"
                  "  fi\n"
                  "}\n"
                  "complete -o default -F ",
                  function, " ", name, "\n");
  return text;
}

// Returns the elements of an array for zsh's _describe, each in the form "WORD:DESCRIPTION".
std::string Described(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) {
    absl::StrAppend(&text, " ", Quoted(absl::StrCat(word.text, ":", word.description)));
  }
  return text;
}

std::string ZshValues(const Values& values) {
  return values.command.empty() ? absl::StrCat("( ", values.words, " )")
                                : absl::StrCat("( ${(f)\"$(", values.command, ")\"} )");
}

std::string Zsh(const std::string& name, const std::vector<Command>& all) {
  const std::string function = "_" + name;
  std::string text = absl::StrCat("#compdef ", name, "\n", function,
                                  "() {\n"
                                  "  local at=",
                                  name,
                                  "\n"
                                  "  local i\n"
                                  "  local -a commands options suggested\n"
                                  "  for ((i = 2; i < CURRENT; i++)); do\n"
                                  "    case \"$at ${words[i]}\" in\n",
                                  PathCases(all, "      "),
                                  "    esac\n"
                                  "  done\n"
                                  "  case $at in\n");
  for (const Command& command : all) {
    absl::StrAppend(&text, "    '", command.path, "')\n", "      commands=(",
                    Described(command.commands), " )\n", "      options=(",
                    Described(command.options), " )\n");
    if (!command.arguments.empty()) {
      absl::StrAppend(&text, "      [[ ${words[CURRENT]} == -* ]] || suggested=",
                      ZshValues(command.arguments), "\n");
    }
    absl::StrAppend(&text, "      ;;\n");
  }
  absl::StrAppend(&text,
                  "  esac\n"
                  "  case \"$at ${words[CURRENT - 1]}\" in\n",
                  ValueCases(all, ZshValues),
                  "  esac\n"
                  "  if (( $#suggested )); then\n"
                  "    compadd -a suggested\n"
                  "  elif [[ ${words[CURRENT]} == -* ]]; then\n"
                  "    _describe option options\n"
                  "  elif (( $#commands )); then\n"
                  "    _describe command commands\n"
                  "  else\n"
                  "    _files\n"
                  "  fi\n"
                  "}\n",
                  function, " \"$@\"\n");
  return text;
}

std::string FishValues(const Values& values) {
  if (values.empty()) return "";
  const std::string& command = values.command;
  return absl::StrCat(" -f -a ",
                      FishQuoted(command.empty() ? values.words : absl::StrCat("(", command, ")")));
}

std::string Fish(const std::string& name, const std::vector<Command>& all) {
  const std::string function =
      absl::StrCat("__", absl::StrReplaceAll(name, {{"-", "_"}}), "_command");
  std::string text = absl::StrCat("# Completion of ", name, " for fish.\nfunction ", function,
                                  "\n"
                                  "  set -l command ",
                                  name,
                                  "\n"
                                  "  for word in (commandline -opc)[2..-1]\n"
                                  "    switch \"$command $word\"\n"
                                  "      case");
  for (const Command& command : all) {
    for (const Word& sub : command.commands) {
      absl::StrAppend(&text, " '", command.path, " ", sub.text, "'");
    }
  }
  absl::StrAppend(&text,
                  " ''\n"
                  "        set command \"$command $word\"\n"
                  "    end\n"
                  "  end\n"
                  "  echo $command\n"
                  "end\n");
  for (const Command& command : all) {
    const std::string start =
        absl::StrCat("complete -c ", name, " -n 'test (", function, ") = \"", command.path, "\"'");
    for (const Word& sub : command.commands) {
      absl::StrAppend(&text, start, " -f -a ", sub.text, " -d ", FishQuoted(sub.description), "\n");
    }
    for (const Word& option : command.options) {
      const bool is_long = option.text.starts_with("--");
      absl::StrAppend(&text, start, is_long ? " -l " : " -s ", option.text.substr(is_long ? 2 : 1),
                      option.has_value ? " -r" : "", FishValues(option.values), " -d ",
                      FishQuoted(option.description), "\n");
    }
    if (!command.arguments.empty()) {
      absl::StrAppend(&text, start, FishValues(command.arguments), "\n");
    }
  }
  return text;
}

}  // namespace

std::string CompletionScript(const CLI::App& app, std::string_view shell) {
  std::vector<Command> all;
  Collect(app, app.get_name(), {}, &all);
  if (shell == "bash") return Bash(app.get_name(), all);
  if (shell == "zsh") return Zsh(app.get_name(), all);
  if (shell == "fish") return Fish(app.get_name(), all);
  return "";
}

void AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands");
  command->group("");  // hidden
  command->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell] { std::fputs(CompletionScript(app, *shell).c_str(), stdout); });
}

}  // namespace cli
