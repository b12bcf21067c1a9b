// Compresses a trace on its way to another sink.
#ifndef TOOLS_COLLECTOR_OUTPUT_ZSTD_SINK_H_
#define TOOLS_COLLECTOR_OUTPUT_ZSTD_SINK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"

struct ZSTD_CCtx_s;  // from zstd.h

namespace collector {

class OutputQueue;

struct ZstdSinkOptions {
  // Of compression, 1 to 19: 3 takes twice the time of 1 and saves no more than 1 % of a trace.
  int level = 1;
  // If there, it counts the bytes that the other sink took.
  std::shared_ptr<std::atomic<std::uint64_t>> written = nullptr;
};

// The output is a sequence of zstd frames. Each Flush and each section ends one, so that what came
// before it can be read whatever happens to the rest, and a section can be read without what came
// before it. Bytes are compressed in chunks of up to kChunk, each of which is readable without what
// follows it: a reader of a file that is cut sees all chunks that are whole.
//
// An error of the other sink is returned by the call that met it if that has not taken all of its
// bytes, and else by the next one. What has been compressed is kept and given again with each call.
// Undelivered says of how many bytes the other sink does not have everything yet.
//
// Nothing is compressed any more in the destructor: what has not been flushed is gone.
class ZstdSink : public nettrace::Sink {
 public:
  static constexpr std::size_t kChunk = 128 << 10;  // zstd's own largest block

  // ResourceExhausted if there is no memory for it.
  static absl::StatusOr<std::unique_ptr<ZstdSink>> Create(
      std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options = {});
  ~ZstdSink() override;
  ZstdSink(const ZstdSink&) = delete;
  ZstdSink& operator=(const ZstdSink&) = delete;

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Each of these ends the frame, and then does the same to the other sink.
  absl::Status Flush() override;
  absl::Status Sync() override;
  absl::Status Finish() override;
  absl::Status BeginSection() override;

  std::uint64_t Undelivered() const override;
  bool WantsSection() const override { return destination_->WantsSection(); }
  bool IsFull() const override { return destination_->IsFull(); }

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  ZstdSink(std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options,
           std::unique_ptr<ZSTD_CCtx_s, FreeContext> context);

  // Compresses `input` into output_, with a ZSTD_EndDirective.
  absl::Status Compress(std::span<const std::byte> input, int directive);
  // Gives the other sink what output_ has for it.
  absl::Status WriteOutput();
  absl::Status EndFrame();

  const std::unique_ptr<nettrace::Sink> destination_;
  const std::shared_ptr<std::atomic<std::uint64_t>> written_;
  const std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  absl::Status broken_;  // the error is zstd's, and stays

  std::size_t in_chunk_ = 0;  // bytes of the chunk that is open
  bool in_frame_ = false;     // a frame is open
  // Compressed bytes, of which the other sink has taken those before output_next_.
  std::vector<std::byte> output_;
  std::size_t output_next_ = 0;
  // Numbers of bytes of the stream, in the order of their sizes:
  std::uint64_t delivered_ = 0;   // the other sink has all that they became
  std::uint64_t compressed_ = 0;  // in whole chunks; all that they became is in output_
  std::uint64_t taken_ = 0;
};

// A queue that waits when it is full, with compression on its thread, as programs use it that write
// one file.
absl::StatusOr<std::shared_ptr<OutputQueue>> CompressOnThread(
    std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options = {});

// A frame of its own, as a ZstdSink would write it. Empty if there is no memory for it.
std::vector<std::byte> ZstdFrame(std::span<const std::byte> bytes, int level);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_ZSTD_SINK_H_
