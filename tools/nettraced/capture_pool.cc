#include "tools/nettraced/capture_pool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/collector/session/ring_feed.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/nettraced/config/session_options.h"
#include "tools/nettraced/log.h"

namespace nettraced {
namespace {

// Minimum number of bytes for events of each service with rings in user space, if the settings have
// no bytes_of_service.
constexpr std::uint64_t kMinServiceRing = std::uint64_t{64} << 10;

// Returns the key in captures_ of the session's capture: the name of the session, or "" for the
// shared capture. No session has an empty name.
std::string KeyFor(const SessionSettings& settings, const CapturePool::Place& place) {
  return place.only_rings || !NeedsSeparateCapture(settings) ? "" : settings.name;
}

// Returns whether a selector may match a tracepoint that the kernel has now, other than those of
// user_events.
bool MayMatchKernel(const collector::Tracefs& tracefs,
                    const std::vector<collector::Selector>& selectors) {
  if (std::all_of(selectors.begin(), selectors.end(),
                  [](const auto& selector) { return selector.needs_user_events(); })) {
    return false;
  }
  const std::vector<collector::Tracefs::Name> names = tracefs.Tracepoints();
  return std::any_of(names.begin(), names.end(), [&selectors](const auto& name) {
    return std::any_of(selectors.begin(), selectors.end(), [&name](const auto& selector) {
      return selector.MatchesTracepoint(name.system, name.event);
    });
  });
}

// Makes the capture's thread log services that are refused.
void ReportRefusals(CaptureThread* thread) {
  thread->Run([thread](collector::Capture& capture) {
    thread->AddObserver(
        &capture, [&capture, news = std::make_shared<collector::RingRefusalNews>()] {
          if (capture.ring_server() == nullptr) return;
          for (const std::string& message : news->Take(capture.ring_server()->refusals())) {
            Log(LOG_WARNING, absl::StrCat(message, "; see 'nettrace ctl services'"));
          }
        });
  });
}

collector::CaptureOptions MakeOptions(const CaptureNeeds& needs, std::size_t ring_size) {
  collector::CaptureOptions options;
  options.target = ToTargetSelection(needs.target);
  options.stacks = needs.stacks;
  options.tracepoints = needs.tracepoints;
  options.leave_out_own_process = true;
  options.identity = true;
  // Attaching all tracepoints of the kernel takes minutes. It is done in parts of 100 ms, and other
  // sessions can start between two parts.
  options.attachments.attach_tracepoints_for = absl::Milliseconds(100);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  options.ring_size = std::bit_ceil(std::max(ring_size, page));
  return options;
}

}  // namespace

void CapturePool::SetSharedRingSize(std::size_t size) {
  const std::lock_guard lock(mutex_);
  shared_ring_size_ = size;
}

CapturePool::Place CapturePool::Choose(const SessionSettings& settings) const {
  Place place;
  if (!NeedsSeparateCapture(settings) || !WhyNoRings().empty() ||
      std::none_of(settings.select.begin(), settings.select.end(), collector::MayMatchServices)) {
    return place;
  }
  const absl::StatusOr<collector::Tracefs> tracefs = collector::Tracefs::Find();
  const bool has_user_events = tracefs.ok() && tracefs->HasUserEvents();
  place.only_rings = !settings.has_samples() && !collector::NeedsKernel(settings.select) &&
                     settings.dotnet.empty() && !has_user_events &&
                     !(tracefs.ok() && MayMatchKernel(*tracefs, settings.select));
  if (place.only_rings) return place;
  place.why_no_rings =
      "a session with a target, a filter, stacks or samples records either such services, or "
      "events of the kernel and of .NET; select the services in another session";
  const auto needs_services = [](const auto& selector) { return selector.needs_user_events(); };
  const auto needing = std::find_if(settings.select.begin(), settings.select.end(), needs_services);
  if (!has_user_events && needing != settings.select.end()) {
    place.status = absl::FailedPreconditionError(
        absl::StrCat("selector '", needing->text,
                     "': services that use shared memory are not recorded: ", place.why_no_rings));
  }
  return place;
}

absl::StatusOr<std::shared_ptr<CaptureThread>> CapturePool::Get(const SessionSettings& settings,
                                                                const Place& place) {
  RETURN_IF_ERROR(place.status);
  const std::string key = KeyFor(settings, place);
  const std::lock_guard opening(opening_);
  const CaptureNeeds needs = key.empty() ? CaptureNeeds() : MakeCaptureNeeds(settings);
  std::size_t ring_size = settings.ring_size;
  std::shared_ptr<CaptureThread> known;
  {
    const std::lock_guard lock(mutex_);
    // Compares the needs, because a tail may still hold a capture that was opened for earlier
    // settings of the session.
    const auto found = captures_.find(key);
    if (found != captures_.end() && found->second.needs == needs) {
      known = found->second.capture.lock();
    }
    if (key.empty()) ring_size = std::max(ring_size, shared_ring_size_);
  }
  if (known != nullptr && known->status().ok()) {
    const absl::Status kernel = collector::CheckKernel(settings.select, known->kernel_status());
    if (kernel.ok()) return known;
    // Fails instead of opening another capture. Only one capture can have the socket of the
    // services, and other sessions still use the open capture.
    return absl::Status(kernel.code(),
                        absl::StrCat(kernel.message(), "; restart nettraced after solving this"));
  }
  collector::CaptureOptions options = MakeOptions(needs, ring_size);
  options.attachments.memory = memory_;
  options.streams = !settings.dotnet.empty();
  // Services connect to only one socket, so only one capture can have it: the shared capture.
  if (key.empty() && WhyNoRings().empty()) {
    options.rings = MakeRingOptions(ring_size);
    options.expects_sessions = [starting = starting_] { return *starting > 0; };
  }
  ASSIGN_OR_RETURN(auto capture, CaptureThread::Start(options));
  if (const absl::Status& kernel = capture->kernel_status();
      !kernel.ok() && kernel != logged_kernel_) {
    logged_kernel_ = kernel;
    Log(LOG_WARNING,
        absl::StrCat("the kernel's events are not available, so only streams of .NET and services "
                     "that use shared memory are recorded: ",
                     kernel.message()));
  }
  if (options.rings) ReportRefusals(capture.get());
  const std::lock_guard lock(mutex_);
  std::erase_if(captures_, [](const auto& each) { return each.second.capture.expired(); });
  std::erase_if(heartbeats_, [](const auto& each) { return each.expired(); });
  captures_[key] = {capture, needs};
  heartbeats_.push_back(capture->heartbeat());
  return capture;
}

std::string CapturePool::WhyNoRings() const {
  using Accept = RingsSettings::Accept;
  if (rings_.accept == Accept::kAlways) return "";
  if (rings_.accept == Accept::kNever)
    return "the settings have accept = \"never\" in [daemon.rings]";
  return collector::WhyServicesUseRings().empty()
             ? "services of this machine use user_events, which 'eventheader list' shows"
             : "";
}

collector::RingServerOptions CapturePool::MakeRingOptions(std::size_t ring_size) const {
  collector::RingServerOptions options;
  const std::string chosen = collector::ChosenRingSocket();
  if (ring_socket_.fd.valid()) {
    options.path = ring_socket_.path;
    options.listening = ring_socket_.fd.get();
  } else if (!chosen.empty()) {
    options.path = chosen;
  } else {
    options.path = rings_.socket;
    if (rings_.socket.empty()) collector::PlaceInSubfolder(ring_path_, &options);
  }
  options.mode = 0666;  // services of all users may connect
  options.clients = rings_.services;
  options.clients_of_user = rings_.services_of_user;
  options.bytes_of_user = rings_.bytes_of_user;
  options.bytes_of_copies = 2 * rings_.bytes_of_user;
  options.bytes_of_client = rings_.bytes_of_service != 0
                                ? rings_.bytes_of_service
                                : std::max<std::uint64_t>(ring_size, kMinServiceRing);
  return options;
}

std::shared_ptr<CaptureThread> CapturePool::GetOfServices() const {
  const std::lock_guard lock(mutex_);
  const auto found = captures_.find(std::string());
  return found == captures_.end() ? nullptr : found->second.capture.lock();
}

bool CapturePool::AreAlive(absl::Duration period) const {
  const std::lock_guard lock(mutex_);
  return std::all_of(heartbeats_.begin(), heartbeats_.end(), [period](const auto& each) {
    const auto heartbeat = each.lock();
    return heartbeat == nullptr || heartbeat->IsAlive(base::MonotonicNow(), period);
  });
}

}  // namespace nettraced
