#include "tools/collector/session/capture.h"

#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/session/eventpipe_feed.h"
#include "tools/collector/session/journal_feed.h"
#include "tools/collector/system/cgroup2.h"

namespace collector {
namespace {

// Returns the description of a trace, with the current moment on the trace's clock and in UTC.
// `cpu_rate` has the meaning of SessionOptions::cpu_rate.
nettrace::TraceInfo MakeTraceInfo(const std::vector<CpuRing>& cpus, std::uint32_t cpu_rate) {
  nettrace::TraceInfo info;
  // The file stores UTC in milliseconds. The time on the trace's clock is computed for the full
  // millisecond, so that both describe the same moment.
  absl::Time now;
  std::int64_t ticks = 0;
  // The thread may be interrupted between reading the two clocks. Several pairs are read, and the
  // pair with the least time between its readings is used.
  std::int64_t apart = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const auto before = static_cast<std::int64_t>(SessionClockNow());
    const absl::Time time = absl::Now();
    const auto after = static_cast<std::int64_t>(SessionClockNow());
    if (after - before >= apart) continue;
    apart = after - before;
    now = time;
    ticks = before + apart / 2;
  }
  info.sync_time = absl::FromUnixMillis(absl::ToUnixMillis(now));
  info.sync_ticks = ticks - absl::ToInt64Nanoseconds(now - info.sync_time);
  info.ticks_per_second = 1'000'000'000;
  info.pointer_size = static_cast<std::int32_t>(sizeof(void*));
  // CPU numbers may have gaps, and CPUs may come online later. Readers size their tables by this
  // count, so it must be above the maximum number.
  int last = 0;
  for (const CpuRing& cpu : cpus) last = std::max(last, cpu.number());
  info.key_values = {{nettrace::kKeyHardwareThreadCount, absl::StrCat(last + 1)},
                     {nettrace::kKeySystemPageSize, absl::StrCat(sysconf(_SC_PAGESIZE))}};
  if (cpu_rate != 0) {
    constexpr std::uint32_t kSecond = 1'000'000'000;  // ns
    info.key_values.emplace_back(nettrace::kKeyExpectedCpuSamplingRate,
                                 absl::StrCat(kSecond / cpu_rate));
  }
  utsname system = {};
  if (uname(&system) == 0) info.key_values.emplace_back(nettrace::kKeyHostName, system.nodename);
  std::string boot_id;
  if (std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id) {
    info.key_values.emplace_back(nettrace::kKeyBootId, boot_id);
  }
  return info;
}

std::vector<CgroupFolder> IdentifyCgroups(std::span<const base::UniqueFd> folders) {
  std::vector<CgroupFolder> ids;
  for (const base::UniqueFd& folder : folders) {
    if (const auto id = IdentifyCgroup(folder)) ids.push_back(*id);
  }
  return ids;
}

// Records the selectors that may match tracepoints of services as skipped, if
// SessionOptions::why_no_rings says that services with rings in user space are not recorded.
void SkipServices(SessionWriter* session) {
  if (session->why_no_rings().empty()) return;
  for (const Selector& selector : session->tracepoints().selectors()) {
    if (!MayMatchServices(selector)) continue;
    session->tracepoints().Skip(
        selector.text, absl::StrCat("selector '", selector.text,
                                    "': services that use shared memory are not recorded: ",
                                    session->why_no_rings()));
  }
}

// Returns the number of processes whose code cannot be read: of `target.pids` if it has entries,
// else of all processes. Returns 0 for a target of threads.
std::size_t CountUnreadable(const CodeTracker& code, const TargetSelection& target) {
  const std::vector<std::uint32_t>& unreadable = code.unreadable();
  if (target.pids.empty()) return target.tids.empty() ? unreadable.size() : 0;
  return static_cast<std::size_t>(
      std::count_if(target.pids.begin(), target.pids.end(), [&unreadable](pid_t pid) {
        return std::find(unreadable.begin(), unreadable.end(), static_cast<std::uint32_t>(pid)) !=
               unreadable.end();
      }));
}

// Adds warnings about what the stacks of the session will lack. `code` is null if the capture does
// not track code.
void WarnOfStacks(const CodeTracker* code, const TargetSelection& target, SessionWriter* session) {
  SessionTracepoints& tracepoints = session->tracepoints();
  if (session->records_only_rings() && tracepoints.HasStacks()) {
    tracepoints.Warn("the events have no stacks, because services pass them through shared memory");
  }
  const bool has_samples = session->cpu_rate() != 0 || session->off_cpu();
  if (code == nullptr || !(has_samples || tracepoints.HasStacks())) return;
  if ((has_samples || tracepoints.HasKernelStacks()) && code->kernel_symbols().empty()) {
    tracepoints.Warn(
        "the kernel's functions in stacks have no names, because /proc/kallsyms cannot be read or "
        "hides their addresses; run as root or with CAP_SYSLOG, with kernel.kptr_restrict set to 0 "
        "or 1");
  }
  const std::vector<Selector>& selectors = tracepoints.selectors();
  const bool has_user_stacks =
      has_samples || std::any_of(selectors.begin(), selectors.end(), [](const Selector& selector) {
        return selector.stacks && (selector.stacks->user || !selector.stacks->any());
      });
  // Does not warn if the collector has CAP_SYS_PTRACE: no further privilege would let it read
  // /proc/PID/maps of the remaining processes.
  const std::size_t unreadable = has_user_stacks ? CountUnreadable(*code, target) : 0;
  if (unreadable != 0 && !HasCapability(CAP_SYS_PTRACE)) {
    tracepoints.Warn(absl::StrCat(
        "stacks of processes that started before the recording have no modules and names, because "
        "/proc/PID/maps cannot be read (number of such processes: ",
        unreadable,
        "); run as root or with CAP_SYS_PTRACE, or with CAP_PERFMON from Linux 6.15 on"));
  }
}

// Adds a warning about stacks whose deferred user part has not arrived. `missing` is the number of
// these stacks in the capture.
void WarnOfDeferredStacks(std::uint64_t missing, SessionWriter* session) {
  if (missing == 0 || !(session->cpu_rate() != 0 || session->tracepoints().HasStacks())) return;
  session->tracepoints().Warn(
      absl::StrCat("the user part is missing from ", base::Counted(missing, "stack"),
                   ", because the thread did not return to user space within ",
                   DeferredStacks::kLongestWait / 1'000'000,
                   " ms or a ring was full; such stacks have the label StackCut"));
}

// Adds a warning about code whose files were not read. `refused` is the number of these files in
// the capture.
void WarnOfRefusedFiles(std::size_t refused, SessionWriter* session) {
  if (refused == 0) return;
  session->tracepoints().Warn(absl::StrCat(
      "the table of call frames (.eh_frame) was not read from ", base::Counted(refused, "file"),
      ", whose file system is of an unknown type, or may wait for a user's process "
      "(FUSE); stacks may end in the code of such a file and have the label StackCut"));
}

// Minimum time, in ns, that one drain covers if the rings have too many events for one drain
// (NextLimit).
constexpr std::uint64_t kSmallestPart = 10'000;

}  // namespace

