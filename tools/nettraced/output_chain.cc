#include "tools/nettraced/output_chain.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/collector/session/ring_feed.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/nettraced/log.h"
#include "tools/output/recover_files.h"
#include "tools/output/zstd_sink.h"

namespace nettraced {
namespace {

using Kind = SessionSettings::Kind;

void LogRecovery(const std::string& session, const output::RecoveredFile& file) {
  using Outcome = output::RecoveredFile::Outcome;
  const bool is_well = file.outcome == Outcome::kComplete || file.outcome == Outcome::kRepaired ||
                       file.outcome == Outcome::kEmpty;
  Log(is_well ? LOG_NOTICE : LOG_WARNING,
      absl::StrCat("session ", session, ": ", output::RecoveryText(file)),
      {{"SESSION", session},
       {"FILE", file.path.empty() ? file.partial : file.path},
       {"ERROR", std::string(file.status.message())}});
}

std::optional<int> ToLevel(const CompressionSettings& compression) {
  return compression.enabled ? std::optional<int>(compression.level) : std::nullopt;
}

// Returns whether the files of the session have the positions of services with rings.
bool HasPositions(const SessionSettings& settings) {
  return settings.kind == Kind::kFiles && !collector::WhyServicesUseRings().empty();
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputChain>> OutputChain::Open(
    const SessionSettings& settings, std::function<void(const absl::Status& status)> on_status) {
  std::unique_ptr<OutputChain> output(new OutputChain);
  if (settings.kind != Kind::kPipe) {
    ASSIGN_OR_RETURN(
        const auto files,
        output::RecoverFiles(settings.files, settings.name,
                             HasPositions(settings) ? &output->recorded_rings_ : nullptr));
    for (const output::RecoveredFile& file : files) LogRecovery(settings.name, file);
  }
  output::OutputQueueOptions options;
  ASSIGN_OR_RETURN(auto sink, output->MakeDestination(settings, &options.cancel));
  if (settings.compression.enabled) {
    ASSIGN_OR_RETURN(
        sink, output::ZstdSink::Create(std::move(sink), {.level = settings.compression.level}));
  }
  output->queue_limit_ = options.limit = settings.queue_bytes;
  options.thread_name = absl::StrCat("o:", settings.name).substr(0, 15);
  options.on_status = std::move(on_status);
  ASSIGN_OR_RETURN(output->queue_,
                   output::OutputQueue::Create(std::move(sink), std::move(options)));
  return output;
}

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OutputChain::MakeDestination(
    const SessionSettings& settings, std::function<void()>* cancel) {
  const std::optional<int> level = ToLevel(settings.compression);
  if (settings.kind == Kind::kFiles) {
    ASSIGN_OR_RETURN(auto files, output::FileSetSink::Create(settings.files, settings.name, level));
    files_ = files->control();
    // If nettraced is killed before the output has taken any data, the next start finds the empty
    // file, and states that the losses of services are unknown.
    if (HasPositions(settings)) files->BeginEarly();
    return files;
  }
  if (settings.kind == Kind::kPipe) {
    ASSIGN_OR_RETURN(auto canceller, output::Canceller::Create());
    auto pipe = std::make_unique<output::PipeSink>(settings.pipe.path, canceller);
    pipe_ = pipe->state();
    *cancel = [canceller] { canceller->Cancel(); };
    return pipe;
  }
  output::FlightRecorderOptions options;
  options.files = settings.files;
  options.session = settings.name;
  options.keep_bytes = settings.flight.keep_bytes;
  options.keep_time = settings.flight.keep_time;
  options.compressed = level;
  ASSIGN_OR_RETURN(flight_, output::FlightRecorder::Create(options));
  return std::make_unique<output::FlightSink>(flight_);
}

std::unique_ptr<nettrace::Sink> OutputChain::MakeSink() {
  return std::make_unique<output::QueueSink>(queue_);
}

absl::Status OutputChain::Rotate(output::FileSetControl::Done done) {
  if (files_ == nullptr) {
    return absl::FailedPreconditionError(
        "only a session that writes a series of files can start a new file; use 'snapshot' for a "
        "flight recorder");
  }
  files_->Rotate(std::move(done));
  return absl::OkStatus();
}

absl::StatusOr<std::string> OutputChain::WriteSnapshot(absl::Duration patience) {
  if (flight_ == nullptr) {
    return absl::FailedPreconditionError(
        "only a flight recorder can write snapshots; if the session writes files, use 'rotate' to "
        "complete the current one");
  }
  ASSIGN_OR_RETURN(auto snapshot, flight_->WriteSnapshot(patience));
  return std::move(snapshot.path);
}

void OutputChain::FillIn(control::SessionStatus* status) const {
  const output::OutputQueue::Stats stats = queue_->stats();
  status->queue_bytes = stats.queued;
  status->queue_limit = queue_limit_;
  const auto store_error = [status](const absl::Status& error, absl::Time time) {
    if (error.ok() || time < status->error_time) return;
    status->error = std::string(error.message());
    status->error_time = time;
  };
  store_error(stats.last_error, stats.last_error_time);
  output::FilesState files;
  if (flight_ != nullptr) {
    const output::FlightRecorder::State flight = flight_->state();
    status->memory_bytes = flight.memory_bytes;
    status->snapshots = flight.snapshots;
    files = flight.files;
  } else if (files_ != nullptr) {
    files = files_->state();
  } else {
    status->bytes = pipe_->values().bytes;
    return;
  }
  store_error(files.error, files.error_time);
  status->bytes = files.bytes;
  status->files = files.files;
  status->file_bytes = files.file_bytes;
  status->current_file = files.current_file;
}

absl::Status OutputChain::Close(const std::atomic<bool>& hurry) {
  constexpr absl::Duration kLook = absl::Milliseconds(200);
  std::uint64_t undelivered = queue_->stats().undelivered;
  absl::Duration progress = base::MonotonicNow();
  while (!queue_->WaitUntilDelivered(kLook) && !hurry) {
    const std::uint64_t now = queue_->stats().undelivered;
    if (now != undelivered) progress = base::MonotonicNow();
    undelivered = now;
    if (base::MonotonicNow() - progress > kStuck) break;
  }
  const absl::Status error = queue_->stats().status;
  const std::uint64_t missing = queue_->Close(kLook);
  if (missing == 0) return absl::OkStatus();
  const absl::string_view stuck =
      "the output was blocked for 5 s, or a second signal ended the wait; check its disk or reader";
  return absl::DataLossError(absl::StrCat(
      "the last ", missing, " bytes could not be written: ", error.ok() ? stuck : error.message()));
}

}  // namespace nettraced
