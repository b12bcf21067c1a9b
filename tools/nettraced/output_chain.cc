#include "tools/nettraced/output_chain.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/output/recover_files.h"
#include "tools/collector/output/zstd_sink.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/nettraced/log.h"

namespace nettraced {
namespace {

using Kind = collector::SessionSettings::Kind;

void LogRecovery(const std::string& session, const collector::RecoveredFile& file) {
  using Outcome = collector::RecoveredFile::Outcome;
  const bool is_well = file.outcome == Outcome::kComplete || file.outcome == Outcome::kRepaired ||
                       file.outcome == Outcome::kEmpty;
  Log(is_well ? LOG_NOTICE : LOG_WARNING,
      absl::StrCat("session ", session, ": ", collector::RecoveryText(file)),
      {{"SESSION", session},
       {"FILE", file.path.empty() ? file.partial : file.path},
       {"ERROR", std::string(file.status.message())}});
}

std::optional<int> ToLevel(const collector::CompressionSettings& compression) {
  return compression.enabled ? std::optional<int>(compression.level) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<OutputChain>> OutputChain::Open(
    const collector::SessionSettings& settings,
    std::function<void(const absl::Status& status)> on_status) {
  if (settings.kind != Kind::kPipe) {
    COLLECTOR_ASSIGN_OR_RETURN(const auto files,
                               collector::RecoverFiles(settings.files, settings.name));
    for (const collector::RecoveredFile& file : files) LogRecovery(settings.name, file);
  }
  std::unique_ptr<OutputChain> output(new OutputChain);
  collector::OutputQueueOptions options;
  COLLECTOR_ASSIGN_OR_RETURN(auto sink, output->MakeDestination(settings, &options.cancel));
  if (settings.compression.enabled) {
    COLLECTOR_ASSIGN_OR_RETURN(
        sink, collector::ZstdSink::Create(std::move(sink), {.level = settings.compression.level}));
  }
  output->queue_limit_ = options.limit = settings.queue_bytes;
  options.thread_name = absl::StrCat("o:", settings.name).substr(0, 15);
  options.on_status = std::move(on_status);
  COLLECTOR_ASSIGN_OR_RETURN(output->queue_,
                             collector::OutputQueue::Create(std::move(sink), std::move(options)));
  return output;
}

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OutputChain::MakeDestination(
    const collector::SessionSettings& settings, std::function<void()>* cancel) {
  const std::optional<int> level = ToLevel(settings.compression);
  if (settings.kind == Kind::kFiles) {
    COLLECTOR_ASSIGN_OR_RETURN(
        auto files, collector::FileSetSink::Create(settings.files, settings.name, level));
    files_ = files->control();
    return files;
  }
  if (settings.kind == Kind::kPipe) {
    COLLECTOR_ASSIGN_OR_RETURN(auto canceller, collector::Canceller::Create());
    auto pipe = std::make_unique<collector::PipeSink>(settings.pipe.path, canceller);
    pipe_ = pipe->state();
    *cancel = [canceller] { canceller->Cancel(); };
    return pipe;
  }
  collector::FlightRecorderOptions options;
  options.files = settings.files;
  options.session = settings.name;
  options.keep_bytes = settings.flight.keep_bytes;
  options.keep_time = settings.flight.keep_time;
  options.compressed = level;
  COLLECTOR_ASSIGN_OR_RETURN(flight_, collector::FlightRecorder::Create(options));
  return std::make_unique<collector::FlightSink>(flight_);
}

std::unique_ptr<nettrace::Sink> OutputChain::MakeSink() {
  return std::make_unique<collector::QueueSink>(queue_);
}

absl::Status OutputChain::Rotate(collector::FileSetControl::Done done) {
  if (files_ == nullptr) {
    return absl::FailedPreconditionError(
        "the session writes no series of files; only such sessions can start a new file");
  }
  files_->Rotate(std::move(done));
  return absl::OkStatus();
}

absl::StatusOr<std::string> OutputChain::WriteSnapshot(absl::Duration patience) {
  if (flight_ == nullptr) {
    return absl::FailedPreconditionError(
        "the session is not a flight recorder; use 'rotate' to complete its file");
  }
  COLLECTOR_ASSIGN_OR_RETURN(auto snapshot, flight_->WriteSnapshot(patience));
  return std::move(snapshot.path);
}

void OutputChain::FillIn(collector::SessionStatus* status) const {
  const collector::OutputQueue::Stats stats = queue_->stats();
  status->queue_bytes = stats.queued;
  status->queue_limit = queue_limit_;
  const auto store_error = [status](const absl::Status& error, absl::Time time) {
    if (error.ok() || time < status->error_time) return;
    status->error = std::string(error.message());
    status->error_time = time;
  };
  store_error(stats.last_error, stats.last_error_time);
  collector::FilesState files;
  if (flight_ != nullptr) {
    const collector::FlightRecorder::State flight = flight_->state();
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
  absl::Duration progress = MonotonicNow();
  while (!queue_->WaitUntilDelivered(kLook) && !hurry) {
    const std::uint64_t now = queue_->stats().undelivered;
    if (now != undelivered) progress = MonotonicNow();
    undelivered = now;
    if (MonotonicNow() - progress > kStuck) break;
  }
  const absl::Status error = queue_->stats().status;
  const std::uint64_t missing = queue_->Close(kLook);
  if (missing == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the last ", missing, " bytes could not be written",
                                          error.ok() ? "" : ": ", error.message()));
}

}  // namespace nettraced
