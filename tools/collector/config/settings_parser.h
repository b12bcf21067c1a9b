// Puts settings together from texts, one after the other, and collects what is wrong with them.
#ifndef TOOLS_COLLECTOR_CONFIG_SETTINGS_PARSER_H_
#define TOOLS_COLLECTOR_CONFIG_SETTINGS_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/config/settings.h"
#include "tools/collector/config/settings_errors.h"

namespace collector {

class SettingsParser {
 public:
  static constexpr std::size_t kMaxText = std::size_t{256} << 10;
  static constexpr std::size_t kMaxSessions = 256;

  // Whether texts may say something of the daemon itself.
  explicit SettingsParser(bool with_daemon) : with_daemon_(with_daemon) {}

  void Parse(std::string_view text, const std::string& file);
  SettingsErrors* errors() { return &errors_; }
  // What all texts say together.
  absl::StatusOr<DaemonSettings> Finish();

 private:
  struct Session {
    SessionSettings settings;
    std::string file;
    std::uint32_t line;
    std::uint32_t column;
  };

  // Finds sessions that cannot be beside each other.
  void CheckSessions();
  void CheckBeside(const Session& session, const Session& other);

  bool with_daemon_;
  SettingsErrors errors_;
  DaemonSettings daemon_;  // no sessions yet
  std::vector<Session> sessions_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_SETTINGS_PARSER_H_
