#include "tools/nettraced/capture_pool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/nettraced/config/session_options.h"
#include "tools/nettraced/log.h"

namespace nettraced {
namespace {

// Minimum number of bytes for the ring chunks of each service with rings in user space.
constexpr std::uint64_t kMinServiceRing = std::uint64_t{64} << 10;

bool HasFilter(const SessionSettings& settings) {
  return std::any_of(settings.select.begin(), settings.select.end(),
                     [](const collector::Selector& selector) { return !selector.filter.empty(); });
}

// Returns the key of the session's capture: the name of the session, or "" for the shared capture.
// No session has an empty name.
std::string KeyFor(const SessionSettings& settings) {
  const bool is_shared = settings.target == TargetSettings() && !HasFilter(settings);
  return is_shared ? "" : settings.name;
}

collector::CaptureOptions MakeOptions(const SessionSettings& settings, std::size_t ring_size) {
  collector::CaptureOptions options;
  options.leave_out_own_process = true;
  options.identity = true;
  // Attaching all tracepoints of the kernel takes minutes. It is done in parts of 100 ms, and other
  // sessions can start between two parts.
  options.attachments.attach_tracepoints_for = absl::Milliseconds(100);
  options.target = ToTargetSelection(settings.target);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  options.ring_size = std::bit_ceil(std::max(ring_size, page));
  return options;
}

}  // namespace

void CapturePool::SetSharedRingSize(std::size_t size) {
  const std::lock_guard lock(mutex_);
  shared_ring_size_ = size;
}

absl::StatusOr<std::shared_ptr<CaptureThread>> CapturePool::Get(const SessionSettings& settings) {
  const std::string key = KeyFor(settings);
  const std::lock_guard opening(opening_);
  std::size_t ring_size = settings.ring_size;
  std::shared_ptr<CaptureThread> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = captures_.find(key); found != captures_.end()) {
      known = found->second.lock();
    }
    if (key.empty()) ring_size = std::max(ring_size, shared_ring_size_);
  }
  if (known != nullptr && known->status().ok()) {
    const absl::Status& kernel = known->kernel_status();
    if (kernel.ok() || !collector::NeedsKernel(settings.select)) return known;
    // Fails instead of opening another capture. Only one capture can have the socket of the
    // services, and other sessions still use it.
    return absl::Status(kernel.code(), absl::StrCat(kernel.message(), ", then restart nettraced"));
  }
  collector::CaptureOptions options = MakeOptions(settings, ring_size);
  options.attachments.memory = memory_;
  // Services connect to only one socket, so only one capture can have it: the shared capture.
  if (key.empty() && !collector::WhyServicesUseRings().empty()) {
    options.rings.emplace();
    if (ring_socket_.fd.valid()) {
      options.rings->path = ring_socket_.path;
      options.rings->listening = ring_socket_.fd.get();
    } else {
      const char* const chosen = std::getenv("EVENTHEADER_SOCKET");
      options.rings->path = chosen == nullptr ? absl::StrCat(ring_folder_, "/events") : chosen;
    }
    options.wait_for_sessions = absl::Milliseconds(500);
    options.rings->mode = 0666;  // services of all users may connect
    options.rings->bytes_of_client = std::max<std::uint64_t>(ring_size, kMinServiceRing);
  }
  ASSIGN_OR_RETURN(auto capture, CaptureThread::Start(options));
  if (const absl::Status& kernel = capture->kernel_status();
      !kernel.ok() && kernel != logged_kernel_) {
    logged_kernel_ = kernel;
    Log(LOG_WARNING,
        absl::StrCat("the kernel's events are not available, so only services that pass events by "
                     "rings are recorded: ",
                     kernel.message()));
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(captures_, [](const auto& each) { return each.second.expired(); });
  std::erase_if(heartbeats_, [](const auto& each) { return each.expired(); });
  captures_[key] = capture;
  heartbeats_.push_back(capture->heartbeat());
  return capture;
}

bool CapturePool::AreAlive(absl::Duration period) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(heartbeats_.begin(), heartbeats_.end(), [period](const auto& each) {
    const auto heartbeat = each.lock();
    return heartbeat == nullptr || heartbeat->IsAlive(base::MonotonicNow(), period);
  });
}

}  // namespace nettraced
