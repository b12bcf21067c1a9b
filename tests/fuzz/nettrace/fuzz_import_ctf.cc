// Imports hostile CTF traces. The written file must have no errors. The input has four parts: the
// size of the metadata in 4 bytes; the metadata; a byte that says where the rest is divided, in
// 256ths; and the rest, which is two streams.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/nettrace/import_checks.h"
#include "tools/nettrace/import/byte_file.h"
#include "tools/nettrace/import/ctf/ctf_importer.h"

namespace {

using tools::importing::MemoryFile;

tools::importing::ctf::NamedFile File(const char* name, std::span<const std::byte> bytes) {
  return {name, std::make_unique<MemoryFile>(std::vector<std::byte>(bytes.begin(), bytes.end()))};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  std::span<const std::byte> rest = std::as_bytes(std::span(data, size));
  std::uint32_t metadata_size = 0;
  std::memcpy(&metadata_size, rest.data(), sizeof metadata_size);
  rest = rest.subspan(sizeof metadata_size);
  metadata_size = std::min<std::uint32_t>(metadata_size, static_cast<std::uint32_t>(rest.size()));
  const std::string_view metadata(reinterpret_cast<const char*>(rest.data()), metadata_size);
  rest = rest.subspan(metadata_size);
  std::size_t parted = 0;
  if (!rest.empty()) {
    parted = (rest.size() - 1) * std::to_integer<std::size_t>(rest[0]) / 256;
    rest = rest.subspan(1);
  }
  std::vector<tools::importing::ctf::NamedFile> streams;
  streams.push_back(File("one", rest.first(parted)));
  streams.push_back(File("other", rest.subspan(parted)));
  tools::importing::ctf::CtfImporter importer;
  if (!importer.AddTrace(metadata, std::move(streams)).ok()) return 0;
  std::vector<std::byte> file;
  if (!importer.Run(std::make_unique<nettrace::testing::KeepingSink>(&file)).ok()) {
    __builtin_trap();
  }
  nettrace::testing::RequireRightFile(file, importer.output().events());
  return 0;
}
