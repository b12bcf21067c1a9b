// What the collector reads from tracefs.
#ifndef TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_
#define TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace collector {

// One entry of user_events_status.
struct UserEvent {
  std::string name;
  std::string used_by;  // "ftrace perf", as the kernel says it; "" if nobody listens
};
// Parses the text of user_events_status; the totals at its end are passed over.
std::vector<UserEvent> ParseUserEventsStatus(std::string_view text);

// A mounted and readable tracefs. Mounts nothing itself.
class Tracefs {
 public:
  // NotFound: none is mounted. PermissionDenied: not readable. Both say what to do.
  static absl::StatusOr<Tracefs> Find();

  const std::string& directory() const { return directory_; }

  // The kernel has user_events.
  bool HasUserEvents() const;
  // What is registered with user_events now.
  absl::StatusOr<std::vector<UserEvent>> UserEvents() const;

  // The numeric id and the text of `format` of a tracepoint. NotFound if there is no such one.
  struct Tracepoint {
    int id = 0;
    std::string format;
  };
  absl::StatusOr<Tracepoint> ReadTracepoint(const std::string& system,
                                            const std::string& event) const;

 private:
  explicit Tracefs(std::string directory) : directory_(std::move(directory)) {}
  absl::StatusOr<std::string> ReadFile(const std::string& path) const;

  std::string directory_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_
