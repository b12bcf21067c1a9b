// Finds files of the source tree at run time. A compiled-in path would make the object files of two
// checkouts differ, so that ccache could not share them.
#ifndef TESTS_SUPPORT_SOURCE_ROOT_H_
#define TESTS_SUPPORT_SOURCE_ROOT_H_

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace tests {

// Returns the absolute path of `relative`, a path below the source tree. Throws, which fails the
// test, if the environment variable EVENTHEADER_SOURCE_ROOT is unset.
inline std::filesystem::path SourcePath(const std::filesystem::path& relative) {
  const char* const root = std::getenv("EVENTHEADER_SOURCE_ROOT");
  if (root == nullptr) {
    throw std::runtime_error(
        "EVENTHEADER_SOURCE_ROOT: not set; run this program by `meson test`, or set the variable "
        "to the path of the source tree");
  }
  return std::filesystem::path(root) / relative;
}

}  // namespace tests

#endif  // TESTS_SUPPORT_SOURCE_ROOT_H_
