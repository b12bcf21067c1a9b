// The ids of code in a copy of several streams.
#ifndef LIBNETTRACE_WRITER_MERGE_CODE_IDS_H_
#define LIBNETTRACE_WRITER_MERGE_CODE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nettrace/reader.h"

namespace nettrace::internal {

// Gives the code of each stream other ids. The events of Universal.System number mappings, files
// and functions, and refer to them by these numbers. Two recordings use the same numbers for
// different code, so readers of a plain copy would show wrong functions.
class CodeIds {
 public:
  // `stream` is the index of the stream, and `streams` the number of all streams.
  CodeIds(std::uint64_t stream, std::uint64_t streams) : stream_(stream), streams_(streams) {}

  // Returns the payload of the event in the copy, valid until the next call. It is event.payload
  // if there is one stream, or if the event is not of Universal.System or is not encoded as a
  // writer does it.
  std::span<const std::byte> PayloadOf(const Event& event);

 private:
  // Returns the payload with these ids, encoded again. Returns nullopt if it has values that
  // describe no code.
  std::optional<std::vector<std::byte>> Encode(const Event& event, bool with_new_ids) const;

  const std::uint64_t stream_;
  const std::uint64_t streams_;
  std::vector<std::byte> payload_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_CODE_IDS_H_