Capture::Capture(const CaptureOptions& options, Tracefs tracefs, PerfCapture perf,
                 TargetWatch watch)
    : options_(options),
      perf_(std::move(perf)),
      target_watch_(std::move(watch)),
      distributor_(&tasks_),
      attachments_(options.attachments, std::move(tracefs), &perf_, &distributor_,
                   [this] {
                     // Runs before a tracepoint is attached. How the losses of a session are
                     // counted depends on whether the session has all tracepoints of the capture,
                     // which may change now. Therefore all losses so far are counted first. This is
                     // not necessary if there is one session, or if the losses have been counted
                     // since the last drain: only a drain passes LOST records to the sessions.
                     const bool is_counted = sessions_.size() < 2 || counted_since_drained_;
                     return is_counted ? absl::OkStatus()
                                       : AccountLosses(PerfCapture::Losses::kAll);
                   }),
      off_cpu_(&tasks_) {
  for (const CpuRing& cpu : perf_.rings().cpus()) distributor_.AddCpu(cpu.number());
  if (options_.leave_out_own_process) distributor_.LeaveOut(static_cast<std::uint32_t>(getpid()));
}

absl::StatusOr<std::unique_ptr<Capture>> Capture::Open(const CaptureOptions& options) {
  RaiseDescriptorLimit();
  FollowedTarget followed;
  if (options.target.follow && !options.target.cgroups.empty()) {
    ASSIGN_OR_RETURN(followed, OpenFollowedTarget(options.target));
  } else {
    ASSIGN_OR_RETURN(followed.target, OpenTarget(options.target));
  }
  TargetWatch watch(followed.target);
  const std::vector<CgroupFolder> folders = IdentifyCgroups(followed.target.cgroups);
  ASSIGN_OR_RETURN(Kernel kernel, OpenKernel(options, std::move(followed.target)));
  for (const int fd : watch.descriptors()) RETURN_IF_ERROR(kernel.perf.rings().WakeOn(fd));
  CaptureOptions changed = options;
  changed.attachments.uses_rings = options.rings.has_value();
  if (const std::optional<pid_t> closer = kernel.perf.StartCloser()) {
    changed.attachments.own_threads.push_back(*closer);
  }
  std::unique_ptr<StackUnwinder> unwinder;
  if (options.copied_bytes != 0 && kernel.status.ok()) {
    ASSIGN_OR_RETURN(unwinder, StackUnwinder::Start(KernelMaxFrames()));
    RETURN_IF_ERROR(kernel.perf.rings().WakeOn(unwinder->fd()));
    changed.attachments.own_threads.push_back(unwinder->tid());
  }
  std::unique_ptr<Capture> capture(
      new Capture(changed, std::move(kernel.tracefs), std::move(kernel.perf), std::move(watch)));
  capture->kernel_status_ = kernel.status;
  capture->unwinder_ = std::move(unwinder);
  if (kernel.status.ok()) capture->OpenKernelReports();
  capture->cgroups_ = folders;
  RETURN_IF_ERROR(capture->BeginToFollow(std::move(followed.follower)));
  // Reads /proc while the rings are already open, so that every thread is in /proc or its creation
  // is recorded in a ring.
  if (options.identity) {
    CgroupTable cgroups(Cgroup2Mount());
    if (capture->perf_.has_cgroups()) cgroups.Load();
    capture->tasks_.DescribeThreads(std::move(cgroups));
  }
  if (options.stacks) capture->tasks_.TrackCode();
  capture->tasks_.LoadFromProc(SessionClockNow());
  capture->drained_ = capture->last_moment_ = SessionClockNow();
  return capture;
}

