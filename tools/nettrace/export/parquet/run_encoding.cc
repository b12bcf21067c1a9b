#include "tools/nettrace/export/parquet/run_encoding.h"

#include <algorithm>
#include <cstddef>

#include "tools/nettrace/export/parquet/thrift_writer.h"

namespace tools::parquet {
namespace {

constexpr std::size_t kGroup = 8;  // values that are packed together

template <typename Value>
void AppendPacked(std::span<const Value> values, int width, std::string* out) {
  if (values.empty()) return;
  const std::size_t groups = (values.size() + kGroup - 1) / kGroup;
  AppendVarint(groups << 1 | 1, out);
  const std::size_t end = out->size() + groups * static_cast<std::size_t>(width);
  std::uint64_t bits = 0;
  int count = 0;  // number of bits in `bits`
  for (const Value value : values) {
    bits |= std::uint64_t{value} << count;
    for (count += width; count >= 8; count -= 8, bits >>= 8) *out += static_cast<char>(bits);
  }
  if (count > 0) *out += static_cast<char>(bits);
  out->resize(end, '\0');
}

template <typename Value>
void AppendRun(Value value, std::size_t length, int width, std::string* out) {
  AppendVarint(std::uint64_t{length} << 1, out);
  std::uint64_t bits = value;
  for (int written = 0; written < width; written += 8, bits >>= 8) *out += static_cast<char>(bits);
}

template <typename Value>
void AppendHybrid(std::span<const Value> values, int width, std::string* out) {
  std::size_t packed = 0;  // values at the indices [packed, at) will be packed
  for (std::size_t at = 0; at < values.size();) {
    std::size_t end = at + 1;
    while (end < values.size() && values[end] == values[at]) ++end;
    // Only the last packed group may have fewer than kGroup values. Before a run, the last packed
    // group is therefore completed with the first values of the run.
    const std::size_t missing = (kGroup - (at - packed) % kGroup) % kGroup;
    if (end - at >= missing + kGroup) {
      AppendPacked(values.subspan(packed, at + missing - packed), width, out);
      AppendRun(values[at], end - at - missing, width, out);
      packed = end;
    }
    at = end;
  }
  AppendPacked(values.subspan(packed), width, out);
}

}  // namespace

void AppendRuns(std::span<const std::uint8_t> values, int width, std::string* out) {
  AppendHybrid(values, width, out);
}

void AppendRuns(std::span<const std::uint32_t> values, int width, std::string* out) {
  AppendHybrid(values, width, out);
}

void AppendBits(std::span<const char> bytes, std::string* out) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    int packed = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(8, bytes.size() - at); ++i) {
      packed |= bytes[at + i] << i;
    }
    *out += static_cast<char>(packed);
  }
}

}  // namespace tools::parquet
