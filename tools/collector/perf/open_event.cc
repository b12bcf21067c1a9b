#include "tools/collector/perf/open_event.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "tools/base/status_macros.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {
namespace {

// Returns whether this process may trace the processes of all users.
bool MayTraceAll() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  const auto has = [&sets](unsigned capability) {
    return (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
  };
  return has(CAP_PERFMON) || has(CAP_SYS_ADMIN);
}

}  // namespace

perf_event_attr BaseAttributes(std::size_t ring_size) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.sample_type = kSampleType;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = static_cast<__u32>(ring_size / 4);
  return attr;
}

perf_event_attr TracepointAttributes(int id) {
  perf_event_attr attr = BaseAttributes(/*ring_size=*/0);
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = static_cast<__u64>(id);
  attr.sample_period = 1;
  attr.disabled = 1;
  return attr;
}

base::UniqueFd OpenEvent(perf_event_attr* attr, int pid, int cpu, unsigned long flags) {
  return base::UniqueFd(static_cast<int>(
      syscall(SYS_perf_event_open, attr, pid, cpu, /*group_fd=*/-1, flags | PERF_FLAG_FD_CLOEXEC)));
}

absl::Status OpenError(int error, const std::string& what) {
  switch (error) {
    case EACCES:
    case EPERM:
      if (MayTraceAll()) {
        return base::ErrnoStatus(error, what, "the kernel does not let perf sample it");
      }
      return base::ErrnoStatus(
          error, what, "run as root, grant CAP_PERFMON, or set kernel.perf_event_paranoid to -1");
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          base::ErrnoStatus(
              error, what,
              "raise the limit of open files (ulimit -Hn), or select fewer tracepoints")
              .message());
    case ENOSYS:
      return base::ErrnoStatus(error, what, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
    case ENODEV:
      return absl::NotFoundError(absl::StrCat(what, ": the CPU is offline"));
    case ENOENT:
      return absl::FailedPreconditionError(base::ErrnoStatus(error, what).message());
    default:
      return base::ErrnoStatus(error, what);
  }
}

}  // namespace collector
