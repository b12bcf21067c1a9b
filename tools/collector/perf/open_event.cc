#include "tools/collector/perf/open_event.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/perf_records.h"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)  // since Linux 6.0; older headers lack it
#endif

namespace collector {
namespace {

// Returns whether this process may trace the processes of all users.
bool MayTraceAll() { return HasCapability(CAP_PERFMON) || HasCapability(CAP_SYS_ADMIN); }

// Returns the attributes that DummyAttributes and TracepointAttributes have in common.
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

absl::Status LossesAreNotCounted() {
  return absl::UnimplementedError(
      "this kernel is older than 6.0, and does not count losses per event");
}

// Sets a bit of the flags that follow attr.read_format. Older headers lack names for the last
// flags.
void SetFlag(unsigned bit, perf_event_attr* attr) {
  // On big-endian machines, the first flag is the highest bit.
  if constexpr (std::endian::native == std::endian::big) bit = 63 - bit;
  std::byte* const flags =
      reinterpret_cast<std::byte*>(attr) + offsetof(perf_event_attr, read_format) + 8;
  std::uint64_t value;
  std::memcpy(&value, flags, sizeof value);
  value |= std::uint64_t{1} << bit;
  std::memcpy(flags, &value, sizeof value);
}

// Makes the calling thread have a page fault.
void FaultPage() {
  const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  *static_cast<volatile char*>(page) = 1;
  munmap(page, size);
}

// Records a page fault of the calling thread on `cpu`, with a stack whose user part is deferred.
// Returns whether the user part has arrived.
bool DeferredStackArrives(int cpu) {
  const std::size_t size = 16 * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  perf_event_attr ring_attr = DummyAttributes(size);
  WriteDeferredStacks(&ring_attr);
  absl::StatusOr<EventRing> ring = EventRing::Open(ring_attr, cpu, size);
  if (!ring.ok()) return false;
  perf_event_attr attr = BaseAttributes(/*ring_size=*/0);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_PAGE_FAULTS;
  attr.sample_type = kStackSampleType & ~std::uint64_t{PERF_SAMPLE_ADDR};
  attr.sample_period = 1;
  DeferStacks(&attr);
  const base::UniqueFd event = OpenEvent(&attr, /*pid=*/0, cpu);
  if (!event.valid() || ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, ring->event.get()) != 0) {
    return false;
  }
  FaultPage();
  bool arrives = false;
  ring->ring.Drain(PerfRing::kNoLimit, [&arrives](const PerfRecord& record) {
    DeferredStackRecord stack;
    arrives = arrives || (ParseDeferredStack(record, &stack) && !stack.entries.empty());
  });
  return arrives;
}

}  // namespace

bool HasCapability(unsigned capability) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  return (sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);  // if this fails, OpenError reports EMFILE later
  }
}

void RaiseHardDescriptorLimit() {
  // Default of fs.nr_open. The actual value is not read, because the process may have no free
  // descriptor.
  constexpr rlim_t kAllowed = 1 << 20;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kAllowed) return;
  limit.rlim_cur = limit.rlim_max = kAllowed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

perf_event_attr DummyAttributes(std::size_t ring_size) {
  perf_event_attr attr = BaseAttributes(ring_size);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  return attr;
}

bool KernelReportsBuildIds() {
  static const bool reports = [] {
    perf_event_attr attr = DummyAttributes(/*ring_size=*/0);
    attr.mmap = attr.mmap2 = attr.build_id = 1;
    return OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1).valid();
  }();
  return reports;
}

void DeferStacks(perf_event_attr* attr) {
  constexpr unsigned kDeferCallchain = 38;
  SetFlag(kDeferCallchain, attr);
}

void WriteDeferredStacks(perf_event_attr* attr) {
  constexpr unsigned kDeferOutput = 39;
  SetFlag(kDeferOutput, attr);
  // The kernel passes these records only to events that request records of tasks. comm_exec makes
  // this event such an event, and causes no other records by itself.
  attr->comm_exec = 1;
}

bool KernelDefersStacks() {
  static const bool defers = [] {
    // Tries again, because the thread may move to another CPU before the page fault. The ring then
    // gets no sample.
    constexpr int kAttempts = 3;
    for (int i = 0; i < kAttempts; ++i) {
      if (DeferredStackArrives(sched_getcpu())) return true;
    }
    return false;
  }();
  return defers;
}

std::uint16_t KernelMaxFrames() {
  constexpr int kDefault = 127;
  // Maximum number of frames; TraceEvent truncates longer stacks.
  constexpr int kLongest = 8190;
  int frames = 0;
  std::ifstream("/proc/sys/kernel/perf_event_max_stack") >> frames;
  return static_cast<std::uint16_t>(frames > 0 ? std::min(frames, kLongest) : kDefault);
}

