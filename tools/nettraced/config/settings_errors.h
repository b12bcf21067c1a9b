// Collects errors in settings, so that all of them can be corrected at once.
#ifndef TOOLS_NETTRACED_CONFIG_SETTINGS_ERRORS_H_
#define TOOLS_NETTRACED_CONFIG_SETTINGS_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace nettraced {

class SettingsErrors {
 public:
  static constexpr std::size_t kShown = 50;  // errors that ToStatus shows; others are counted

  // `line` and `column` count from 1; 0 means that the error applies to the whole file.
  void Add(const std::string& file, std::uint32_t line, std::uint32_t column,
           const std::string& what);
  // Returns whether this file has an error.
  bool HasFile(const std::string& file) const;
  const std::vector<std::string>& files() const { return files_; }  // files that have errors
  // Returns InvalidArgument. The message has one line for each of the first kShown errors, sorted
  // by file, line and column, and then the number of other errors. Returns OK if there are no
  // errors.
  absl::Status ToStatus() const;

 private:
  struct Error {
    std::size_t file;  // index in files_
    std::uint32_t line;
    std::uint32_t column;
    std::string text;
  };
  static constexpr std::size_t kKept = 1000;  // errors that are stored; others are counted

  std::vector<std::string> files_;
  std::vector<Error> errors_;
  std::size_t count_ = 0;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_SETTINGS_ERRORS_H_