absl::StatusOr<Capture::Kernel> Capture::OpenKernel(const CaptureOptions& options,
                                                    PerfTarget target) {
  const auto open = [&]() -> absl::StatusOr<Kernel> {
    ASSIGN_OR_RETURN(Tracefs tracefs, options.tracepoints
                                          ? Tracefs::Find()
                                          : absl::StatusOr<Tracefs>(Tracefs::None()));
    ASSIGN_OR_RETURN(const std::vector<int> cpus, PossibleCpus());
    ASSIGN_OR_RETURN(PerfCapture perf,
                     PerfCapture::Open(cpus, {options.ring_size, std::move(target),
                                              /*cgroups=*/options.identity && PerfUsesCgroup2(),
                                              options.stacks, options.copied_bytes}));
    return Kernel{std::move(tracefs), std::move(perf), absl::OkStatus()};
  };
  absl::StatusOr<Kernel> kernel = open();
  if (kernel.ok() || !(options.rings || options.streams)) return kernel;
  ASSIGN_OR_RETURN(PerfCapture none, PerfCapture::OpenNone());
  return Kernel{Tracefs::None(), std::move(none), kernel.status()};
}

absl::Status Capture::OpenRings(const SessionWriter& session) {
  if (!options_.rings || rings_ != nullptr) return absl::OkStatus();
  const std::vector<Selector>& selectors = session.tracepoints().selectors();
  if (std::none_of(selectors.begin(), selectors.end(), MayMatchServices)) return absl::OkStatus();
  RingFeedOptions options;
  options.server = *options_.rings;
  options.target = RingTarget(options_.target.pids, options_.target.tids,
                              /*has_cgroups=*/!options_.target.cgroups.empty());
  options.reads_processes = !kernel_status_.ok();
  options.expects_sessions = options_.expects_sessions;
  options.reconnect_clock = options_.reconnect_clock;
  options.update_tasks = [this] { UpdateTasks(); };
  const absl::StatusOr<std::vector<int>> cpus = PossibleCpus();
  if (cpus.ok() && !cpus->empty()) options.last_cpu = static_cast<std::uint32_t>(cpus->back());
  ASSIGN_OR_RETURN(rings_, RingFeed::Open(std::move(options), &tasks_, &distributor_));
  rings_->SetCgroups(cgroups_);
  return perf_.rings().WakeOn(rings_->fd());
}

absl::Status Capture::WaitForServices() {
  // Maximum time to wait for services, in ns. A service confirms within a millisecond, unless it is
  // stopped or the machine is overloaded.
  constexpr std::uint64_t kLongest = 500'000'000;
  const std::uint64_t end = SessionClockNow() + kLongest;
  rings_->Serve();
  while (!rings_->HaveConfirmed()) {
    perf_.rings().Wait(/*timeout_ms=*/10);
    rings_->Serve();
    const std::uint64_t now = SessionClockNow();
    RETURN_IF_ERROR(Round(now, now - Slack()));
    if (now >= end) rings_->StopWaiting();
  }
  return absl::OkStatus();
}

absl::Status Capture::AcceptServices() {
  // Drains after each Serve, because a service that has ended counts towards the maximum number of
  // connections until its events have been read.
  for (int i = 0; i < kRoundsAtOnce && rings_->HasArrivals(); ++i) {
    rings_->Serve();
    const std::uint64_t now = SessionClockNow();
    RETURN_IF_ERROR(Round(now, now - Slack()));
  }
  return absl::OkStatus();
}

void Capture::GiveBackRings() {
  if (rings_ == nullptr) return;
  while (GiveBackDelivered() && rings_->CanMark()) {
    for (const auto& session : sessions_) session->Flush();
    rings_->Mark();
    const std::uint64_t now = SessionClockNow();
    for (const auto& session : sessions_) session->AwaitDelivery(now);
    awaits_delivery_ = true;
  }
}

bool Capture::GiveBackDelivered() {
  if (!awaits_delivery_) return true;
  const std::uint64_t now = SessionClockNow();
  for (const auto& session : sessions_) {
    if (!session->IsDelivered(now)) return false;
  }
  rings_->GiveBack();
  awaits_delivery_ = false;
  return true;
}

