#include "tools/nettrace/top/feed.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "tools/base/descriptor_status.h"
#include "tools/base/signals_blocked.h"
#include "tools/base/status_macros.h"
#include "tools/trace/account.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/zstd_source.h"

namespace tools::top {
namespace {

// Minimum number of intervals without a sequence point after which the stream is idle.
constexpr int kIdleIntervals = 3;

constexpr int kGrowthPause = 100;  // ms between two attempts to read at the end of a growing file

// Reads the descriptor `input` until its end. With `follows`, waits at the end of a file until it
// grows or is deleted. Fails with Cancelled when the descriptor `stop` is readable.
class StoppableSource : public nettrace::Source {
 public:
  StoppableSource(base::UniqueFd input, int stop, bool follows)
      : input_(std::move(input)), stop_(stop), follows_(follows && IsFile(input_.get())) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    while (true) {
      std::array<pollfd, 2> fds = {pollfd{input_.get(), POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
      if (poll(fds.data(), fds.size(), -1) < 0) {
        if (errno == EINTR) continue;
        return absl::ErrnoToStatus(errno, "cannot be read");
      }
      if (fds[1].revents != 0) return absl::CancelledError("stopped");
      // Checks for a deletion before the read, so that bytes that were written before the deletion
      // are still read.
      const bool grows = follows_ && IsFile(input_.get());
      const ssize_t got = read(input_.get(), buffer.data(), buffer.size());
      if (got == 0 && grows) {
        poll(&fds[1], 1, kGrowthPause);
        continue;
      }
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR && errno != EAGAIN) return absl::ErrnoToStatus(errno, "cannot be read");
    }
  }

 private:
  // Returns whether the descriptor is a file that has a name.
  static bool IsFile(int fd) {
    struct stat facts = {};
    return fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink != 0;
  }

  base::UniqueFd input_;
  const int stop_;
  const bool follows_;
};

absl::StatusOr<std::unique_ptr<nettrace::Reader>> Open(std::unique_ptr<nettrace::Source> source) {
  ASSIGN_OR_RETURN(source, trace::OpenCompressed(std::move(source)));
  return nettrace::Reader::Open(std::move(source));
}

}  // namespace

Feed::Feed(const ModelOptions& options, const trace::EventFilter& filter)
    : interval_(options.interval), filter_(filter), model_(options, names_) {}

Feed::~Feed() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

absl::Status Feed::Start(base::UniqueFd input, bool follows) {
  for (base::UniqueFd* fd : {&stop_, &begun_, &ended_}) {
    *fd = base::UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (fd->get() < 0) return base::DescriptorStatus(errno, "waiting for events: eventfd");
  }
  auto source = std::make_unique<StoppableSource>(std::move(input), stop_.get(), follows);
  const base::SignalsBlocked blocked;
  try {
    thread_ = std::thread([this, source = std::move(source)]() mutable { Run(std::move(source)); });
  } catch (const std::system_error& error) {
    return base::ErrnoStatus(error.code().value(), "cannot start the thread that reads the stream");
  }
  return absl::OkStatus();
}

void Feed::Stop() {
  is_stopped_ = true;
  if (stop_.get() >= 0) eventfd_write(stop_.get(), 1);
}

Snapshot Feed::TakeSnapshot() {
  const std::scoped_lock lock(mutex_);
  // The stream delivers events in batches. The time between two batches, period(), may exceed
  // interval_, so only a pause that is much longer than both means that there are no events.
  const absl::Duration quiet = absl::FromChrono(Clock::now() - last_step_);
  if (quiet > std::max(kIdleIntervals * interval_, 2 * model_.period())) model_.BeIdle();
  return model_.TakeSnapshot();
}

std::vector<std::string> Feed::LastEvents(View view, const std::string& key) {
  const std::scoped_lock lock(mutex_);
  return model_.LastEvents(view, key);
}

StreamEnd Feed::end() {
  const std::scoped_lock lock(mutex_);
  return end_;
}

void Feed::Run(std::unique_ptr<nettrace::Source> source) {
  StreamEnd end;
  try {
    end = Read(std::move(source));
  } catch (const std::bad_alloc&) {
    end.status = absl::ResourceExhaustedError("not enough memory");
  }
  end.is_stopped = is_stopped_;
  {
    const std::scoped_lock lock(mutex_);
    end_ = std::move(end);
  }
  eventfd_write(ended_.get(), 1);
}

StreamEnd Feed::Read(std::unique_ptr<nettrace::Source> source) {
  StreamEnd end;
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> opened = Open(std::move(source));
  if (!opened.ok()) {
    end.status = opened.status();
    return end;
  }
  end.is_open = true;
  end.is_empty = (*opened)->major_version() == 0;
  has_begun_ = true;
  eventfd_write(begun_.get(), 1);
  trace::EventStream stream(*std::move(opened), {.filter = &filter_, .names = &names_});
  const nettrace::Reader& reader = stream.reader();
  using Step = trace::EventStream::Step;
  for (Step step = stream.Next(); step != Step::kEnd; step = stream.Next()) {
    const std::scoped_lock lock(mutex_);
    if (step == Step::kLoss) {
      model_.OnLoss(stream.loss());
    } else if (step == Step::kSequencePoint) {
      model_.OnSequencePoint(reader, stream.time());
      last_step_ = Clock::now();
    } else {
      ++events_;
      const nettrace::Event& event = stream.event();
      model_.OnCode(event);
      if (trace::IsAccount(event) && filter_.PassesTime(stream.time())) model_.OnAccount(event);
      if (step == Step::kEvent) model_.OnEvent(reader, event);
    }
  }
  const std::scoped_lock lock(mutex_);
  model_.Finish(reader);
  end.is_complete = reader.stats().complete;
  end.status = reader.status();
  end.sort_status = stream.sort_status();
  return end;
}

}  // namespace tools::top
