// Holds the daemon's sessions and carries out the requests to them.
#ifndef TOOLS_NETTRACED_DAEMON_H_
#define TOOLS_NETTRACED_DAEMON_H_

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/control/service.h"
#include "tools/nettraced/activated_socket.h"
#include "tools/nettraced/config/settings.h"
#include "tools/nettraced/session_controller.h"

namespace nettraced {

// The sessions of the daemon. Thread-safe. If the disk of a session hangs, only StopAll blocks
// indefinitely.
class Daemon final : public control::Service {
 public:
  using ReadSettings = std::function<absl::StatusOr<DaemonSettings>()>;

  // Reload calls `read` to read the settings again, from the same files as `settings`. `on_change`
  // is called when the state of a session has changed, on any thread.
  Daemon(DaemonSettings settings, ReadSettings read, std::function<void()> on_change);

  // Passes the socket for services with rings in user space to the captures. Must be called before
  // StartAll.
  void SetRingSocket(ActivatedSocket socket) { shared_.captures.SetRingSocket(std::move(socket)); }

  // Loads the pattern memory, adds the sessions of the settings, and starts those that start with
  // the daemon. Returns when the first attempt of each session has ended, or after 15 s.
  void StartAll();
  // Stops all sessions and saves the pattern memory. Returns when all files are complete, or their
  // outputs have given up writing (OutputChain::Close).
  void StopAll();
  // Saves the pattern memory to a file in the state directory, for the next start of the daemon.
  // Logs a warning if the file cannot be written. Blocks on the disk.
  void SaveMemory();
  // Makes StopAll no longer wait for outputs that accept no data.
  void Hurry() { shared_.hurry = true; }
  // Request a new file of each session that writes files, and a snapshot of each flight recorder.
  // Return when all requests are completed, or after 15 s.
  void RotateAll();
  void SnapshotAll();
  // Returns the text that `systemctl status` shows: how many sessions are in each state except
  // stopped, their events per second and lost events, and the error of the settings.
  std::string StatusLine();
  // Returns whether each capture has been drained within the last `period`.
  bool AreCapturesAlive(absl::Duration period) const { return shared_.captures.AreAlive(period); }

  std::vector<control::SessionStatus> List() override;
  absl::StatusOr<control::SessionStatus> Status(std::string_view session) override;
  absl::Status Start(std::string_view session) override;
  absl::StatusOr<std::vector<std::string>> StartFrom(std::string_view toml) override;
  absl::Status Stop(std::string_view session) override;
  absl::StatusOr<std::string> Rotate(std::string_view session) override;
  absl::StatusOr<std::string> Snapshot(std::string_view session, absl::Duration after) override;
  absl::Status Reload() override;
  // Fails with Unavailable if the capture does not answer in time, and with ResourceExhausted if it
  // has too little memory for the answer.
  absl::StatusOr<control::ServicesStatus> Services() override;
  absl::StatusOr<std::unique_ptr<control::Tail>> StartTail(std::string_view session,
                                                           base::UniqueFd socket,
                                                           std::string first) override;

 private:
  struct Entry {
    std::shared_ptr<SessionController> controller;
    bool is_from_settings = true;  // false if StartFrom has added the session
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Entries entries() const;
  absl::StatusOr<std::shared_ptr<SessionController>> Find(std::string_view session) const;
  // Adds a session whose name must be unused. If `starts`, also starts it; the future holds the
  // result of the start. The session stays added if the start fails. It is not added if no thread
  // can be created for it.
  std::future<absl::Status> Add(const SessionSettings& session, bool is_from_settings, bool starts);
  // Stops and removes these sessions. Returns the names of the sessions that do not stop in time;
  // these are kept.
  std::vector<std::string> Remove(const std::vector<std::string>& names);
  // Returns AlreadyExists if the session would write or delete files of one of `others`.
  absl::Status CheckFiles(const SessionSettings& session, const Entries& others) const;
  absl::Status ReloadLocked();
  absl::StatusOr<control::ServicesStatus> ListServices() const;

  const std::shared_ptr<collector::PatternMemory> memory_;
  SharedState shared_;
  const ReadSettings read_;
  const DaemonSettings settings_;  // settings at the start of the daemon
  std::mutex changing_;            // held while sessions are added or removed: one change at a time
  mutable std::mutex mutex_;
  Entries entries_;
  std::mutex listing_;  // held while services are listed: callers share one list
  absl::StatusOr<control::ServicesStatus> services_;            // result of the latest list
  absl::Duration services_listed_ = -absl::InfiniteDuration();  // time of that list
  std::string settings_error_;  // error of the settings that were read last; "" if they are valid
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_DAEMON_H_
