// The file `metadata` of a CTF 1.8 trace: text, or packets with text.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_METADATA_TEXT_H_
#define TOOLS_NETTRACE_IMPORT_CTF_METADATA_TEXT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tools::importing::ctf {

// The text in the file. InvalidArgument, with the packet's offset, if packets are not what the
// format has, or cut.
absl::StatusOr<std::string> MetadataText(std::string_view file);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_METADATA_TEXT_H_
