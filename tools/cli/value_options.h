// Options of command lines whose values are durations, sizes, or other values that a function
// parses. A value that is wrong ends the parsing with a CLI::ValidationError, which names the
// option and what it accepts.
#ifndef TOOLS_CLI_VALUE_OPTIONS_H_
#define TOOLS_CLI_VALUE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/base/values.h"

namespace cli {

// Adds an option. `parse` converts the text of the option to a value, and `store` receives the
// value. `names` may be several names, separated by commas, as in CLI::App::add_option.
template <typename T>
CLI::Option* AddParsedOption(CLI::App* command, const std::string& names,
                             absl::StatusOr<T> (*parse)(std::string_view text),
                             std::function<void(T)> store, const std::string& help) {
  return command->add_option_function<std::string>(
      names,
      [names, parse, store = std::move(store)](const std::string& text) {
        const absl::StatusOr<T> value = parse(text);
        if (!value.ok()) throw CLI::ValidationError(names, std::string(value.status().message()));
        store(*value);
      },
      help);
}

// Adds an option whose value is a duration of `min` or more.
inline CLI::Option* AddDurationOption(CLI::App* command, const std::string& name,
                                      absl::Duration min, std::function<void(absl::Duration)> store,
                                      const std::string& help) {
  return AddParsedOption<absl::Duration>(
      command, name, base::ParseDuration,
      [name, min, store = std::move(store)](absl::Duration value) {
        if (value < min) {
          throw CLI::ValidationError(
              name, absl::StrCat("the duration must be at least ", absl::FormatDuration(min)));
        }
        store(value);
      },
      help);
}

// Adds an option whose value is a number of bytes up to `max`.
inline CLI::Option* AddSizeOption(CLI::App* command, const std::string& name, std::uint64_t max,
                                  std::function<void(std::uint64_t)> store,
                                  const std::string& help) {
  return AddParsedOption<std::uint64_t>(
      command, name, base::ParseSize,
      [name, max, store = std::move(store)](std::uint64_t value) {
        if (value > max) {
          throw CLI::ValidationError(
              name, absl::StrCat("the size must be at most ", base::FormatSize(max)));
        }
        store(value);
      },
      help);
}

}  // namespace cli

#endif  // TOOLS_CLI_VALUE_OPTIONS_H_
