#include "tools/eventheader/program_files.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/status_macros.h"
#include "tools/cli/exit_codes.h"
#include "tools/eventheader/command_output.h"
#include "tools/eventheader/commands.h"

namespace tools {
namespace {

// Returns the paths that dpkg has installed for a package, including directories.
absl::StatusOr<std::vector<std::string>> PathsOfPackage(const std::string& package) {
  const std::optional<std::string> listed = OutputOf({"dpkg-query", "--listfiles", "--", package});
  if (!listed) {
    return absl::NotFoundError(
        absl::StrCat(package,
                     ": no such file, and no such installed Debian package; name a program or "
                     "shared object by its path, or an installed package"));
  }
  return absl::StrSplit(*listed, '\n', absl::SkipEmpty());
}

}  // namespace

absl::StatusOr<std::vector<ProgramFile>> CatalogsOf(const std::string& program) {
  std::vector<ProgramFile> files;
  if (program.find('/') != std::string::npos || access(program.c_str(), F_OK) == 0) {
    absl::StatusOr<Catalog> catalog = ReadCatalog(program);
    if (!catalog.ok()) return catalog.status();
    if (!catalog->empty()) files.push_back({program, *std::move(catalog)});
    return files;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, PathsOfPackage(program));
  for (const std::string& path : paths) {
    absl::StatusOr<Catalog> catalog = ReadCatalog(path);
    // Files that are not programs of a supported machine have no catalogue. dpkg also lists files
    // that it was configured not to install, or that were deleted.
    if (absl::IsInvalidArgument(catalog.status()) || absl::IsUnimplemented(catalog.status()) ||
        absl::IsNotFound(catalog.status())) {
      continue;
    }
    if (!catalog.ok()) {
      catalog = Catalog();
      catalog->unclear.emplace_back("the file cannot be read; run this as root");
    }
    if (!catalog->empty()) files.push_back({path, *std::move(catalog)});
  }
  return files;
}

void FailEmpty(const std::string& program, Invocation* invocation) {
  invocation->Fail(absl::NotFoundError(absl::StrCat(
                       program,
                       ": no events; the program does not use libeventheader, or creates its "
                       "events at run time, or was built with a version of libeventheader that "
                       "stores no catalogue; 'eventheader list' shows the tracepoints of running "
                       "programs")),
                   cli::kExitUnmatched);
}

}  // namespace tools
