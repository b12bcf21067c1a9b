// Files that are compressed with zstd, read as if they were not.
#ifndef TOOLS_COMMON_ZSTD_SOURCE_H_
#define TOOLS_COMMON_ZSTD_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "nettrace/source.h"

namespace tools {

// `source`, and if its first bytes are those of zstd, what is in it: the contents of its frames,
// one after the other. Of data that is cut or damaged, all that comes before is given, then
// DataLoss.
//
// A frame can make the reader hold as much as it says that it looks back, up to 128 MB, which is
// what zstd(1) takes: ResourceExhausted is more. Memory is taken as the frame's contents come.
absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenCompressed(
    std::unique_ptr<nettrace::Source> source);

}  // namespace tools

#endif  // TOOLS_COMMON_ZSTD_SOURCE_H_
