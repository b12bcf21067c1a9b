// Formats --help: at most 80 columns wide, with wrapped descriptions.
#ifndef TOOLS_CLI_HELP_FORMATTER_H_
#define TOOLS_CLI_HELP_FORMATTER_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <sstream>
#include <string>

namespace cli {

// Wraps the texts of --help, so that line breaks in the source code do not matter. Lines that begin
// with a space, such as examples, stay as they are. Must be set in the App before any subcommand is
// added, because a subcommand takes the formatter that its parent has at this time.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return Row(make_option_name(option, is_positional) + make_option_opts(option),
               make_option_desc(option));
  }
  std::string make_subcommand(const CLI::App* command) const override {
    return Row(command->get_display_name(true), command->get_description());
  }
  std::string make_description(const CLI::App* app) const override {
    return Fill(CLI::Formatter::make_description(app));
  }
  std::string make_footer(const CLI::App* app) const override { return Fill(app->get_footer()); }

 private:
  static constexpr std::size_t kWidth = 80;
  static constexpr std::size_t kColumn = 26;  // column at which descriptions begin

  // Returns the words of `text` in lines of up to kWidth columns. The first word is at column `at`;
  // all further lines begin with `indent` spaces.
  static std::string Wrap(const std::string& text, std::size_t indent, std::size_t at) {
    std::string lines;
    std::istringstream words(text);
    bool is_first = true;
    for (std::string word; words >> word; is_first = false) {
      if (!is_first && at + 1 + word.size() > kWidth) {
        lines += "\n" + std::string(indent, ' ');
        at = indent;
      } else if (!is_first) {
        lines += " ";
        ++at;
      }
      // Breaks a list of values after a comma if the list does not fit on the line.
      while (at + word.size() > kWidth) {
        const std::size_t comma = word.rfind(',', kWidth - at - 1);
        if (comma == std::string::npos) break;
        lines += word.substr(0, comma + 1) + "\n" + std::string(indent, ' ');
        word.erase(0, comma + 1);
        at = indent;
      }
      lines += word;
      at += word.size();
    }
    return lines + "\n";
  }

  // Returns a name with its description in the second column. If the name is too long for the first
  // column, the description begins on the next line.
  static std::string Row(const std::string& name, const std::string& description) {
    std::string row = "  " + name;
    if (row.size() + 1 >= kColumn) {
      row = "  " + Wrap(name, 6, 2);
      row += std::string(kColumn, ' ');
    } else {
      row.resize(kColumn, ' ');
    }
    return row + Wrap(description, kColumn, kColumn);
  }

  // Returns the text with its paragraphs wrapped.
  static std::string Fill(const std::string& text) {
    std::string filled;
    std::string paragraph;
    const auto end_paragraph = [&] {
      if (!paragraph.empty()) filled += Wrap(paragraph, 0, 0);
      paragraph.clear();
    };
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && line[0] != ' ') {
        paragraph += line + " ";
        continue;
      }
      end_paragraph();
      filled += line + "\n";
    }
    end_paragraph();
    return filled;
  }
};

}  // namespace cli

#endif  // TOOLS_CLI_HELP_FORMATTER_H_
