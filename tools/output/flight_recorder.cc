#include "tools/output/flight_recorder.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/output/file_set_sink.h"

namespace output {
namespace {

constexpr std::size_t kChunkSize = 64 << 10;
// The recorder requests a new section when the open section reaches 1/8 of keep_bytes or keep_time.
constexpr int kSections = 8;

}  // namespace

class FlightRecorder::Chunk {
 public:
  Chunk(std::size_t capacity, std::shared_ptr<std::atomic<std::uint64_t>> memory)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(capacity)),
        capacity_(capacity),
        memory_(std::move(memory)) {
    *memory_ += capacity_;
  }
  ~Chunk() { *memory_ -= capacity_; }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  // Copies as many of the bytes as fit in the chunk, and returns their number.
  std::size_t Append(std::span<const std::byte> bytes) {
    const std::size_t size = std::min(bytes.size(), capacity_ - size_);
    std::memcpy(bytes_.get() + size_, bytes.data(), size);
    size_ += size;
    return size;
  }
  bool is_full() const { return size_ == capacity_; }
  std::size_t capacity() const { return capacity_; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  const std::unique_ptr<std::byte[]> bytes_;
  const std::size_t capacity_;
  std::size_t size_ = 0;
  const std::shared_ptr<std::atomic<std::uint64_t>> memory_;
};

absl::StatusOr<std::shared_ptr<FlightRecorder>> FlightRecorder::Create(
    const FlightRecorderOptions& options) {
  if (options.keep_bytes < kMinKeepBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a flight recorder with ", options.keep_bytes,
                                                   " bytes of memory is too small; use at least ",
                                                   kMinKeepBytes, " bytes"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FileSet> files,
                   FileSet::Create(options.files, options.session, options.compressed.has_value()));
  std::vector<std::byte> end = StreamEnd(options.compressed);
  if (end.empty()) {
    return absl::ResourceExhaustedError(
        "not enough memory to compress the output; raise the limit of this process's memory");
  }
  return std::shared_ptr<FlightRecorder>(
      new FlightRecorder(options, std::move(files), std::move(end)));
}

FlightRecorder::FlightRecorder(const FlightRecorderOptions& options, std::unique_ptr<FileSet> files,
                               std::vector<std::byte> end)
    : keep_bytes_(options.keep_bytes),
      keep_time_(options.keep_time),
      end_(std::move(end)),
      memory_(std::make_shared<std::atomic<std::uint64_t>>(0)),
      files_(std::move(files)) {}

void FlightRecorder::DropFront() {
  for (const std::shared_ptr<Chunk>& chunk : sections_.front().chunks) kept_ -= chunk->capacity();
  sections_.pop_front();
}

void FlightRecorder::DropAged() {
  const absl::Duration now = base::Uptime();
  while (sections_.size() > 1 && now - sections_.front().up_ended > keep_time_) DropFront();
}

// Returns whether `bytes` more bytes fit, after dropping the oldest sections if necessary.
bool FlightRecorder::MakeRoom(std::size_t bytes) {
  while (kept_ + bytes > keep_bytes_ && sections_.size() > 1) DropFront();
  return kept_ + bytes <= keep_bytes_;
}

void FlightRecorder::Append(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  state_.bytes += bytes.size();
  if (begun_ == 0) {
    prologue_.insert(prologue_.end(), bytes.begin(), bytes.end());
    return;
  }
  while (!bytes.empty() && !discarding_) {
    std::vector<std::shared_ptr<Chunk>>& chunks = sections_.back().chunks;
    if (chunks.empty() || chunks.back()->is_full()) {
      if (!MakeRoom(kChunkSize)) {
        discarding_ = true;
        for (const std::shared_ptr<Chunk>& chunk : chunks)
          state_.discarded += chunk->bytes().size();
        DropFront();
        sections_.emplace_back();
        open_bytes_ = 0;
        break;
      }
      chunks.push_back(std::make_shared<Chunk>(kChunkSize, memory_));
      kept_ += kChunkSize;
    }
    const std::size_t size = chunks.back()->Append(bytes);
    bytes = bytes.subspan(size);
    open_bytes_ += size;
  }
  state_.discarded += bytes.size();
}

void FlightRecorder::EndSection() {
  if (sections_.empty()) return;
  Section& section = sections_.back();
  if (section.chunks.empty()) {  // the section is empty or was discarded
    sections_.pop_back();
    return;
  }
  section.ended = absl::Now();
  section.up_ended = base::Uptime();
  // Replaces the last chunk by a chunk of the size of its contents, so that a small section does
  // not occupy a large chunk.
  std::shared_ptr<Chunk>& last = section.chunks.back();
  const std::span<const std::byte> bytes = last->bytes();
  if (bytes.size() < last->capacity()) {
    auto smaller = std::make_shared<Chunk>(bytes.size(), memory_);
    smaller->Append(bytes);
    kept_ -= last->capacity() - bytes.size();
    last = std::move(smaller);
  }
}

void FlightRecorder::BeginSection() {
  {
    const std::lock_guard lock(mutex_);
    EndSection();
    Section& section = sections_.emplace_back();
    section.began = absl::Now();
    section.up_began = base::Uptime();
    open_bytes_ = 0;
    discarding_ = false;
    ++begun_;
    DropAged();
  }
  section_begun_.notify_all();
}

void FlightRecorder::Finish() {
  {
    const std::lock_guard lock(mutex_);
    if (!finished_) EndSection();
    finished_ = true;
  }
  section_begun_.notify_all();
}

bool FlightRecorder::WantsSection() const {
  const std::lock_guard lock(mutex_);
  if (begun_ == 0 || finished_) return false;
  return discarding_ || waiting_ != 0 || open_bytes_ >= keep_bytes_ / kSections ||
         base::Uptime() - sections_.back().up_began >= keep_time_ / kSections;
}

absl::StatusOr<FlightRecorder::Snapshot> FlightRecorder::WriteSnapshot(absl::Duration patience) {
  std::deque<Section> sections;
  std::vector<std::byte> prologue;
  bool has_end = false;
  {
    std::unique_lock lock(mutex_);
    const std::uint64_t before = begun_;
    ++waiting_;
    section_begun_.wait_for(
        lock, absl::ToChronoNanoseconds(std::clamp(patience, absl::ZeroDuration(), absl::Hours(1))),
        [&] { return begun_ != before || finished_; });
    --waiting_;
    DropAged();
    sections = sections_;
    has_end = finished_;
    if (!finished_ && !sections.empty()) sections.pop_back();
    prologue = prologue_;
  }
  if (sections.empty()) {
    return absl::FailedPreconditionError(
        "the flight recorder contains no complete section; try again after some seconds, and "
        "raise flight.keep_bytes if this persists");
  }
  Snapshot snapshot;
  snapshot.sections = sections.size();
  snapshot.since = sections.front().began;
  snapshot.until = sections.back().ended;
  const std::lock_guard lock(files_mutex_);
  if (absl::Status status = WriteFile(prologue, sections, has_end, &snapshot); !status.ok()) {
    files_->Abandon();
    return status;
  }
  const std::lock_guard state_lock(mutex_);
  ++state_.snapshots;
  return snapshot;
}

absl::Status FlightRecorder::WriteFile(std::span<const std::byte> prologue,
                                       const std::deque<Section>& sections, bool has_end,
                                       Snapshot* snapshot) {
  const auto append = [this](std::span<const std::byte> bytes) {
    std::size_t taken = 0;
    return files_->Append(bytes, &taken);
  };
  RETURN_IF_ERROR(files_->Begin());
  RETURN_IF_ERROR(append(prologue));
  for (const Section& section : sections) {
    for (const std::shared_ptr<Chunk>& chunk : section.chunks) {
      RETURN_IF_ERROR(append(chunk->bytes()));
    }
  }
  if (!has_end) RETURN_IF_ERROR(append(end_));
  snapshot->bytes = files_->size();
  ASSIGN_OR_RETURN(snapshot->path, files_->Complete());
  return absl::OkStatus();
}

FlightRecorder::State FlightRecorder::state() const {
  State state;
  {
    const std::lock_guard lock(mutex_);
    state = state_;
    state.sections = sections_.size();
    if (!sections_.empty()) state.since = sections_.front().began;
  }
  state.memory_bytes = *memory_;
  state.files = files_->state();
  return state;
}

absl::Status FlightSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  recorder_->Append(bytes);
  *taken = bytes.size();
  return absl::OkStatus();
}

absl::Status FlightSink::BeginSection() {
  recorder_->BeginSection();
  return absl::OkStatus();
}

absl::Status FlightSink::Finish() {
  recorder_->Finish();
  return absl::OkStatus();
}

bool FlightSink::WantsSection() const { return recorder_->WantsSection(); }

}  // namespace output
