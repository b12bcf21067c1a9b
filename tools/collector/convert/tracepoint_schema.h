// Compiles the format of a kernel tracepoint into a NetTrace metadata row, with the keys of
// tools/trace/tracepoint_keys.h, and into a program that converts the tracepoint's records into
// payloads.
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

// The layout of a tracepoint's record. The payload consists of all fields except the common_*
// fields at the start. An array of `char` is text and becomes a counted array of code units, unless
// the `print fmt` displays it as bytes. Other fields with a location (__data_loc, __rel_loc) become
// counted arrays of their elements. All other fields keep their size. Gaps between fields are left
// out.
struct TracepointSchema {
  nettrace::EventMetadata metadata;  // for TextForm::kBytes; the caller sets event_id
  RecordProgram program;
  std::size_t payload_offset = 0;  // size of the common fields and the gap after them, in bytes
  std::string first_field;         // its name; "" if there is none

  // A field that holds an address of the kernel's code.
  struct KernelAddress {
    std::string field;
    std::uint32_t offset = 0;  // in the record, in bytes
    std::uint8_t size = 0;
    bool with_offset = false;  // the symbol is displayed with the offset of the address in it
  };
  std::vector<KernelAddress> kernel_addresses;

  // Offset of the tid among the common fields; no value if the format does not contain a tid.
  std::optional<std::size_t> tid_offset;
  // Returns the tid in the common fields of the record `raw`, in the initial pid namespace. Returns
  // no value if the format or the record does not contain it.
  std::optional<std::uint32_t> ReadTid(std::span<const std::byte> raw) const;

  // Returns the metadata row of events whose text is written as `form`.
  nettrace::EventMetadata MetadataFor(TextForm form) const;
};

// Parses `format`, the text of a tracepoint's format file. Numbers in its records have the byte
// order `order`.
//
// The key/values of the metadata row describe how the `print fmt` displays the fields, as far as it
// can be parsed. The `print fmt` of user_events is not read: other processes define it, and it
// contains no more than the fields.
//
// Fails with InvalidArgument if the format cannot be parsed, if fields overlap or have sizes that a
// file cannot contain, or if the format comes from another process (user_events) and contains more
// than plain words, numbers and brackets. Fails with ResourceExhausted if memory is short.
absl::StatusOr<TracepointSchema> ParseTracepointFormat(const std::string& system,
                                                       const std::string& event, int id,
                                                       const std::string& format,
                                                       std::endian order = std::endian::native);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_TRACEPOINT_SCHEMA_H_
