// Compresses the pages of Parquet files.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_PAGE_COMPRESSOR_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_PAGE_COMPRESSOR_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct ZSTD_CCtx_s;  // from zstd.h

namespace tools::parquet {

// Compresses one page at a time. Not thread-safe.
class PageCompressor {
 public:
  PageCompressor();

  // Returns the buffer for the next page, which the caller fills. All columns of a file share the
  // buffer, so memory holds only one uncompressed page.
  std::string* plain() { return &plain_; }
  // Compresses the buffer into a zstd frame of level 1. The frame is valid until the next call.
  // Fails with ResourceExhausted if there is not enough memory.
  absl::StatusOr<std::string_view> Compress();

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const std::unique_ptr<ZSTD_CCtx_s, FreeContext> context_;
  std::string plain_;
  std::string compressed_;
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_PAGE_COMPRESSOR_H_
