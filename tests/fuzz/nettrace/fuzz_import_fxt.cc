// Imports hostile Fuchsia traces. The written file must have no errors.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "nettrace/source.h"
#include "tests/fuzz/nettrace/import_checks.h"
#include "tools/nettrace/import/fxt/fxt_importer.h"
#include "tools/nettrace/import/fxt/fxt_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto reader = tools::importing::fxt::FxtReader::Open(
      std::make_unique<nettrace::MemorySource>(std::as_bytes(std::span(data, size))));
  if (!reader.ok()) return 0;
  tools::importing::fxt::FxtImporter importer(*std::move(reader));
  std::vector<std::byte> file;
  if (!importer.Run(std::make_unique<nettrace::testing::KeepingSink>(&file)).ok()) {
    __builtin_trap();
  }
  nettrace::testing::RequireRightFile(file, importer.output().events());
  return 0;
}
