// Extracts the text from the file `metadata` of a CTF 1.8 trace. The file is plain text or consists
// of packets.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_METADATA_TEXT_H_
#define TOOLS_NETTRACE_IMPORT_CTF_METADATA_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tools::importing::ctf {

// Returns the text in the file. Fails with InvalidArgument if a packet is invalid, truncated,
// compressed or encrypted; the error contains its offset. Fails with Unimplemented for CTF 2.
absl::StatusOr<std::string> MetadataText(std::string_view file);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_METADATA_TEXT_H_
