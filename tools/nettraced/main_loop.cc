#include "tools/nettraced/main_loop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/nettraced/log.h"

namespace nettraced {
namespace {

constexpr std::array kSignals = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2};
constexpr absl::Duration kReportEvery = absl::Seconds(5);  // time between two reports of the status
constexpr absl::Duration kSaveMemory = absl::Minutes(1);   // time between two calls of SaveMemory
// While the daemon stops and writes the last events: time by which each request to systemd extends
// the stop timeout, and time between two requests.
constexpr absl::Duration kExtend = absl::Seconds(20);
constexpr absl::Duration kExtendEvery = absl::Seconds(5);
// Time between two attempts to send notifications that the supervisor has not accepted.
constexpr absl::Duration kNotifyAgain = absl::Milliseconds(250);

}  // namespace

absl::StatusOr<std::unique_ptr<MainLoop>> MainLoop::Create() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : kSignals) sigaddset(&taken, number);
  pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  // Ignores these signals, so that a write to a pipe without a reader, or beyond the limit of file
  // sizes, fails with an error.
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_IGN);
  base::UniqueFd signals(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return base::DescriptorStatus(errno, "waiting for signals: signalfd");
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::DescriptorStatus(errno, "waiting for sessions: eventfd");
  return std::unique_ptr<MainLoop>(new MainLoop(std::move(signals), std::move(wake)));
}

MainLoop::MainLoop(base::UniqueFd signals, base::UniqueFd wake)
    : signals_(std::move(signals)),
      wake_(std::move(wake)),
      supervisor_(std::getenv("NOTIFY_SOCKET")) {
  std::uint64_t period = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/1, &period) > 0) {
    watchdog_ = absl::Microseconds(static_cast<std::int64_t>(period));
  }
}

void MainLoop::Wake() { eventfd_write(wake_.get(), 1); }

void MainLoop::Run(Daemon* daemon) {
  daemon_ = daemon;
  last_save_ = base::MonotonicNow();
  BeginStart();
  while (!stopped_) {
    absl::Duration wait = stopping_ ? kExtendEvery : kReportEvery;
    if (watchdog_ > absl::ZeroDuration()) wait = std::min(wait, watchdog_ / 4);
    if (supervisor_.has_kept()) wait = std::min(wait, kNotifyAgain);
    std::array<pollfd, 2> wakes = {{{signals_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    poll(wakes.data(), wakes.size(), static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    supervisor_.Retry();
    TakeSignals();
    FinishJobs();
    const absl::Duration now = base::MonotonicNow();
    FeedWatchdog(now);
    if (!stopping_ && now - last_save_ >= kSaveMemory) {
      last_save_ = now;
      Begin([daemon] { daemon->SaveMemory(); }, [] {});
    }
    ReportStatus(now);
  }
  jobs_.clear();
}

void MainLoop::BeginStart() {
  const auto start = [this] { daemon_->StartAll(); };
  const auto report = [this] {
    if (!stopping_) supervisor_.Notify("READY=1");
  };
  if (Begin(start, report)) return;
  start();
  report();
}

bool MainLoop::Begin(const std::function<void()>& work, std::function<void()> then) {
  try {
    jobs_.push_back({std::async(std::launch::async,
                                [this, work] {
                                  pthread_setname_np(pthread_self(), "job");
                                  work();
                                  Wake();
                                }),
                     std::move(then)});
    return true;
  } catch (const std::system_error& error) {
    Log(LOG_ERR,
        absl::StrCat(
            "the thread that starts, reloads, rotates or stops sessions cannot be created: ",
            error.what(),
            "; if the limit of tasks is reached, raise TasksMax= of nettraced.service"));
    return false;
  }
}

void MainLoop::FinishJobs() {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    // The thread of the job calls Wake shortly before it ends, so the main thread waits up to 10 ms
    // for its end.
    if (job->done.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) {
      ++job;
      continue;
    }
    const std::function<void()> then = std::move(job->then);
    job = jobs_.erase(job);
    then();
  }
}

void MainLoop::TakeSignals() {
  signalfd_siginfo info = {};
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    OnSignal(static_cast<int>(info.ssi_signo));
  }
}

void MainLoop::OnSignal(int number) {
  switch (number) {
    case SIGHUP:
      return BeginReload();
    case SIGUSR1:
      Begin([this] { daemon_->RotateAll(); }, [] {});
      break;
    case SIGUSR2:
      Begin([this] { daemon_->SnapshotAll(); }, [] {});
      break;
    default:
      BeginStop();
  }
}

void MainLoop::BeginReload() {
  if (stopping_) return;
  supervisor_.Notify(absl::StrCat("RELOADING=1\nMONOTONIC_USEC=",
                                  absl::ToInt64Microseconds(base::MonotonicNow())));
  const auto report = [this] {
    if (stopping_) return;
    supervisor_.Notify("READY=1");
    last_status_ = absl::ZeroDuration();
  };
  // If no thread can be created, the settings stay as they were. Calls `report` then, so that
  // systemd does not wait for the end of the reload.
  if (!Begin([this] { daemon_->Reload().IgnoreError(); }, report)) report();
}

void MainLoop::BeginStop() {
  if (std::exchange(stopping_, true)) {
    Log(LOG_WARNING, "second stop signal: no longer waiting for blocked outputs");
    return daemon_->Hurry();
  }
  supervisor_.Notify("STOPPING=1\nSTATUS=Writing the last events");
  if (Begin([this] { daemon_->StopAll(); }, [this] { stopped_ = true; })) return;
  Log(LOG_WARNING, "stopping on the main thread: a second stop signal has no effect");
  daemon_->StopAll();
  stopped_ = true;
}

void MainLoop::FeedWatchdog(absl::Duration now) {
  if (watchdog_ > absl::ZeroDuration() && now - last_fed_ >= watchdog_ / 4 &&
      daemon_->AreCapturesAlive(watchdog_)) {
    last_fed_ = now;
    supervisor_.Notify("WATCHDOG=1");
  }
}

void MainLoop::ReportStatus(absl::Duration now) {
  if (stopping_) {
    if (now - last_status_ < kExtendEvery) return;
    last_status_ = now;
    supervisor_.Notify(absl::StrCat("EXTEND_TIMEOUT_USEC=", absl::ToInt64Microseconds(kExtend)));
    return;
  }
  if (now - last_status_ < kReportEvery) return;
  last_status_ = now;
  std::string status = daemon_->StatusLine();
  if (status == status_) return;
  supervisor_.Notify(absl::StrCat("STATUS=", status));
  status_ = std::move(status);
}

}  // namespace nettraced
