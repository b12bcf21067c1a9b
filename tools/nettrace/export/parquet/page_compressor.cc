#include "tools/nettrace/export/parquet/page_compressor.h"

#include <zstd.h>

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace tools::parquet {
namespace {

// Higher levels take more time and save little space. Files of the collector use this level, too.
constexpr int kZstdLevel = 1;

}  // namespace

void PageCompressor::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

PageCompressor::PageCompressor() : context_(ZSTD_createCCtx()) {}

absl::StatusOr<std::string_view> PageCompressor::Compress() {
  if (context_ == nullptr)
    return absl::ResourceExhaustedError("not enough memory to compress the output");
  compressed_.resize(ZSTD_compressBound(plain_.size()));
  const std::size_t size = ZSTD_compressCCtx(context_.get(), compressed_.data(), compressed_.size(),
                                             plain_.data(), plain_.size(), kZstdLevel);
  if (ZSTD_isError(size) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("compression failed: ", ZSTD_getErrorName(size)));
  }
  return std::string_view(compressed_).substr(0, size);
}

}  // namespace tools::parquet
