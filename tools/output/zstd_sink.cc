#include "tools/output/zstd_sink.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/output/output_queue.h"

namespace output {
namespace {

void SetParameters(ZSTD_CCtx* context, int level) {
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
}

}  // namespace

void ZstdSink::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

absl::StatusOr<std::unique_ptr<ZstdSink>> ZstdSink::Create(
    std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options) {
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) {
    return absl::ResourceExhaustedError(
        "not enough memory to compress the output; raise the limit of this process's memory");
  }
  SetParameters(context.get(), options.level);
  return std::unique_ptr<ZstdSink>(
      new ZstdSink(std::move(destination), options, std::move(context)));
}

ZstdSink::ZstdSink(std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options,
                   std::unique_ptr<ZSTD_CCtx_s, FreeContext> context)
    : destination_(std::move(destination)),
      written_(options.written),
      context_(std::move(context)) {
  // Reserves enough memory for the output of a chunk, so that Append usually allocates nothing.
  output_.reserve(2 * ZSTD_CStreamOutSize());
}

ZstdSink::~ZstdSink() = default;

absl::Status ZstdSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  RETURN_IF_ERROR(WriteOutput());
  while (*taken < bytes.size()) {
    const std::size_t size = std::min(kChunk - in_chunk_, bytes.size() - *taken);
    const bool ends_chunk = in_chunk_ + size == kChunk;
    in_frame_ = true;
    RETURN_IF_ERROR(
        Compress(bytes.subspan(*taken, size), ends_chunk ? ZSTD_e_flush : ZSTD_e_continue));
    in_chunk_ = ends_chunk ? 0 : in_chunk_ + size;
    *taken += size;
    taken_ += size;
    if (ends_chunk) compressed_ = taken_;
    if (absl::Status status = WriteOutput(); !status.ok() && *taken < bytes.size()) return status;
  }
  return absl::OkStatus();
}

absl::Status ZstdSink::EndFrame() {
  RETURN_IF_ERROR(WriteOutput());
  if (!in_frame_) return absl::OkStatus();
  RETURN_IF_ERROR(Compress({}, ZSTD_e_end));
  in_frame_ = false;
  in_chunk_ = 0;
  compressed_ = taken_;
  return WriteOutput();
}

absl::Status ZstdSink::Flush() {
  absl::Status status = EndFrame();
  return status.ok() ? destination_->Flush() : status;
}

absl::Status ZstdSink::Sync() {
  absl::Status status = EndFrame();
  return status.ok() ? destination_->Sync() : status;
}

absl::Status ZstdSink::Finish() {
  absl::Status status = EndFrame();
  return status.ok() ? destination_->Finish() : status;
}

absl::Status ZstdSink::BeginSection() {
  absl::Status status = EndFrame();
  return status.ok() ? destination_->BeginSection() : status;
}

std::uint64_t ZstdSink::Undelivered() const {
  return taken_ - delivered_ + destination_->Undelivered();
}

absl::Status ZstdSink::Compress(std::span<const std::byte> bytes, int directive) {
  if (!broken_.ok()) return broken_;
  const auto end = static_cast<ZSTD_EndDirective>(directive);
  ZSTD_inBuffer input = {bytes.data(), bytes.size(), 0};
  std::size_t left = 1;
  // With ZSTD_e_continue, zstd may hold back output, so the loop ends when zstd has taken the
  // input. Otherwise it ends when zstd has written all output.
  const auto is_over = [&] { return end == ZSTD_e_continue ? input.pos == input.size : left == 0; };
  while (!is_over()) {
    const std::size_t used = output_.size();
    output_.resize(used + ZSTD_CStreamOutSize());
    ZSTD_outBuffer output = {output_.data() + used, output_.size() - used, 0};
    left = ZSTD_compressStream2(context_.get(), &output, &input, end);
    output_.resize(used + output.pos);
    if (ZSTD_isError(left) != 0) {
      broken_ = absl::InternalError(absl::StrCat("cannot compress: ", ZSTD_getErrorName(left)));
      return broken_;
    }
  }
  return absl::OkStatus();
}

absl::Status ZstdSink::WriteOutput() {
  if (output_next_ < output_.size()) {
    const std::span<const std::byte> rest = std::span(output_).subspan(output_next_);
    std::size_t taken = 0;
    absl::Status status = destination_->Append(rest, &taken);
    taken = status.ok() ? rest.size() : std::min(taken, rest.size());
    if (written_ != nullptr) *written_ += taken;
    output_next_ += taken;
    if (!status.ok()) return status;
  }
  output_.clear();
  output_next_ = 0;
  delivered_ = compressed_;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<OutputQueue>> CompressOnThread(
    std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ZstdSink> sink,
                   ZstdSink::Create(std::move(destination), options));
  OutputQueueOptions queue;
  queue.when_full = WhenFull::kWait;
  queue.thread_name = "nettrace-zstd";
  return OutputQueue::Create(std::move(sink), std::move(queue));
}

std::vector<std::byte> ZstdFrame(std::span<const std::byte> bytes, int level) {
  std::vector<std::byte> frame(ZSTD_compressBound(bytes.size()));
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  if (context == nullptr) return {};
  SetParameters(context, level);
  const std::size_t size =
      ZSTD_compress2(context, frame.data(), frame.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  frame.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return frame;
}

}  // namespace output