bool Capture::Wait(std::uint64_t limit) {
  // An output does not announce that it has delivered data, which usually takes a few milliseconds.
  // The capture therefore checks after 1 ms, and then after longer and longer pauses.
  std::uint64_t part = 1'000'000;
  for (; awaits_delivery_ && limit > part; part = std::min<std::uint64_t>(part * 2, 64'000'000)) {
    if (perf_.rings().Wait(static_cast<int>(part / 1'000'000))) return true;
    limit -= part;
    if (GiveBackDelivered()) break;
  }
  // Rounds the time up, because waking up too early would require a second wake-up.
  return perf_.rings().Wait(static_cast<int>((limit + 999'999) / 1'000'000));
}

absl::StatusOr<Session*> Capture::StartSession(SessionOptions options,
                                               const SinkFactory& make_sink) {
  std::shared_ptr<EventPipeInbox> streams = std::move(options.streams);
  const Session* const owner_of_streams = options.streams_of;
  std::shared_ptr<JournalReader> journal = std::move(options.journal);
  SessionWriter* const session =
      sessions_.emplace_back(std::make_unique<SessionWriter>(std::move(options))).get();
  const absl::StatusOr<std::uint64_t> start = Prepare(session, make_sink);
  if (!start.ok()) {
    attachments_.Remove(session);
    attachments_.DetachUnused();
    sessions_.pop_back();
    return start.status();
  }
  distributor_.Begin(session, *start);
  if (sessions_.size() == 1) drained_ = std::max(drained_, *start);
  if (streams != nullptr) OpenStreams(session, std::move(streams));
  for (const auto& feed : streams_) {
    if (owner_of_streams != nullptr && feed->session() == owner_of_streams) feed->Give(session);
  }
  if (journal != nullptr) OpenJournal(session, std::move(journal), *start);
  absl::Status status;
  if (rings_ != nullptr) {
    rings_->Add(session);
    status = WaitForServices();
  }
  if (status.ok()) status = AttachTheRest(*start);
  if (!status.ok()) {
    StopSession(session);
    return status;
  }
  return session;
}

// Attaches tracepoints until the time limits for the start of a session. Attaching all could take
// minutes if other processes have registered very many tracepoints, or keep registering more. Poll
// attaches the rest while the session runs.
absl::Status Capture::AttachTheRest(std::uint64_t start) {
  const std::uint64_t end_of_user_events = start + base::Nanoseconds(options_.attach_at_start);
  const std::uint64_t end = start + base::Nanoseconds(options_.attach_tracepoints_at_start);
  for (std::uint64_t now = start;
       (attachments_.has_more_user_events() && now < end_of_user_events) ||
       (attachments_.has_more_tracepoints() && now < end);) {
    now = SessionClockNow();
    RETURN_IF_ERROR(attachments_.Rescan(now));
    RETURN_IF_ERROR(Round(now, now - Slack()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> Capture::Prepare(SessionWriter* session,
                                               const SinkFactory& make_sink) {
  RETURN_IF_ERROR(CheckKernel(session->tracepoints().selectors(), kernel_status_));
  if (session->records_only_rings()) RETURN_IF_ERROR(session->OpenRingTarget());
  RETURN_IF_ERROR(OpenRings(*session));
  SkipServices(session);
  if (!session->records_only_rings()) RETURN_IF_ERROR(attachments_.Add(session));
  WarnOfStacks(tasks_.code(), options_.target, session);
  RETURN_IF_ERROR(AccountLosses(PerfCapture::Losses::kAll));
  // From this point on, losses in a ring also count as losses of this session.
  UpdateTasks();
  const std::uint64_t start = SessionClockNow();
  RETURN_IF_ERROR(perf_.Enable());
  PrepareOffCpu(*session);
  // The session's events wait in the rings until the file is open.
  RETURN_IF_ERROR(
      session->Open(make_sink, MakeTraceInfo(perf_.rings().cpus(), session->cpu_rate())));
  return start;
}

void Capture::OpenKernelReports() {
  absl::StatusOr<UeventSocket> uevents = UeventSocket::Open();
  if (!uevents.ok() || !perf_.rings().WakeOn(uevents->fd()).ok()) return;
  uevents_.emplace(*std::move(uevents));
  attachments_.UseModuleReports();
}

void Capture::ReadKernelReports(std::uint64_t now, bool is_woken) {
  UeventSocket::Changes news;
  if (uevents_ && is_woken) news = uevents_->Take();
  if (news.modules) attachments_.ModuleLoaded();
  const bool is_reported = perf_.rings().TakeEnded() || news.cpus;
  if (!is_reported && now < next_cpu_look_) return;
  next_cpu_look_ = now + base::Nanoseconds(options_.cpu_look);
  // If the kernel does not report changes of CPUs, a CPU may have gone offline and come back
  // unnoticed since the last check. FollowCpus then also searches for such CPUs.
  for (const CpuChange& change : perf_.FollowCpus(/*suspect=*/is_reported || !uevents_)) {
    for (const auto& session : sessions_) session->CpuChanged(change);
    // Threads may have run on the CPU before its switches were recorded, so their times without a
    // CPU are not known.
    if (change.online && off_cpu_index_) off_cpu_.Miss(change.since, std::max(change.until, now));
  }
}

absl::Status Capture::BeginToFollow(std::optional<CgroupFollower> follower) {
  if (!follower) return absl::OkStatus();
  follower_ = std::move(follower);
  if (follower_->fd() >= 0) RETURN_IF_ERROR(perf_.rings().WakeOn(follower_->fd()));
  std::optional<base::UniqueFd> folder = follower_->Look(/*is_due=*/true);
  return folder ? perf_.SetCgroup(*std::move(folder)) : absl::OkStatus();
}

void Capture::FollowTarget(std::uint64_t now, bool is_woken) {
  const bool is_due = now >= next_target_look_;
  if (!follower_ || (!is_due && !is_woken)) return;
  constexpr std::uint64_t kLookEvery = 900'000'000;  // ns
  if (is_due) next_target_look_ = now + kLookEvery;
  std::optional<base::UniqueFd> folder = follower_->Look(is_due);
  if (!folder) return;
  cgroups_ = IdentifyCgroups(std::span(&*folder, 1));
  if (rings_ != nullptr) rings_->SetCgroups(cgroups_);
  const absl::Status status = perf_.SetCgroup(*std::move(folder));
  if (!status.ok()) follower_->Forget();
  // Reports an error only once if it occurs repeatedly.
  if (!status.ok() && std::exchange(target_error_reported_, true)) return;
  target_error_reported_ = !status.ok();
  const std::uint64_t until = status.ok() ? SessionClockNow() : 0;
  for (const auto& session : sessions_) {
    session->TargetCame(follower_->absent_at(), until, std::string(status.message()));
  }
}

// Returns the time at which the next interval can be closed, because its last records are then
// certainly in the rings, or the time of the next search for tracepoints if that is earlier. Rings
// that are less than a quarter full do not wake the capture; their records are drained when the
// interval is closed.
std::uint64_t Capture::NextWork() const {
  std::uint64_t end = closing_;
  if (end == 0) {
    end = last_moment_ + 1'000'000'000;
    for (const auto& session : sessions_) {
      if (session->is_active()) end = std::min(end, session->interval_end());
    }
  }
  return std::min(end + Slack(), attachments_.next_rescan());
}

absl::Status Capture::Poll(absl::Duration timeout) {
  attachments_.DetachUnused();
  const std::uint64_t begin = SessionClockNow();
  const std::uint64_t next = NextWork();
  std::uint64_t wait =
      std::min(base::Nanoseconds(std::clamp(timeout, absl::ZeroDuration(), absl::Hours(1))),
               next > begin ? next - begin : 0);
  if (!streams_.empty()) wait = std::min(wait, StreamFeed::kEvery);
  // The unwinder wakes the capture when stacks are ready, but the kernel does not announce the
  // deferred user parts of stacks. The minimum keeps the capture from checking all the time whether
  // an interval can end. The maximum keeps a ring from filling before the next check.
  if (awaits_stacks_) wait = std::clamp<std::uint64_t>(wait, 1'000'000, 10'000'000);
  const bool is_woken = Wait(wait);
  std::uint64_t now = SessionClockNow();
  if (rings_ != nullptr) rings_->Serve();
  ReadKernelReports(now, is_woken);
  FollowTarget(now, is_woken);
  if (rings_ != nullptr) rings_->FollowTargets(now);
  RETURN_IF_ERROR(attachments_.Rescan(now));
  const std::uint64_t slack = Slack();
  RETURN_IF_ERROR(Round(now, now - slack));
  // If a ring fills while it is drained, it is drained again without sleeping. Returns after some
  // time even if rings still fill, because requests to a daemon wait until this function returns.
  constexpr std::uint64_t kLongestDrain = 100'000'000;  // ns
  const std::uint64_t end = now + kLongestDrain;
  while (now < end && IsWorthDraining() && !awaits_stacks_) {
    now = SessionClockNow();
    RETURN_IF_ERROR(Round(now, now - slack));
  }
  return absl::OkStatus();
}

std::uint64_t Capture::PrepareStacks(std::uint64_t now) {
  const bool is_pressed = perf_.rings().IsPressed();
  std::uint64_t ready = now;
  if (perf_.defers_stacks()) {
    ready = deferred_stacks_.Collect(now, [this](const auto& look) { perf_.rings().Peek(look); });
  }
  if (unwinder_ != nullptr) {
    unwinder_->ClearWake();
    if (is_pressed) {
      unwinder_->GiveUp(now);
    } else {
      ready = std::min(ready, BeginToUnwind() - 1);
    }
  }
  awaits_stacks_ = ready < now && !is_pressed;
  return awaits_stacks_ ? std::max(ready, std::min(drained_, now)) : now;
}

std::uint64_t Capture::BeginToUnwind() {
  std::uint64_t oldest = StackUnwinder::kNone;  // time of the oldest sample that Begin refuses
  CodeTracker* const code = tasks_.code();
  for (std::size_t cpu = 0; cpu < perf_.rings().cpus().size(); ++cpu) {
    perf_.rings().PeekOf(cpu, [&](const PerfRecord& record) {
      SampleRecord sample;
      const std::uint64_t timestamp = record.timestamp;
      if (!ParseSample(record, &sample) || !sample.stack) return;
      const auto take = [&] { return code->TakeSnapshot(sample.pid, timestamp); };
      if (!unwinder_->Begin(cpu, sample, timestamp, take)) oldest = std::min(oldest, timestamp);
    });
  }
  return std::min(oldest, unwinder_->FindOldest());
}

absl::Status Capture::AwaitStacks() {
  constexpr std::uint64_t kLongest = 2'000'000'000;  // ns
  std::uint64_t now = SessionClockNow();
  const std::uint64_t end = now + kLongest;
  RETURN_IF_ERROR(Round(now, now));
  while (awaits_stacks_ && now < end) {
    perf_.rings().Wait(/*timeout_ms=*/1);
    now = SessionClockNow();
    RETURN_IF_ERROR(Round(now, now));
  }
  return absl::OkStatus();
}

void Capture::AccountSkippedStacks() {
  if (unwinder_ == nullptr) return;
  const StackUnwinder::Skipped skipped = unwinder_->TakeSkipped();
  if (skipped.count == 0) return;
  for (const auto& session : sessions_) session->StacksSkipped(skipped);
}

absl::Status Capture::Round(std::uint64_t now, std::uint64_t settled) {
  UpdateTasks();
  LearnFromSamples();
  for (const auto& feed : streams_) {
    feed->SetFeeds(streams_.size());
    feed->Receive();
  }
  // Time up to which no sample waits for its stack.
  std::uint64_t end = PrepareStacks(now);
  for (;;) {
    distributor_.FollowSinks(drained_);
    const std::uint64_t wanted = closing_ != 0 ? closing_ : NextLimit(now);
    std::uint64_t limit = DrainStreams(std::min(wanted, end));
    const bool is_last = limit == end;
    const std::size_t waiting = perf_.rings().waiting_bytes();
    const bool extends = rings_ != nullptr && is_last && end == now && closing_ == 0;
    if (rings_ != nullptr) limit = DrainRings(limit, extends);
    const std::uint64_t before = distributor_.samples();
    DrainSamples(limit);
    drained_ = limit;
    const std::uint64_t drained = distributor_.samples() - before;
    if (is_last && end == now && drained >= kEventsToJudgeBy) bytes_per_event_ = waiting / drained;

    if (closing_ == 0) {
      if (!AnyIntervalIsOver()) {
        if (is_last) break;
        continue;
      }
      closing_ = drained_;
    }
    if (drained_ < closing_) break;
    // Ends the intervals only when all their records are certainly in the rings. Until then, later
    // records stay in the rings, unless a ring becomes more than half full.
    const bool is_pressed = perf_.rings().IsPressed() || (rings_ != nullptr && rings_->IsPressed());
    if (closing_ > settled && !is_pressed) break;
    // The rings of services are read one after another, each up to its latest event. Services that
    // were read early may have written events before the end of the interval since then. They are
    // read again now, because these events would be late in the next interval.
    if (extends && drained_ > end) {
      end = drained_;
      continue;
    }
    WriteOffCpu(closing_);
    RETURN_IF_ERROR(EndIntervals(closing_));
    closing_ = 0;
    if (drained_ >= end) break;
  }
  WriteOffCpu(std::min(settled, drained_));
  GiveBackRings();
  // If all sessions have failed or are suspended, no interval has ended above. Calls EndIntervals
  // nevertheless, because it removes process events and ended threads, which would accumulate.
  const bool any_is_active = std::any_of(sessions_.begin(), sessions_.end(),
                                         [](const auto& session) { return session->is_active(); });
  if (!any_is_active && closing_ == 0) return EndIntervals(drained_);
  constexpr std::size_t kManyProcessEvents = 16384;
  if (tasks_.processes().waiting() >= kManyProcessEvents) distributor_.WriteProcessEvents(drained_);
  return absl::OkStatus();
}

void Capture::OpenStreams(SessionWriter* session, std::shared_ptr<EventPipeInbox> inbox) {
  EventPipeFeedOptions options;
  options.inbox = std::move(inbox);
  options.session = session;
  options.reads_processes = !kernel_status_.ok();
  options.update_tasks = [this] { UpdateTasks(); };
  const absl::StatusOr<std::vector<int>> cpus = PossibleCpus();
  if (cpus.ok() && !cpus->empty()) options.last_cpu = static_cast<std::uint32_t>(cpus->back());
  streams_.push_back(std::make_unique<EventPipeFeed>(std::move(options), &tasks_, &distributor_));
}

void Capture::OpenJournal(SessionWriter* session, std::shared_ptr<JournalReader> reader,
                          std::uint64_t start) {
  JournalFeedOptions options;
  options.reader = std::move(reader);
  options.session = session;
  options.start = start;
  options.reads_processes = !kernel_status_.ok();
  options.update_tasks = [this] { UpdateTasks(); };
  streams_.push_back(std::make_unique<JournalFeed>(std::move(options), &tasks_, &distributor_));
}

absl::Status Capture::EndStreams(Session* session) {
  const auto has_feed = [session](const auto& feed) { return feed->session() == session; };
  if (std::none_of(streams_.begin(), streams_.end(), has_feed)) return absl::OkStatus();
  constexpr std::uint64_t kLongest = 5'000'000'000;  // ns
  const std::uint64_t end = SessionClockNow() + kLongest;
  absl::Status status;
  std::uint64_t now = 0;
  RequestEndOfStreams(session);
  do {
    perf_.rings().Wait(/*timeout_ms=*/10);
    now = SessionClockNow();
    status = Round(now, now - Slack());
  } while (status.ok() && !RequestEndOfStreams(session) && now < end);
  AbandonStreams(session);
  return status;
}

bool Capture::RequestEndOfStreams(Session* session) {
  bool have_ended = true;
  for (const auto& feed : streams_) {
    if (feed->session() != session) continue;
    feed->RequestStop();
    have_ended = have_ended && !feed->has_streams();
  }
  return have_ended;
}

void Capture::AbandonStreams(Session* session) {
  std::erase_if(streams_, [session](const auto& feed) {
    if (feed->session() != session) return false;
    feed->Abandon("its stream did not end within 5 s; its last events may be missing");
    return true;
  });
}

std::uint64_t Capture::Slack() const {
  std::uint64_t slack = base::Nanoseconds(options_.slack);
  if (perf_.defers_stacks()) slack = std::max(slack, DeferredStacks::kLongestWait);
  for (const auto& feed : streams_) slack = std::max(slack, feed->delay());
  if (rings_ != nullptr) slack = std::max(slack, rings_->delay());
  return slack;
}

std::uint64_t Capture::DrainStreams(std::uint64_t limit) {
  for (const auto& feed : streams_) limit = feed->Drain(limit, /*is_bounded=*/closing_ == 0);
  return std::max(limit, drained_);
}

bool Capture::IsWorthDraining() const {
  return perf_.rings().IsWorthDraining() || (rings_ != nullptr && rings_->IsWorthDraining()) ||
         std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& feed) { return feed->IsWorthDraining(); });
}

bool Capture::AnyIntervalIsOver() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [this](const auto& session) { return session->IsIntervalOver(drained_); });
}

// Ends the intervals that are over at `moment`. All samples up to `moment` must have been drained.
absl::Status Capture::EndIntervals(std::uint64_t moment) {
  // Each sequence point must account for all losses before it.
  RETURN_IF_ERROR(AccountLosses(PerfCapture::Losses::kWhereLikely));
  distributor_.WriteProcessEvents(moment);
  for (const auto& session : sessions_) {
    if (session->IsIntervalOver(moment) && session->EndInterval(moment)) {
      if (rings_ != nullptr) rings_->WritePositions(session.get());
      distributor_.WriteProcesses(session.get(), moment);
    }
  }
  // Drops the threads that ended in the previous interval. Threads that ended in the current
  // interval are kept, because an event may be later than the end of its thread.
  tasks_.DropEnded(last_moment_);
  last_moment_ = moment;
  return absl::OkStatus();
}

// Returns the time up to which the rings are drained next: `now`, or earlier if an interval ends
// before that or would get too many events. The number of waiting events is estimated from the
// waiting bytes, as if the events had come evenly since the last drain. If the estimate is wrong,
// the rings are drained in more and smaller parts.
std::uint64_t Capture::NextLimit(std::uint64_t now) const {
  constexpr std::size_t kFull = TraceWriter::kFullInterval;
  std::uint64_t end = now;
  std::size_t fullest = 0;
  for (const auto& session : sessions_) {
    if (!session->is_active()) continue;
    end = std::min(end, session->interval_end());
    fullest = std::max(fullest, session->events_in_interval());
  }
  std::uint64_t limit = std::max(end, drained_);
  const std::size_t waiting =
      perf_.rings().waiting_bytes() / std::max<std::size_t>(bytes_per_event_, 1);
  const std::size_t room = kFull * 3 / 2 - std::min(fullest, kFull);
  if (waiting > room && now > drained_) {
    // Chooses the part of the time that should have only room / 4 events, because events may be
    // denser in this part than on average.
    const double part = static_cast<double>(room) / 4 / static_cast<double>(waiting);
    const double time = static_cast<double>(now - drained_) * part;
    limit = std::min(limit, drained_ + static_cast<std::uint64_t>(time) + kSmallestPart);
  }
  return limit;
}

// Must be called before the samples are drained, because a thread's creation may be in another ring
// than its first event.
void Capture::UpdateTasks() {
  if (perf_.rings().tasks().Drain([this](const PerfRecord& record) { tasks_.Apply(record); })) {
    tasks_.RecordsWereLost();
  }
  if (tasks_.is_behind()) tasks_.CatchUp(SessionClockNow());
}

std::uint64_t Capture::DrainRings(std::uint64_t limit, bool extends) {
  const std::uint64_t latest = rings_->Drain(limit, extends);
  // If rings in user space have moved the limit, the samples up to it may be of threads that were
  // created since the last update.
  if (latest != limit) UpdateTasks();
  return latest;
}

void Capture::LearnFromSamples() {
  if (!distributor_.must_learn()) return;
  perf_.rings().Peek([this](const PerfRecord& record) {
    SampleRecord sample;
    if (ParseSample(record, &sample)) distributor_.Learn(sample, record.timestamp);
  });
}

void Capture::DrainSamples(std::uint64_t limit) {
  counted_since_drained_ = false;
  perf_.rings().Drain(
      limit,
      [this](std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
        if (sample.stack) [[unlikely]] {
          WriteSampleWithStack(cpu, sample, timestamp);
        } else {
          WriteSample(cpu, sample, timestamp);
        }
      },
      [this](std::size_t cpu, std::uint64_t total) {
        // If user parts of stacks are deferred, a LOST record also counts lost user parts. The
        // number of lost samples is then passed as 0 (not known): only the kernel's counts have it.
        distributor_.LostInPlace(cpu, perf_.defers_stacks() ? 0 : total);
        if (off_cpu_index_) {
          off_cpu_.Miss(perf_.rings().cpus()[cpu].last_sample(), SessionClockNow());
        }
      });
}

void Capture::WriteSampleWithStack(std::size_t cpu, const SampleRecord& sample,
                                   std::uint64_t timestamp) {
  SampleRecord complete = sample;
  // unwinder_ may be null although the sample has a copy of the stack: a process can write an event
  // that looks like such a sample.
  if (sample.stack->copy && unwinder_ != nullptr) {
    unwinder_->Complete(cpu, &complete, timestamp);
  } else if (sample.kind == SampleRecord::Kind::kEvent && perf_.defers_stacks()) {
    deferred_stacks_.Join(&complete);
  }
  WriteSample(cpu, complete, timestamp);
}

void Capture::PrepareOffCpu(const SessionWriter& session) {
  if (!session.off_cpu() || distributor_.FindSessions(kSwitchesId).size() != 1) return;
  if (!off_cpu_index_) off_cpu_index_ = distributor_.AddRingThread("off-CPU");
  // Times without a CPU are recorded from now on. Before this moment, not all CPUs recorded their
  // switches.
  off_cpu_.StartAt(SessionClockNow());
}

void Capture::WriteOffCpu(std::uint64_t limit) {
  if (!off_cpu_index_) return;
  off_cpu_.Process(limit, [this](const OffCpuTracker::Interval& interval) {
    const int cpu = perf_.rings().cpus()[interval.cpu].number();
    distributor_.WriteValue(*off_cpu_index_, kSwitchesId, interval.sample, interval.timestamp,
                            static_cast<std::uint32_t>(cpu), interval.duration);
  });
  const std::uint64_t lost = off_cpu_.TakeLost();
  if (lost != 0) distributor_.LoseValues(*off_cpu_index_, kSwitchesId, lost, limit);
}

void Capture::AccountThrottled() {
  for (std::size_t i = 0; i < perf_.rings().cpus().size(); ++i) {
    const CpuRing::Throttled throttled = perf_.rings().TakeThrottled(i);
    if (throttled.count == 0) continue;
    const int cpu = perf_.rings().cpus()[i].number();
    for (const auto& session : sessions_) session->SamplesThrottled(cpu, throttled);
  }
}

absl::Status Capture::AccountLosses(PerfCapture::Losses which) {
  AccountThrottled();
  AccountSkippedStacks();
  CountingTime time;
  time.began = SessionClockNow();
  struct Loss {
    std::size_t cpu;
    int id;
    std::uint64_t count;
  };
  std::vector<Loss> losses;
  const absl::Status read = perf_.ReadLosses(
      [&losses](std::size_t cpu, int id, std::uint64_t count) {
        losses.push_back({cpu, id, count});
      },
      which);
  time.ended = SessionClockNow();
  for (const Loss& loss : losses) distributor_.CountLost(loss.cpu, loss.id, loss.count, time);
  if (absl::IsUnimplemented(read)) {
    distributor_.SetLossesUncounted();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(read);
  distributor_.SettleLosses();
  counted_since_drained_ = which == PerfCapture::Losses::kAll;
  return absl::OkStatus();
}

absl::Status Capture::DrainForEnd(SessionWriter* session) {
  RETURN_IF_ERROR(attachments_.DisableSole(session, [this] {
    const std::uint64_t now = SessionClockNow();
    return perf_.rings().IsWorthDraining() ? Round(now, now - Slack()) : absl::OkStatus();
  }));
  if (rings_ != nullptr) {
    RETURN_IF_ERROR(AcceptServices());
    rings_->Disable(session);
    RETURN_IF_ERROR(WaitForServices());
  }
  const std::uint64_t end = SessionClockNow();
  if (sessions_.size() == 1) {
    RETURN_IF_ERROR(AwaitStacks());
    // Services that have ended may have left more events than one round reads.
    for (int i = 0; i < kRoundsAtOnce && rings_ != nullptr && rings_->IsWorthDraining(); ++i) {
      const std::uint64_t now = SessionClockNow();
      RETURN_IF_ERROR(Round(now, now));
    }
    LearnFromSamples();
    PrepareStacks(SessionClockNow());
    DrainSamples(PerfRing::kNoLimit);
  } else {
    session->EndAt(end);
    const std::uint64_t slack = Slack();
    std::uint64_t now = end;
    do {
      // Records with timestamps up to `end` may still be missing from the rings. They appear within
      // `slack`.
      perf_.rings().Wait(
          static_cast<int>((end + slack - std::min(now, end + slack)) / 1'000'000 + 1));
      now = SessionClockNow();
      RETURN_IF_ERROR(Round(now, now - slack));
    } while (drained_ < end || now < end + slack);
  }
  return AccountLosses(PerfCapture::Losses::kAll);
}

SessionSummary Capture::StopSession(Session* session, std::unique_ptr<Session>* stopped) {
  const auto entry = std::find_if(sessions_.begin(), sessions_.end(),
                                  [session](const auto& each) { return each.get() == session; });
  SessionWriter* const writer = entry->get();
  absl::Status status = EndStreams(session);
  status.Update(DrainForEnd(writer));
  if (sessions_.size() == 1) drained_ = SessionClockNow();
  WriteOffCpu(drained_);
  distributor_.WriteProcessEvents(drained_);
  if (rings_ != nullptr) rings_->AccountUnsent(writer);
  if (status.ok()) writer->Finish(drained_);
  GiveBackRings();
  WarnOfDeferredStacks(deferred_stacks_.missing(), writer);
  if (unwinder_ != nullptr) WarnOfRefusedFiles(unwinder_->refused_files(), writer);
  SessionSummary summary = writer->Summarize();
  if (summary.status.ok()) summary.status = status;
  summary.watches_registrations = attachments_.watches_registrations();
  if (const auto hits = attachments_.CountHits(writer); hits.ok()) {
    summary.hits = *hits;
  } else if (summary.status.ok()) {
    summary.status = hits.status();
  }
  if (writer->has_events_of_streams()) summary.hits.reset();
  if (rings_ != nullptr) {
    // The kernel's count lacks the events of rings in user space, so the summary has no exact
    // count.
    summary.hits.reset();
    rings_->Remove(writer);
  }
  attachments_.Remove(writer);
  if (stopped != nullptr) *stopped = std::move(*entry);
  sessions_.erase(entry);
  return summary;
}

}  // namespace collector
