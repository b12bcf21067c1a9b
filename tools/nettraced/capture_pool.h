// Which sessions share a capture, and with that the kernel's rings.
#ifndef TOOLS_NETTRACED_CAPTURE_POOL_H_
#define TOOLS_NETTRACED_CAPTURE_POOL_H_

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/config/settings.h"
#include "tools/collector/session/pattern_memory.h"
#include "tools/nettraced/capture_thread.h"

namespace nettraced {

// Sessions without a target and without filters share one capture; each other one has its own.
// Captures are open as long as somebody holds them. Thread-safe.
class CapturePool {
 public:
  // `memory` is that of the patterns of all captures.
  explicit CapturePool(std::shared_ptr<collector::PatternMemory> memory)
      : memory_(std::move(memory)) {}

  // The size of the rings that are shared, from when they are opened next.
  void SetSharedRingSize(std::size_t size);
  // The capture for a session of these settings: that which is open, unless it has failed, or a new
  // one.
  absl::StatusOr<std::shared_ptr<CaptureThread>> Get(const collector::SessionSettings& settings);
  // Whether all captures are being drained; see Heartbeat::IsAlive. Never waits for a capture.
  bool AreAlive(absl::Duration period) const;

 private:
  const std::shared_ptr<collector::PatternMemory> memory_;
  mutable std::mutex mutex_;
  std::size_t shared_ring_size_ = 0;
  std::map<std::string, std::weak_ptr<CaptureThread>> captures_;  // by KeyOf
  std::vector<std::weak_ptr<const Heartbeat>> heartbeats_;
  std::mutex opening_;  // held while a capture is opened, so that there is one of a key
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CAPTURE_POOL_H_
