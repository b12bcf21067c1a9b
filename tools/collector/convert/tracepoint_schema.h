// Compiles the format of a kernel tracepoint into a NetTrace metadata row, with the keys of
// tools/common/tracepoint_keys.h, and a program that makes payloads of its records.
#ifndef TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_
#define TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nettrace/schema.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/collector/convert/record_program.h"

namespace collector {

// The layout of a tracepoint's record. The common_* fields at its front are not part of the
// payload; all other fields are. Text, of `char` only, becomes a counted array of code units, and
// what has a location (__data_loc, __rel_loc) a counted array of its elements; all else keeps its
// size. Gaps between the fields are in no payload.
struct TracepointSchema {
  nettrace::EventMetadata metadata;  // of TextForm::kBytes; event_id is left to the caller
  RecordProgram program;
  std::size_t payload_offset = 0;  // bytes of common fields
  std::string first_field;         // "" if there is none

  // A field that holds an address of the kernel's code.
  struct KernelAddress {
    std::string field;
    std::uint32_t offset = 0;  // in the record
    std::uint8_t size = 0;
    bool with_offset = false;  // the symbol shows how far behind it the address is
  };
  std::vector<KernelAddress> kernel_addresses;

  // Of the tid that the kernel puts among the common fields; none if it does not.
  std::optional<std::size_t> tid_offset;
  // The tid in the common fields of the record `raw`. It is that of the first pid namespace.
  std::optional<std::uint32_t> ReadTid(std::span<const std::byte> raw) const;

  // The row of the events that are written in the form `form`.
  nettrace::EventMetadata MetadataOf(TextForm form) const;
};

// Parses `format`, the text of a tracepoint's format file, which is of this machine: its numbers
// are in `order`. InvalidArgument if it cannot be parsed, or is one that the kernel took from
// another process (user_events) and that is not of plain words, numbers and brackets. What its
// `print fmt` says goes to the keys as far as it can be parsed; that of user_events, which other
// processes define, is not read, as it says nothing that the fields do not.
absl::StatusOr<TracepointSchema> ParseTracepointFormat(const std::string& system,
                                                       const std::string& event, int id,
                                                       const std::string& format,
                                                       std::endian order = std::endian::native);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_
