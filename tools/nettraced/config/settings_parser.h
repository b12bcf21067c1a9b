// Combines the settings of several texts, and collects their errors.
#ifndef TOOLS_NETTRACED_CONFIG_SETTINGS_PARSER_H_
#define TOOLS_NETTRACED_CONFIG_SETTINGS_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nettraced/config/settings.h"
#include "tools/nettraced/config/settings_errors.h"

namespace nettraced {

class SettingsParser {
 public:
  static constexpr std::size_t kMaxText = std::size_t{256} << 10;  // bytes of one text
  static constexpr std::size_t kMaxSessions = 256;

  // If `with_daemon` is true, the texts may also set options of the daemon itself.
  // `state_directory` replaces the state directory in the texts, unless it is "".
  explicit SettingsParser(bool with_daemon, std::string state_directory = "")
      : with_daemon_(with_daemon), state_directory_(std::move(state_directory)) {}

  // Reads a text and adds its errors to errors(), with `file` as the name of its file.
  void Parse(std::string_view text, const std::string& file);
  SettingsErrors* errors() { return &errors_; }
  // Returns the settings of all texts together. Fails with InvalidArgument if a text is wrong.
  absl::StatusOr<DaemonSettings> Finish();
  // Returns the settings of the texts without errors. DaemonSettings::errors has the errors of the
  // other texts. Fails with InvalidArgument if there are too many sessions.
  absl::StatusOr<DaemonSettings> FinishWithoutWrongFiles();

 private:
  // A session of a text, and its place in the text.
  struct Entry {
    SessionSettings settings;
    std::string file;
    std::uint32_t line;
    std::uint32_t column;
  };

  // Adds an error for each pair of sessions that conflict. Fails with InvalidArgument if there are
  // too many sessions.
  absl::Status CheckSessions();
  // Adds an error if the two sessions have the same name, pipe or files.
  void CheckBeside(const Entry& session, const Entry& other);

  const bool with_daemon_;
  const std::string state_directory_;
  SettingsErrors errors_;
  DaemonSettings daemon_;  // without sessions until Finish
  std::vector<Entry> sessions_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_SETTINGS_PARSER_H_
