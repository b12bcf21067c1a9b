#include "tools/collector/perf/registration_probe.h"

#include <linux/perf_event.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {
namespace {

constexpr char kSource[] = "/sys/bus/event_source/devices/kprobe/";
// Function that is probed. It is a file operation, so the compiler cannot inline it.
constexpr char kFunction[] = "user_events_ioctl";

// Returns the probe's type and location, or no value if the kernel has no kprobes.
std::optional<perf_event_attr> ProbeAttributes() {
  std::uint32_t type = 0;
  if (!(std::ifstream(std::string(kSource) + "type") >> type)) return std::nullopt;
  // "config:BIT" names the bit that places the probe at the function's return.
  constexpr char kPrefix[] = "config:";
  std::string format;
  std::ifstream(std::string(kSource) + "format/retprobe") >> format;
  if (!format.starts_with(kPrefix) || format.size() != sizeof kPrefix || format.back() < '0' ||
      format.back() > '9') {
    return std::nullopt;
  }
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = std::uint64_t{1} << (format.back() - '0');
  attr.kprobe_func = reinterpret_cast<std::uintptr_t>(kFunction);
  attr.sample_type = kSampleType & ~static_cast<__u64>(PERF_SAMPLE_RAW);
  attr.sample_period = 1;
  attr.wakeup_events = 1;
  return attr;
}

}  // namespace

absl::StatusOr<RegistrationProbe> RegistrationProbe::Open(int cpu) {
  std::optional<perf_event_attr> attr = ProbeAttributes();
  if (!attr)
    return absl::UnimplementedError(
        "this kernel has no kprobes for perf events (CONFIG_KPROBE_EVENTS)");
  base::UniqueFd fd = OpenEvent(&*attr, /*pid=*/-1, cpu);
  if (!fd.valid()) {
    const int error = errno;
    const absl::Status status =
        base::ErrnoStatus(error, "probing for registrations of tracepoints");
    if (error == ENODEV) return absl::NotFoundError(status.message());
    return absl::FailedPreconditionError(status.message());
  }
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(fd.get(), page));
  return RegistrationProbe(std::move(fd), std::move(ring));
}

void RegistrationProbe::Clear() {
  ring_.Drain(PerfRing::kNoLimit, [](const PerfRecord&) {});
}

}  // namespace collector
