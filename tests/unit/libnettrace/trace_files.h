// The paths of the tests' files in the source tree.
#ifndef TESTS_UNIT_LIBNETTRACE_TRACE_FILES_H_
#define TESTS_UNIT_LIBNETTRACE_TRACE_FILES_H_

#include <filesystem>

#include "tests/support/source_root.h"

namespace nettrace::testing {

// Returns the path of a file of the fuzzers' corpus.
inline std::filesystem::path CorpusFile(const char* name) {
  return tests::SourcePath("tests/fuzz/nettrace/corpus") / name;
}

// Returns the folder of the files that each break one rule.
inline std::filesystem::path BrokenFolder() {
  return tests::SourcePath("tests/unit/libnettrace/broken");
}

// Returns the folder of the files that the writer must write.
inline std::filesystem::path GoldenFolder() {
  return tests::SourcePath("tests/unit/libnettrace/golden");
}

}  // namespace nettrace::testing

#endif  // TESTS_UNIT_LIBNETTRACE_TRACE_FILES_H_
