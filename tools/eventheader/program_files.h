// The catalogues of what a command line names: a program, or all programs of a package.
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

// `program` is the path of an ELF file, with a '/' in it or of a file that is there, or else the
// name of a Debian package that is installed. Files without a catalogue are left out. Errors are
// those of ReadCatalog; NotFound: there is neither such a file nor such a package.
absl::StatusOr<std::vector<ProgramFile>> CatalogsOf(const std::string& program);

// Says that none of the program's files has a catalogue.
void FailEmpty(const std::string& program, Invocation* invocation);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_PROGRAM_FILES_H_
