// Compiles the `print fmt` of a kernel tracepoint into notes on its fields
// (tools/trace/tracepoint_keys.h).
#ifndef TOOLS_COLLECTOR_CONVERT_PRINT_FORMAT_H_
#define TOOLS_COLLECTOR_CONVERT_PRINT_FORMAT_H_

#include <set>
#include <string>
#include <vector>

#include "nettrace/schema.h"

struct tep_event;

namespace collector {

struct PrintFormat {
  // Notes for the fields that are not displayed as their types suggest. If the notes take more than
  // kMaxNotes bytes, the largest are left out.
  nettrace::KeyValues notes;
  // A field that contains an address in the kernel's code, and whether the offset from the symbol
  // is displayed (%pS) or not (%ps).
  struct KernelAddress {
    std::string field;
    bool with_offset;
    friend bool operator==(const KernelAddress&, const KernelAddress&) = default;
  };
  std::vector<KernelAddress> kernel_addresses;
  // Names of fields that contain bytes and not text, although their type may be char.
  std::set<std::string> binary;
};

// Maximum size of all keys and values of a tracepoint's notes, in bytes. A metadata row, including
// its fields, has at most 65535 bytes.
inline constexpr std::size_t kMaxNotes = 32 * 1024;

// Compiles the parsed format of `event`. Leaves out the parts that notes cannot express.
PrintFormat CompilePrintFormat(const tep_event& event);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PRINT_FORMAT_H_
