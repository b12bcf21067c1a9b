// Reads all bytes of a source.
#ifndef TESTS_SUPPORT_NETTRACE_READ_ALL_H_
#define TESTS_SUPPORT_NETTRACE_READ_ALL_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/source.h"

namespace nettrace::testing {

// Returns bytes from memory in pieces of up to `piece`, like a pipe.
class PiecesSource : public Source {
 public:
  explicit PiecesSource(std::string_view bytes, std::size_t piece = 1 << 20)
      : memory_(std::as_bytes(std::span(bytes))), piece_(piece) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    return memory_.Read(buffer.first(std::min(buffer.size(), piece_)));
  }

 private:
  MemorySource memory_;
  const std::size_t piece_;
};

struct AllBytes {
  std::string bytes;    // Up to the end or the error.
  absl::Status status;  // The final status.
};

// Reads in pieces of `piece` bytes until the end, an error, or `max` bytes.
inline AllBytes ReadAll(Source* source, std::size_t piece = 1 << 16, std::size_t max = -1) {
  AllBytes all;
  std::vector<std::byte> buffer(piece);
  while (all.bytes.size() < max) {
    const absl::StatusOr<std::size_t> got = source->Read(buffer);
    if (!got.ok()) all.status = got.status();
    if (!got.ok() || *got == 0) break;
    all.bytes.append(reinterpret_cast<const char*>(buffer.data()), *got);
  }
  return all;
}

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_READ_ALL_H_
