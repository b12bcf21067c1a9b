#include "tools/nettrace/ship/compressor.h"

#include <zstd.h>

#include <array>
#include <cstddef>

namespace tools::ship {
namespace {

constexpr int kLevel = 1;  // higher levels make events only slightly smaller

}  // namespace

std::string_view ContentEncoding(Compression compression) {
  switch (compression) {
    case Compression::kGzip:
      return "gzip";
    case Compression::kZstd:
      return "zstd";
    default:
      return "";
  }
}

void Compressor::FreeContext::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

Compressor::Compressor(Compression compression) : compression_(compression) {
  if (compression == Compression::kGzip) {
    constexpr int kWindowBits = 15 + 16;  // 16 adds the header of gzip
    constexpr int kMemoryLevel = 8;
    is_gzip_ready_ = deflateInit2(&gzip_, kLevel, Z_DEFLATED, kWindowBits, kMemoryLevel,
                                  Z_DEFAULT_STRATEGY) == Z_OK;
  } else if (compression == Compression::kZstd) {
    zstd_.reset(ZSTD_createCCtx());
  }
}

Compressor::~Compressor() {
  if (is_gzip_ready_) deflateEnd(&gzip_);
}

absl::StatusOr<std::string_view> Compressor::Compress(std::string_view bytes) {
  if (compression_ == Compression::kNone) return bytes;
  if (compression_ == Compression::kGzip ? Gzip(bytes) : Zstd(bytes)) return out_;
  return absl::ResourceExhaustedError(
      "not enough memory to compress requests; use --compression none");
}

bool Compressor::Gzip(std::string_view bytes) {
  if (!is_gzip_ready_ || deflateReset(&gzip_) != Z_OK) return false;
  out_.clear();
  gzip_.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
  gzip_.avail_in = static_cast<unsigned>(bytes.size());
  std::array<char, 65536> piece;
  do {
    gzip_.next_out = reinterpret_cast<unsigned char*>(piece.data());
    gzip_.avail_out = static_cast<unsigned>(piece.size());
    deflate(&gzip_, Z_FINISH);
    out_.append(piece.data(), piece.size() - gzip_.avail_out);
  } while (gzip_.avail_out == 0);
  return true;
}

bool Compressor::Zstd(std::string_view bytes) {
  if (zstd_ == nullptr) return false;
  // All bytes are compressed at once, so the frame states their number. Receivers can therefore
  // limit their memory.
  out_.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compressCCtx(zstd_.get(), out_.data(), out_.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(size) != 0) return false;
  out_.resize(size);
  return true;
}

}  // namespace tools::ship
