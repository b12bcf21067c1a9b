// The encoding of small integers in Parquet files: levels, and indices of dictionaries.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_RUN_ENCODING_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_RUN_ENCODING_H_

#include <cstdint>
#include <span>
#include <string>

namespace tools::parquet {

// Appends values in Parquet's hybrid of run lengths and bit packing. Each value has at most `width`
// bits, and `width` is 1 to 32. Equal values in sequence become a run; other values are packed, and
// the last group of 8 packed values is filled up with zeros.
void AppendRuns(std::span<const std::uint8_t> values, int width, std::string* out);
void AppendRuns(std::span<const std::uint32_t> values, int width, std::string* out);

// Appends one bit for each byte, which is 0 or 1: the PLAIN encoding of booleans.
void AppendBits(std::span<const char> bytes, std::string* out);

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_RUN_ENCODING_H_
