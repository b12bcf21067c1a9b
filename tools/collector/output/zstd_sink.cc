#include "tools/collector/output/zstd_sink.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace collector {
namespace {

// While it lives, a thread that is started has all signals blocked: they are for the others.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

void ZstdSink::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

absl::StatusOr<std::unique_ptr<ZstdSink>> ZstdSink::Create(
    std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options) {
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory to compress with");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, options.level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::unique_ptr<ZstdSink> sink(new ZstdSink(std::move(destination), options, std::move(context)));
  try {
    const SignalsBlocked blocked;
    sink->thread_ = std::thread([raw = sink.get()] { raw->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat("no thread to compress in: ", error.what()));
  }
  sink->thread_id_.wait(0);
  return sink;
}

ZstdSink::ZstdSink(std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options,
                   std::unique_ptr<ZSTD_CCtx_s, FreeContext> context)
    : destination_(std::move(destination)),
      written_(options.written),
      context_(std::move(context)),
      queue_(std::max(options.queue_bytes, kChunk)) {}

ZstdSink::~ZstdSink() {
  {
    const std::lock_guard lock(mutex_);
    frame_end_ = appended_;
    stopping_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

absl::Status ZstdSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  std::unique_lock lock(mutex_);
  if (absl::Status status = TryAgain(&lock); !status.ok()) return status;
  while (*taken < bytes.size()) {
    const auto has_room = [this] { return appended_ - compressed_ < queue_.size(); };
    progress_.wait(lock, [&] { return has_room() || !status_.ok(); });
    if (!status_.ok()) return status_;
    const std::size_t at = appended_ % queue_.size();
    const std::size_t room =
        std::min(queue_.size() - (appended_ - compressed_), queue_.size() - at);
    const std::size_t size = std::min(room, bytes.size() - *taken);
    std::memcpy(queue_.data() + at, bytes.data() + *taken, size);
    *taken += size;
    appended_ += size;
    if (HasWork()) work_.notify_one();
  }
  return absl::OkStatus();
}

absl::Status ZstdSink::Flush() {
  std::unique_lock lock(mutex_);
  frame_end_ = appended_;
  if (absl::Status status = TryAgain(&lock); !status.ok()) return status;
  if (HasWork()) work_.notify_one();
  return absl::OkStatus();
}

absl::Status ZstdSink::Sync() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  std::unique_lock lock(mutex_);
  progress_.wait(lock, [this] { return IsDelivered() || !status_.ok(); });
  if (!status_.ok()) return status_;
  return destination_->Sync();
}

std::uint64_t ZstdSink::Undelivered() const {
  const std::lock_guard lock(mutex_);
  return appended_ - delivered_;
}

absl::Status ZstdSink::TryAgain(std::unique_lock<std::mutex>* lock) {
  if (status_.ok() || broken_) return status_;
  try_again_ = true;
  work_.notify_one();
  progress_.wait(*lock, [this] { return !try_again_; });
  return status_;
}

bool ZstdSink::HasWork() const {
  return has_output_ || appended_ - compressed_ >= kChunk || compressed_ < frame_end_ ||
         frame_start_ < frame_end_;
}

void ZstdSink::Run() {
  pthread_setname_np(pthread_self(), "nettrace-zstd");
  thread_id_ = gettid();
  thread_id_.notify_one();
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] {
      return stopping_ || (HasWork() && !broken_ && (status_.ok() || try_again_));
    });
    if (!HasWork() || broken_ || (!status_.ok() && !try_again_)) return;  // stopping
    absl::Status status = has_output_ ? absl::OkStatus() : CompressChunk(&lock);
    if (status.ok()) status = WriteOutput(&lock);
    status_ = std::move(status);
    try_again_ = false;
    progress_.notify_all();
  }
}

absl::Status ZstdSink::CompressChunk(std::unique_lock<std::mutex>* lock) {
  const std::size_t at = compressed_ % queue_.size();
  std::uint64_t size = std::min<std::uint64_t>(appended_ - compressed_, kChunk);
  size = std::min<std::uint64_t>(size, queue_.size() - at);
  if (frame_end_ > compressed_) size = std::min(size, frame_end_ - compressed_);
  // It may have been asked for when all of the frame was compressed already.
  const bool ends_frame = frame_start_ < frame_end_ && compressed_ + size >= frame_end_;
  if (compressed_ == frame_end_ && ends_frame) size = 0;
  lock->unlock();

  output_.clear();
  output_next_ = 0;
  ZSTD_inBuffer input = {queue_.data() + at, static_cast<std::size_t>(size), 0};
  std::size_t left = 1;
  while (left != 0 && ZSTD_isError(left) == 0) {
    const std::size_t used = output_.size();
    output_.resize(used + ZSTD_CStreamOutSize());
    ZSTD_outBuffer output = {output_.data() + used, output_.size() - used, 0};
    left = ZSTD_compressStream2(context_.get(), &output, &input,
                                ends_frame ? ZSTD_e_end : ZSTD_e_flush);
    output_.resize(used + output.pos);
  }

  lock->lock();
  if (ZSTD_isError(left) != 0) {
    broken_ = true;
    return absl::InternalError(absl::StrCat("cannot compress: ", ZSTD_getErrorName(left)));
  }
  compressed_ += size;
  has_output_ = true;
  output_ends_frame_ = ends_frame;
  progress_.notify_all();  // there is room
  return absl::OkStatus();
}

absl::Status ZstdSink::WriteOutput(std::unique_lock<std::mutex>* lock) {
  lock->unlock();
  std::size_t taken = 0;
  const std::span<const std::byte> rest = std::span(output_).subspan(output_next_);
  absl::Status status = destination_->Append(rest, &taken);
  taken = status.ok() ? rest.size() : std::min(taken, rest.size());
  if (written_ != nullptr) *written_ += taken;
  output_next_ += taken;
  lock->lock();
  if (!status.ok()) return status;
  has_output_ = false;
  delivered_ = compressed_;
  if (output_ends_frame_) frame_start_ = compressed_;
  return absl::OkStatus();
}

}  // namespace collector
