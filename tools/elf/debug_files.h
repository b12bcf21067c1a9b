// Finds the file with the names of all functions of a program or shared object. Distributions
// install this file separately, as debug information: the installed program has only the names of
// functions that it exports.
#ifndef TOOLS_ELF_DEBUG_FILES_H_
#define TOOLS_ELF_DEBUG_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "tools/base/prompt_files.h"
#include "tools/elf/elf_file.h"

namespace elf {

// The folder of the debug information that distributions install.
inline constexpr char kDebugFolder[] = "/usr/lib/debug";

// Holds the folders with debug information.
class DebugFiles {
 public:
  // `folders` are searched before kDebugFolder, and must have the same structure as kDebugFolder.
  // Unless `prompt_files` is null, does not read files whose paths lead to a file system that may
  // wait for a user's process. `prompt_files` must outlive this object.
  explicit DebugFiles(std::vector<std::string> folders, base::PromptFiles* prompt_files = nullptr);

  // Returns the folders that the user has named.
  std::vector<std::string> named() const { return {folders_.begin(), folders_.end() - 1}; }

  // Returns the file FOLDER/.build-id/NN/NNN.debug with this build id (bytes, not digits), if it
  // has a complete table of symbols.
  std::optional<ElfFile> FindByBuildId(const std::string& build_id) const;
  // Returns the file that the debug link of `file` names, if it has a complete table of symbols.
  // `path` is the path of `file`. For the path /usr/bin/x, searches /usr/bin/, /usr/bin/.debug/,
  // and then, for each folder FOLDER with debug information, FOLDER/usr/bin/ and FOLDER/. The
  // result has the build id of `file`. If `file` has no build id, the result has the checksum of
  // the link, and every user may read it.
  std::optional<ElfFile> FindByLink(const ElfFile& file, const std::string& path) const;

 private:
  std::vector<std::string> folders_;
  base::PromptFiles* const prompt_files_;
};

// Returns whether every user of the machine may read the file: its mode and those of its folders
// permit it.
bool IsPublic(int fd);

}  // namespace elf

#endif  // TOOLS_ELF_DEBUG_FILES_H_
