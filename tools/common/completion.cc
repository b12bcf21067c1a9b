#include "tools/common/completion.h"

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

namespace tools {
namespace {

struct Word {
  std::string text;  // "--json", "list"
  std::string description;
  bool has_value = false;  // whether the next word is the value of this option
};

// A command and its path in the tree of commands.
struct Command {
  std::string path;  // "nettrace ctl start"
  std::vector<Word> commands;
  std::vector<Word> options;  // including those inherited from the commands above
};

std::vector<Word> OptionsOf(const CLI::App& app) {
  std::vector<Word> words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    const bool has_value = option->get_items_expected_max() > 0;
    for (const std::string& name : option->get_lnames()) {
      words.push_back({"--" + name, option->get_description(), has_value});
    }
    for (const std::string& name : option->get_snames()) {
      words.push_back({"-" + name, option->get_description(), has_value});
    }
  }
  return words;
}

void Collect(const CLI::App& app, const std::string& path, const std::vector<Word>& above,
             std::vector<Command>* all) {
  Command command{path, {}, OptionsOf(app)};
  // `above` has the options of the commands above, if the parser accepts them here. Each command
  // has its own --help.
  for (const Word& word : above) {
    const auto is_same = [&](const Word& own) { return own.text == word.text; };
    if (std::none_of(command.options.begin(), command.options.end(), is_same)) {
      command.options.push_back(word);
    }
  }
  const auto subcommands =
      app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
  for (const CLI::App* sub : subcommands) {
    command.commands.push_back({sub->get_name(), sub->get_description()});
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

// Returns the lines of a case statement, for bash and zsh, that find the command of a command line.
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

std::string Bash(const std::string& name, const std::vector<Command>& all) {
  const std::string function = "_" + name;
  std::string text = absl::StrCat(
      "# Completion of ", name, " for bash.\n", function, "() {\n",
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  local at=",
      name,
      " commands='' options='' values='' i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
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
  absl::StrAppend(
      &text,
      "  esac\n"
      "  COMPREPLY=()\n"
      "  # The value of an option, and arguments, are completed as files, by -o default.\n"
      "  case \" $values \" in *\" $previous \"*) return ;; esac\n"
      "  case $current in\n"
      "    -*) mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\") ;;\n"
      "    *) mapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$current\") ;;\n"
      "  esac\n"
      "}\n"
      "complete -o default -F ",
      function, " ", name, "\n");
  return text;
}

// Returns the elements of an array for zsh's _describe.
std::string Described(const std::vector<Word>& words) {
  std::string text;
  for (const Word& word : words) {
    absl::StrAppend(&text, " ", Quoted(absl::StrCat(word.text, ":", word.description)));
  }
  return text;
}

std::string Zsh(const std::string& name, const std::vector<Command>& all) {
  const std::string function = "_" + name;
  std::string text = absl::StrCat("#compdef ", name, "\n", function,
                                  "() {\n"
                                  "  local at=",
                                  name,
                                  "\n"
                                  "  local i\n"
                                  "  local -a commands options\n"
                                  "  for ((i = 2; i < CURRENT; i++)); do\n"
                                  "    case \"$at ${words[i]}\" in\n",
                                  PathCases(all, "      "),
                                  "    esac\n"
                                  "  done\n"
                                  "  case $at in\n");
  for (const Command& command : all) {
    absl::StrAppend(&text, "    '", command.path, "')\n", "      commands=(",
                    Described(command.commands), " )\n", "      options=(",
                    Described(command.options), " )\n      ;;\n");
  }
  absl::StrAppend(&text,
                  "  esac\n"
                  "  if [[ ${words[CURRENT]} == -* ]]; then\n"
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
                      option.has_value ? " -r" : "", " -d ", FishQuoted(option.description), "\n");
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

}  // namespace tools
