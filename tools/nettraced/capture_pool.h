// Decides which sessions share a capture and its rings in the kernel.
#ifndef TOOLS_NETTRACED_CAPTURE_POOL_H_
#define TOOLS_NETTRACED_CAPTURE_POOL_H_

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/session/pattern_memory.h"
#include "tools/nettraced/activated_socket.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/nettraced/config/session_options.h"
#include "tools/nettraced/config/settings.h"

namespace nettraced {

// Holds the captures. Sessions without a target, filters, stacks and samples share one capture,
// which also has the socket of services with rings in user space. A session whose events can come
// only from such services also uses the shared capture, even with a target, filters or stacks. Each
// other session has a separate capture. A capture stays open until its last shared_ptr is released.
// Thread-safe.
class CapturePool {
 public:
  // All captures use the pattern memory `memory`.
  explicit CapturePool(std::shared_ptr<collector::PatternMemory> memory)
      : memory_(std::move(memory)) {}

  // Sets the size of the shared rings, in bytes, for the next time that the shared capture is
  // opened.
  void SetSharedRingSize(std::size_t size);
  // Sets the settings of the socket for services with rings in user space. `path` is the default
  // path of the socket. The first of SetRingSocket, EVENTHEADER_SOCKET and RingsSettings::socket
  // that is set overrides it. Must be called before Get.
  void SetRings(RingsSettings rings, std::string path) {
    rings_ = std::move(rings);
    ring_path_ = std::move(path);
  }
  // Returns why no capture has the socket for services with rings in user space, or "" if the
  // shared capture has it.
  std::string WhyNoRings() const;
  // Sets a listening socket for services with rings in user space, which is used in place of a new
  // one. Must be called before Get.
  void SetRingSocket(ActivatedSocket socket) { ring_socket_ = std::move(socket); }
  // BeginStart must be called before a session is started, and EndStart after the attempt to start
  // it. Services may have kept events since a crash of the daemon. While sessions are being
  // started, a capture waits for up to 10 s before it reads these events, so that all sessions get
  // them.
  void BeginStart() { ++*starting_; }
  void EndStart() { --*starting_; }
  // Holds what Choose has decided about a session: which capture records it, and why.
  struct Place {
    // Whether the session uses the shared capture although it has a target, filters or stacks; see
    // collector::SessionOptions::only_rings.
    bool only_rings = false;
    std::string why_no_rings;  // see collector::SessionOptions::why_no_rings
    absl::Status status;       // error that Get returns; OK if the session can be recorded
  };
  // Decides how to record a session with these settings, depending on what the kernel provides now.
  Place Choose(const SessionSettings& settings) const;
  // Returns the capture for a session with these settings. Opens a capture if none is open or the
  // open capture has failed. Fails if a capture cannot be opened, or if the settings select events
  // of the kernel and the open capture has none.
  absl::StatusOr<std::shared_ptr<CaptureThread>> Get(const SessionSettings& settings,
                                                     const Place& place);
  // Returns the shared capture, the only one that can have the socket of services with rings in
  // user space; null if it is not open.
  std::shared_ptr<CaptureThread> GetOfServices() const;
  // Returns whether each capture has been drained within the last `period` (see
  // Heartbeat::IsAlive). Does not block.
  bool AreAlive(absl::Duration period) const;

 private:
  struct Entry {
    std::weak_ptr<CaptureThread> capture;
    CaptureNeeds needs;
  };

  // Returns the options of the socket for services with rings in user space. `ring_size` is the
  // size of each CPU's ring.
  collector::RingServerOptions MakeRingOptions(std::size_t ring_size) const;

  const std::shared_ptr<collector::PatternMemory> memory_;
  RingsSettings rings_;
  std::string ring_path_;
  ActivatedSocket ring_socket_;
  // Number of sessions that are being started.
  const std::shared_ptr<std::atomic<int>> starting_ = std::make_shared<std::atomic<int>>(0);
  mutable std::mutex mutex_;
  std::size_t shared_ring_size_ = 0;
  std::map<std::string, Entry> captures_;  // by KeyFor(settings, place)
  std::vector<std::weak_ptr<const Heartbeat>> heartbeats_;
  std::mutex opening_;  // held while a capture is opened, so that no key gets two captures
  // Last CaptureThread::kernel_status that was logged. Retries do not log the same status again.
  absl::Status logged_kernel_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CAPTURE_POOL_H_
