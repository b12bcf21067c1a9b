// The directories of CTF traces.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_TRACE_FOLDER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_TRACE_FOLDER_H_

#include <sys/stat.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nettrace/import/ctf/ctf_importer.h"

namespace tools::importing::ctf {

inline constexpr std::size_t kMaxTraces = 256;
inline constexpr int kMaxFolderDepth = 16;

struct TraceFolder {
  std::string name;      // of the directory, for messages
  std::string metadata;  // the content of that file
  std::vector<NamedFile> streams;
};

// The traces in `path`: itself, if it has a file `metadata`, and those in the directories below.
// Symbolic links to directories are not followed. `files` gets what the file system says of all
// their files. InvalidArgument if there is no trace; errors name the file.
absl::StatusOr<std::vector<TraceFolder>> OpenTraces(const std::string& path,
                                                    std::vector<struct stat>* files);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_TRACE_FOLDER_H_
