// Checks of the file that every import must write, whatever its input.
#ifndef TESTS_FUZZ_NETTRACE_IMPORT_CHECKS_H_
#define TESTS_FUZZ_NETTRACE_IMPORT_CHECKS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/source.h"
#include "nettrace/verifier.h"

namespace nettrace::testing {

// Appends to a vector that outlives the sink.
class KeepingSink : public Sink {
 public:
  explicit KeepingSink(std::vector<std::byte>* bytes) : bytes_(bytes) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte>* bytes_;
};

// Requires that the file has no errors, and at least this many events.
inline void RequireRightFile(std::span<const std::byte> file, std::uint64_t events) {
  const auto report = Verify(std::make_unique<MemorySource>(file));
  if (!report.ok() || report->errors > 0 || report->events < events) __builtin_trap();
}

}  // namespace nettrace::testing

#endif  // TESTS_FUZZ_NETTRACE_IMPORT_CHECKS_H_
