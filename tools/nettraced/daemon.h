// The daemon's sessions, and what is asked of them.
#ifndef TOOLS_NETTRACED_DAEMON_H_
#define TOOLS_NETTRACED_DAEMON_H_

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/config/settings.h"
#include "tools/collector/control/service.h"
#include "tools/nettraced/session_runner.h"

namespace nettraced {

// Thread-safe. No call waits without end for a session whose disk hangs, but StopAll.
class Daemon final : public collector::Service {
 public:
  using ReadSettings = std::function<absl::StatusOr<collector::DaemonSettings>()>;

  // `read` reads the settings anew, as they were read to `settings`. `on_change` is called by any
  // thread when the state of a session has changed.
  Daemon(collector::DaemonSettings settings, ReadSettings read, std::function<void()> on_change);

  // Starts the sessions that are to start with the daemon; returns once each has been tried, or
  // hangs.
  void StartAll();
  // Stops all sessions; returns when their files are complete.
  void StopAll();
  // Keeps what patterns have met for the next start. Waits for the disk.
  void SaveMemory();
  // Nobody waits for an output any more that takes nothing.
  void Hurry() { environment_.hurry = true; }
  void RotateAll();
  void SnapshotAll();
  // The states and numbers of all sessions in one line.
  std::string StatusLine();
  // See CapturePool.
  bool AreCapturesAlive(absl::Duration period) const {
    return environment_.captures.AreAlive(period);
  }

  std::vector<collector::SessionStatus> List() override;
  absl::StatusOr<collector::SessionStatus> Status(std::string_view session) override;
  absl::Status Start(std::string_view session) override;
  absl::StatusOr<std::vector<std::string>> StartFrom(std::string_view toml) override;
  absl::Status Stop(std::string_view session) override;
  absl::StatusOr<std::string> Rotate(std::string_view session) override;
  absl::StatusOr<std::string> Snapshot(std::string_view session, absl::Duration after) override;
  absl::Status Reload() override;
  absl::StatusOr<std::unique_ptr<collector::Tail>> StartTail(std::string_view session,
                                                             collector::UniqueFd socket,
                                                             std::string first) override;

 private:
  struct Entry {
    std::shared_ptr<SessionRunner> runner;
    bool is_from_settings = true;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Entries entries() const;
  absl::StatusOr<std::shared_ptr<SessionRunner>> Find(std::string_view session) const;
  // Adds a session; none of its name is there. If it `starts`, returns why it could not, but is
  // there, too; without a thread for it, it is not.
  std::future<absl::Status> Add(const collector::SessionSettings& session, bool is_from_settings,
                                bool starts);
  // Stops these sessions and forgets them, but those that do not stop in time, which it returns.
  std::vector<std::string> Remove(const std::vector<std::string>& names);
  absl::Status ReloadLocked();

  const std::shared_ptr<collector::PatternMemory> memory_;
  SessionEnvironment environment_;
  const ReadSettings read_;
  const collector::DaemonSettings settings_;  // of the start
  std::mutex changing_;  // held while sessions come and go, so that one does that at a time
  mutable std::mutex mutex_;
  Entries entries_;
  std::string reload_error_;  // "": the last one was well
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_DAEMON_H_
