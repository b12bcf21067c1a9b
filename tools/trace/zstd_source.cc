#include "tools/trace/zstd_source.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace trace {
namespace {

constexpr std::size_t kMagicSize = 4;
constexpr int kMaxWindowLog = 27;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
using Context = std::unique_ptr<ZSTD_DCtx, FreeContext>;

// A source of the bytes that were read ahead, followed by those of `rest`.
class PeekedSource : public nettrace::Source {
 public:
  PeekedSource(std::span<const std::byte> peeked, std::unique_ptr<nettrace::Source> rest)
      : rest_(std::move(rest)), size_(peeked.size()) {
    std::copy(peeked.begin(), peeked.end(), peeked_.begin());
  }
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    if (next_ == size_) return rest_->Read(buffer);
    const std::size_t size = std::min(buffer.size(), size_ - next_);
    std::memcpy(buffer.data(), peeked_.data() + next_, size);
    next_ += size;
    return size;
  }

 private:
  const std::unique_ptr<nettrace::Source> rest_;
  std::array<std::byte, kMagicSize> peeked_;
  const std::size_t size_;
  std::size_t next_ = 0;
};

class ZstdSource : public nettrace::Source {
 public:
  ZstdSource(std::unique_ptr<nettrace::Source> source, Context context)
      : source_(std::move(source)), context_(std::move(context)), buffer_(ZSTD_DStreamInSize()) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    ZSTD_outBuffer output = {buffer.data(), buffer.size(), 0};
    while (output.pos == 0 && !buffer.empty()) {
      if (!failure_.ok()) return failure_;
      if (input_.pos == input_.size && !has_more_output_) {
        absl::StatusOr<std::size_t> got = source_->Read(buffer_);
        if (!got.ok()) return got;
        if (*got == 0) {
          if (!in_frame_) return 0;
          failure_ = absl::DataLossError(
              "the zstd data is truncated; copy the file again, or write its readable part with "
              "nettrace repair");
          continue;
        }
        input_ = {buffer_.data(), *got, 0};
      }
      Decompress(&output);
    }
    return output.pos;
  }

 private:
  static constexpr std::size_t kLeastWanted = 5;  // minimum bytes of a frame header

  // Passes zstd no more bytes than zstd asks for. A call that fails discards all of its output, so
  // with more bytes, data before the error would be lost.
  void Decompress(ZSTD_outBuffer* output) {
    ZSTD_inBuffer part = {input_.src, std::min(input_.size, input_.pos + wanted_), input_.pos};
    const std::size_t expected = ZSTD_decompressStream(context_.get(), output, &part);
    input_.pos = part.pos;
    if (ZSTD_isError(expected) == 0) {
      wanted_ = expected != 0 ? expected : kLeastWanted;
      in_frame_ = expected != 0;
      has_more_output_ = in_frame_ && output->pos == output->size;
      return;
    }
    const std::string why = absl::StrCat("zstd: ", ZSTD_getErrorName(expected));
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(expected);
    if (code == ZSTD_error_frameParameter_windowTooLarge) {
      failure_ = absl::ResourceExhaustedError(
          absl::StrCat(why, "; a frame may need at most ", 1 << (kMaxWindowLog - 20),
                       " MiB; compress the file again without --long or --ultra"));
    } else {
      failure_ = code == ZSTD_error_memory_allocation ? absl::ResourceExhaustedError(why)
                                                      : absl::DataLossError(why);
    }
  }

  const std::unique_ptr<nettrace::Source> source_;
  const Context context_;
  std::vector<std::byte> buffer_;
  ZSTD_inBuffer input_ = {nullptr, 0, 0};
  std::size_t wanted_ = kLeastWanted;  // bytes that zstd asks for next
  bool in_frame_ = false;
  // True if zstd may hold more output, because it has filled the output buffer.
  bool has_more_output_ = false;
  absl::Status failure_;
};

// Returns whether `magic` is the beginning of a zstd frame, or of a skippable frame, with which
// files of pzstd begin.
bool IsZstd(std::span<const std::byte> magic) {
  if (magic.size() < kMagicSize) return false;
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < kMagicSize; ++i) {
    number |= static_cast<std::uint32_t>(magic[i]) << 8 * i;
  }
  return number == ZSTD_MAGICNUMBER ||
         (number & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

}  // namespace

absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenCompressed(
    std::unique_ptr<nettrace::Source> source) {
  std::array<std::byte, kMagicSize> magic;
  std::size_t size = 0;
  while (size < magic.size()) {
    ASSIGN_OR_RETURN(std::size_t got, source->Read(std::span(magic).subspan(size)));
    if (got == 0) break;
    size += got;
  }
  const std::span<const std::byte> peeked = std::span(magic).first(size);
  auto whole = std::make_unique<PeekedSource>(peeked, std::move(source));
  if (!IsZstd(peeked)) return whole;
  Context context(ZSTD_createDCtx());
  if (context == nullptr || ZSTD_isError(ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax,
                                                                kMaxWindowLog)) != 0) {
    return absl::ResourceExhaustedError(
        "not enough memory to decompress the input; raise the limit of this process's memory");
  }
  return std::make_unique<ZstdSource>(std::move(whole), std::move(context));
}

}  // namespace trace
