// Verifies hostile streams. A stream in which the verifier finds no error must be readable to its
// end, with the number of events that the verifier has counted.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nettrace/reader.h"
#include "nettrace/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  constexpr std::size_t kTables = std::size_t{16} << 20;
  const auto report = nettrace::Verify(std::make_unique<nettrace::MemorySource>(bytes),
                                       {.max_table_bytes = kTables});
  auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
  if (report.ok() != reader.ok()) __builtin_trap();
  if (!report.ok() || report->errors > 0) return 0;
  while ((*reader)->Next() != nettrace::Reader::Step::kEnd) {
  }
  if (!(*reader)->status().ok()) __builtin_trap();
  if ((*reader)->stats().events != report->events) __builtin_trap();
  return 0;
}
