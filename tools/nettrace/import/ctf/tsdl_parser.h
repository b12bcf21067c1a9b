// Parses TSDL, the language of a CTF 1.8 trace's metadata, in the dialects of LTTng, barectf, perf
// and babeltrace2.
//
// The text may contain any bytes. Time and memory are linear in its size, and the depth of types is
// bounded.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_TSDL_PARSER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_TSDL_PARSER_H_

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/nettrace/import/ctf/metadata.h"

namespace tools::importing::ctf {

inline constexpr int kMaxTypeDepth = 64;
inline constexpr std::size_t kMaxTypes = std::size_t{1} << 21;

// Returns the declarations. Fails with InvalidArgument, "line N: REASON".
absl::StatusOr<Metadata> ParseTsdl(std::string_view text);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_TSDL_PARSER_H_
