// Compiles the `print fmt` of a kernel tracepoint into notes on its fields
// (tools/common/tracepoint_keys.h).
#ifndef TOOLS_COLLECTOR_CONVERT_PRINT_FORMAT_H_
#define TOOLS_COLLECTOR_CONVERT_PRINT_FORMAT_H_

#include <set>
#include <string>
#include <vector>

#include "nettrace/schema.h"

struct tep_event;

namespace collector {

struct PrintFormat {
  // Keys for the fields that are not shown as their types say. They take at most kMaxNotes bytes:
  // the largest are left out.
  nettrace::KeyValues notes;
  // The fields that hold addresses of the kernel's code, and whether the offset is shown.
  struct KernelAddress {
    std::string field;
    bool with_offset;
    friend bool operator==(const KernelAddress&, const KernelAddress&) = default;
  };
  std::vector<KernelAddress> kernel_addresses;
  // Fields that are bytes, though their type may be char.
  std::set<std::string> binary;
};

// Bytes of all keys and values of a tracepoint: a metadata row has 65535, its fields among them.
inline constexpr std::size_t kMaxNotes = 32 * 1024;

// Reads the parsed format of `event`. What it cannot express is left out.
PrintFormat CompilePrintFormat(const tep_event& event);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PRINT_FORMAT_H_
