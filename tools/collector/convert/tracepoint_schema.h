// Compiles the format of a kernel tracepoint into a NetTrace metadata row.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_
#define TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nettrace/schema.h"

namespace collector {

// The layout of a tracepoint's record. The common_* fields at its front are not part of the
// payload; all other fields are, unchanged but for the positions in DataLoc fields.
struct TracepointSchema {
  nettrace::EventMetadata metadata;  // event_id is left to the caller
  std::size_t payload_offset = 0;    // bytes of common fields
  std::size_t fixed_size = 0;        // bytes of the payload's fixed part
  struct Location {
    std::size_t offset;  // of the 4-byte field in the payload
    bool relative;       // to the field's own end (RelLoc)
  };
  std::vector<Location> locations;
  std::string first_field;  // "" if there is none
  // Of the tid that the kernel puts among the common fields; none if it does not.
  std::optional<std::size_t> tid_offset;

  // Sets `*payload` to the payload of the record `raw`, a view of `raw`, or of `*scratch` where it
  // had to be changed. Returns false if the record is cut short, or a location points out of it.
  bool MakePayload(std::span<const std::byte> raw, std::vector<std::byte>* scratch,
                   std::span<const std::byte>* payload) const;

  // The tid in the common fields of the record `raw`. It is that of the first pid namespace.
  std::optional<std::uint32_t> ReadTid(std::span<const std::byte> raw) const;
};

// Parses `format`, the text of a tracepoint's format file. InvalidArgument if it cannot be parsed.
absl::StatusOr<TracepointSchema> ParseTracepointFormat(const std::string& system,
                                                       const std::string& event, int id,
                                                       const std::string& format);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_
