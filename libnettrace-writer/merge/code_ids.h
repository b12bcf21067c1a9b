// Replaces the ids of mappings, files and functions in a copy of several streams, so that two
// streams never use the same id.
#ifndef LIBNETTRACE_WRITER_MERGE_CODE_IDS_H_
#define LIBNETTRACE_WRITER_MERGE_CODE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nettrace/reader.h"

namespace nettrace::internal {

// Replaces the ids in the events of one stream. Events of provider Universal.System assign ids to
// mappings, files and functions, and refer to them by these ids. Two recordings use the same ids
// for different code, so readers of a plain copy would show wrong functions.
class CodeIds {
 public:
  // `stream` is the index of this stream, from 0. `streams` is the number of streams in the copy.
  CodeIds(std::uint64_t stream, std::uint64_t streams) : stream_(stream), streams_(streams) {}

  // Returns the payload that the event has in the copy, valid until the next call. It is
  // event.payload if there is only one stream, or if the event has no such ids. It is also
  // event.payload if Encode fails, or if PayloadEncoder would encode the unchanged values to other
  // bytes.
  std::span<const std::byte> PayloadOf(const Event& event);

 private:
  // Encodes the event's payload again, with new ids if `with_new_ids` is true. Returns nullopt if
  // the payload does not match its fields, or has values other than integers, Booleans and text.
  // Also returns nullopt if a new id would exceed 64 bits.
  std::optional<std::vector<std::byte>> Encode(const Event& event, bool with_new_ids) const;

  const std::uint64_t stream_;
  const std::uint64_t streams_;
  std::vector<std::byte> payload_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_CODE_IDS_H_
