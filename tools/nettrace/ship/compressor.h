// Compresses the bodies of requests.
#ifndef TOOLS_NETTRACE_SHIP_COMPRESSOR_H_
#define TOOLS_NETTRACE_SHIP_COMPRESSOR_H_

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct ZSTD_CCtx_s;

namespace tools::ship {

enum class Compression : std::uint8_t { kNone, kGzip, kZstd };

// Returns the value of the header Content-Encoding; "" for kNone.
std::string_view ContentEncoding(Compression compression);

// Compresses one body at a time, and keeps its memory for the next body. Not thread-safe.
class Compressor {
 public:
  explicit Compressor(Compression compression);
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  // Returns the compressed bytes, which are valid until the next call; with kNone, `bytes`. Fails
  // with ResourceExhausted if there is no memory.
  absl::StatusOr<std::string_view> Compress(std::string_view bytes);

 private:
  struct FreeContext {
    void operator()(ZSTD_CCtx_s* context) const;
  };

  bool Gzip(std::string_view bytes);
  bool Zstd(std::string_view bytes);

  const Compression compression_;
  z_stream gzip_ = {};
  bool is_gzip_ready_ = false;
  std::unique_ptr<ZSTD_CCtx_s, FreeContext> zstd_;
  std::string out_;
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_COMPRESSOR_H_
