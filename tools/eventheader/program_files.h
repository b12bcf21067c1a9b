// The catalogues of a program, or of all programs of a package, that the user names on the command
// line. A catalogue is the list of events in an ELF file (elf_catalog.h).
#ifndef TOOLS_EVENTHEADER_PROGRAM_FILES_H_
#define TOOLS_EVENTHEADER_PROGRAM_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/eventheader/elf_catalog.h"

namespace tools {

struct Invocation;

struct ProgramFile {
  std::string path;
  Catalog catalog;  // not empty
};

// Reads the catalogues of `program`, which is a path if it contains '/' or names an existing file.
// Otherwise, `program` is the name of an installed Debian package. Files without a catalogue are
// left out. For a path, fails like ReadCatalog. For a package, fails only with NotFound if it is
// not installed; Catalog::unclear reports files that cannot be read.
absl::StatusOr<std::vector<ProgramFile>> CatalogsOf(const std::string& program);

// Fails the invocation, because none of the program's files has a catalogue.
void FailEmpty(const std::string& program, Invocation* invocation);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_PROGRAM_FILES_H_
