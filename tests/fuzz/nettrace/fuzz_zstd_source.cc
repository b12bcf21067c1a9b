// Decompresses hostile bytes. The result must not depend on the sizes of the pieces in which they
// arrive and are read, and a reader must be able to process any result.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "nettrace/reader.h"
#include "tests/support/nettrace/read_all.h"
#include "tools/trace/zstd_source.h"

namespace {

using nettrace::testing::AllBytes;
using nettrace::testing::PiecesSource;

// A few bytes may decompress to very many; reading this many is enough.
constexpr std::size_t kMax = 1 << 20;

AllBytes Read(std::string_view bytes, std::size_t in_pieces, std::size_t out_pieces) {
  auto source = trace::OpenCompressed(std::make_unique<PiecesSource>(bytes, in_pieces));
  if (!source.ok()) return {"", source.status()};
  return nettrace::testing::ReadAll(source->get(), out_pieces, kMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const AllBytes at_once = Read(bytes, 1 << 20, 1 << 16);
  const AllBytes in_pieces = Read(bytes, 7, 1021);
  const std::size_t both = std::min(at_once.bytes.size(), in_pieces.bytes.size());
  if (at_once.bytes.substr(0, both) != in_pieces.bytes.substr(0, both)) __builtin_trap();
  // The sizes must be equal only if neither reading failed. Before an error, they may differ by the
  // part of the damaged block that zstd could decompress. Also, zstd detects an empty frame that
  // claims to have content only if it has the whole frame.
  const bool whole = at_once.status.ok() && in_pieces.status.ok();
  if (whole && both < kMax && at_once.bytes.size() != in_pieces.bytes.size()) __builtin_trap();

  auto source = trace::OpenCompressed(std::make_unique<PiecesSource>(bytes));
  if (!source.ok()) return 0;
  auto reader = nettrace::Reader::Open(*std::move(source));
  if (!reader.ok()) return 0;
  for (int steps = 0; steps < 4096; ++steps) {
    if ((*reader)->Next() == nettrace::Reader::Step::kEnd) break;
  }
  return 0;
}
