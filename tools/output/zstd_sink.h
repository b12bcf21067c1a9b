// Compresses a stream before it is passed to another sink.
#ifndef TOOLS_OUTPUT_ZSTD_SINK_H_
#define TOOLS_OUTPUT_ZSTD_SINK_H_

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

namespace output {

class OutputQueue;

struct ZstdSinkOptions {
  // Compression level, 1 to 19. Level 3 takes twice the time of level 1 and saves at most 1 % of a
  // trace.
  int level = 1;
  // If not null, is increased by the number of compressed bytes that the other sink takes.
  std::shared_ptr<std::atomic<std::uint64_t>> written = nullptr;
};

// A sink that compresses data for another sink. The output is a sequence of zstd frames. Flush,
// Sync, Finish and BeginSection end the current frame. A reader can decompress each frame without
// the other frames. Data is compressed in chunks of up to kChunk bytes. A chunk can be decompressed
// without later data, so a reader of a cut file gets all whole chunks.
//
// If the other sink fails, this sink keeps the compressed data, and each later call first passes it
// to the other sink again. An Append that has taken all of its bytes does not return the error. The
// next call returns it if the retry fails, too. Undelivered returns the number of bytes whose
// compressed data the other sink does not have in full, plus Undelivered of the other sink. An
// error of zstd is permanent: each later call returns it.
//
// The destructor compresses nothing: data that has not been flushed is lost.
class ZstdSink : public nettrace::Sink {
 public:
  static constexpr std::size_t kChunk = 128 << 10;  // bytes; the size of zstd's largest block

  // Fails with ResourceExhausted if there is not enough memory.
  static absl::StatusOr<std::unique_ptr<ZstdSink>> Create(
      std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options = {});
  ~ZstdSink() override;
  ZstdSink(const ZstdSink&) = delete;
  ZstdSink& operator=(const ZstdSink&) = delete;

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Each of these functions ends the frame and, if that succeeds, calls the same function of the
  // other sink.
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

  // Compresses `input` into output_. `directive` is a ZSTD_EndDirective.
  absl::Status Compress(std::span<const std::byte> input, int directive);
  // Passes the rest of output_ to the other sink.
  absl::Status WriteOutput();
  // Ends the open frame, if there is one, and passes it to the other sink.
  absl::Status EndFrame();

  const std::unique_ptr<nettrace::Sink> destination_;
  const std::shared_ptr<std::atomic<std::uint64_t>> written_;
  const std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  absl::Status broken_;  // error of zstd, which every later call returns

  std::size_t in_chunk_ = 0;  // bytes in the open chunk, before compression
  bool in_frame_ = false;     // true if a frame is open
  // Compressed bytes. The other sink has taken the first output_next_ bytes.
  std::vector<std::byte> output_;
  std::size_t output_next_ = 0;
  // Counts of bytes before compression, in ascending order:
  std::uint64_t delivered_ = 0;   // bytes whose compressed chunks the other sink has taken
  std::uint64_t compressed_ = 0;  // bytes in chunks that are compressed completely
  std::uint64_t taken_ = 0;       // bytes that Append has taken
};

// Creates a queue that compresses on a separate thread (WhenFull::kWait). Programs that write one
// file use it. Fails with ResourceExhausted if there is not enough memory or the thread cannot be
// started.
absl::StatusOr<std::shared_ptr<OutputQueue>> CompressOnThread(
    std::unique_ptr<nettrace::Sink> destination, const ZstdSinkOptions& options = {});

// Compresses `bytes` into one independent frame, as a ZstdSink would write it. Returns an empty
// vector if there is not enough memory or zstd reports another error.
std::vector<std::byte> ZstdFrame(std::span<const std::byte> bytes, int level);

}  // namespace output

#endif  // TOOLS_OUTPUT_ZSTD_SINK_H_
