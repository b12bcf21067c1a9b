// Opens a trace in memory for tests that read it.
#ifndef TESTS_SUPPORT_NETTRACE_OPEN_BYTES_H_
#define TESTS_SUPPORT_NETTRACE_OPEN_BYTES_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "nettrace/reader.h"
#include "nettrace/source.h"

namespace nettrace::testing {

// Returns a reader of `bytes`, which must outlive it. Returns nullptr and fails the test if they
// are not a trace.
inline std::unique_ptr<Reader> OpenBytes(std::span<const std::byte> bytes,
                                         const ReaderOptions& options = {}) {
  auto reader = Reader::Open(std::make_unique<MemorySource>(bytes), options);
  EXPECT_TRUE(reader.ok()) << reader.status();
  return reader.ok() ? *std::move(reader) : nullptr;
}

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_OPEN_BYTES_H_