perf_event_attr TracepointAttributes(int id) {
  perf_event_attr attr = BaseAttributes(/*ring_size=*/0);
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = static_cast<__u64>(id);
  attr.sample_period = 1;
  attr.disabled = 1;
  CountLosses(&attr);
  return attr;
}

perf_event_attr CpuTimeAttributes(std::uint32_t rate) {
  perf_event_attr attr = TracepointAttributes(kCpuTimeId);
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_CPU_CYCLES;
  attr.sample_type = kStackSampleType;
  attr.freq = 1;
  attr.sample_freq = rate;
  attr.exclude_idle = 1;
  return attr;
}

bool UseCpuClock(perf_event_attr* attr) {
  if (attr->type == PERF_TYPE_SOFTWARE) return false;
  attr->type = PERF_TYPE_SOFTWARE;
  attr->config = PERF_COUNT_SW_CPU_CLOCK;
  return true;
}

perf_event_attr SwitchAttributes() {
  perf_event_attr attr = TracepointAttributes(kSwitchesId);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
  attr.sample_type = kSwitchSampleType;
  attr.context_switch = 1;
  return attr;
}

std::uint32_t KernelMaxSampleRate() {
  constexpr std::uint32_t kDefault = 100'000;
  std::uint32_t rate = 0;
  std::ifstream("/proc/sys/kernel/perf_event_max_sample_rate") >> rate;
  return rate != 0 ? rate : kDefault;
}

void CountLosses(perf_event_attr* attr) {
  attr->read_format = CheckLossesAreCounted().ok() ? PERF_FORMAT_LOST : 0;
}

base::UniqueFd OpenEvent(perf_event_attr* attr, int pid, int cpu, unsigned long flags) {
  const auto open = [&] {
    return base::UniqueFd(static_cast<int>(syscall(SYS_perf_event_open, attr, pid, cpu,
                                                   /*group_fd=*/-1, flags | PERF_FLAG_FD_CLOEXEC)));
  };
  base::UniqueFd fd = open();
  if (fd.valid() || errno != EMFILE) return fd;
  RaiseHardDescriptorLimit();
  return open();
}

absl::Status OpenError(int error, const std::string& what) {
  switch (error) {
    case EACCES:
    case EPERM:
      if (MayTraceAll()) {
        return base::ErrnoStatus(error, what,
                                 "the kernel does not let perf sample it; leave it out of the "
                                 "selectors if it is a tracepoint");
      }
      return base::ErrnoStatus(
          error, what, "run as root, grant CAP_PERFMON, or set kernel.perf_event_paranoid to -1");
    case EMFILE:
      return base::ErrnoStatus(error, what,
                               "raise the limit of open files (ulimit -Hn, or LimitNOFILE= in the "
                               "unit of nettraced), or select fewer tracepoints");
    case ENFILE:
      return base::DescriptorStatus(error, what);
    case ENOSYS:
      return base::ErrnoStatus(
          error, what, "this kernel has no perf events; use a kernel with CONFIG_PERF_EVENTS=y");
    case ENODEV:
      return absl::NotFoundError(absl::StrCat(what, ": the CPU is offline"));
    case ENOENT:
      return absl::FailedPreconditionError(base::ErrnoStatus(error, what).message());
    default:
      return base::ErrnoStatus(error, what);
  }
}

absl::StatusOr<EventRing> EventRing::Open(perf_event_attr attr, int cpu, std::size_t size) {
  base::UniqueFd event = OpenEvent(&attr, /*pid=*/-1, cpu);
  if (!event.valid()) return OpenError(errno, absl::StrCat("opening perf events on CPU ", cpu));
  ASSIGN_OR_RETURN(PerfRing ring, PerfRing::Map(event.get(), size));
  return EventRing{std::move(event), std::move(ring)};
}

absl::Status CheckLossesAreCounted() {
  static const bool are_counted = [] {
    perf_event_attr attr = DummyAttributes(/*ring_size=*/0);
    attr.read_format = PERF_FORMAT_LOST;
    return OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1).valid() || errno != EINVAL;
  }();
  return are_counted ? absl::OkStatus() : LossesAreNotCounted();
}

absl::StatusOr<EventCounts> ReadCounts(const base::UniqueFd& event) {
  EventCounts counts;  // in the kernel's layout
  const ssize_t got = read(event.get(), &counts, sizeof counts);
  if (got == sizeof counts) return counts;
  if (got == sizeof counts.hits) return LossesAreNotCounted();
  // The kernel returns no bytes for an event that it cannot count.
  return base::ErrnoStatus(got < 0 ? errno : EIO, "reading the counts of a perf event");
}

}  // namespace collector
