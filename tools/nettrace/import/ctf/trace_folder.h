// Finds the directories of CTF traces.
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
  std::string name;      // name of the directory, for messages
  std::string metadata;  // content of the file `metadata`
  std::vector<NamedFile> streams;
};

// Returns the traces in `path`. A trace is a directory that contains a file `metadata`: `path`
// itself, or a directory at most kMaxFolderDepth levels below it. The other files in the directory
// are streams, except those whose names begin with '.'. Does not follow symbolic links to
// directories. Appends the stat results of all files of the traces to `files`. Fails if there is no
// trace, a file cannot be opened, or a limit is exceeded; errors name the file.
absl::StatusOr<std::vector<TraceFolder>> OpenTraces(const std::string& path,
                                                    std::vector<struct stat>* files);

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_TRACE_FOLDER_H_
