// What is wrong with settings, collected so that a person can mend all of it at once.
#ifndef TOOLS_COLLECTOR_CONFIG_SETTINGS_ERRORS_H_
#define TOOLS_COLLECTOR_CONFIG_SETTINGS_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace collector {

class SettingsErrors {
 public:
  static constexpr std::size_t kShown = 50;

  // Line and column count from 1; 0: the error is the file's.
  void Add(const std::string& file, std::uint32_t line, std::uint32_t column,
           const std::string& what);
  // InvalidArgument with a line for each, by file, line and column; OK if there are none.
  absl::Status ToStatus() const;

 private:
  struct Error {
    std::size_t file;  // in the order of their first errors
    std::uint32_t line;
    std::uint32_t column;
    std::string text;
  };
  static constexpr std::size_t kKept = 1000;

  std::vector<std::string> files_;
  std::vector<Error> errors_;
  std::size_t count_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_SETTINGS_ERRORS_H_
