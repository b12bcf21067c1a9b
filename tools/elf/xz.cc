#include "tools/elf/xz.h"

#include <lzma.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <vector>

namespace elf {
namespace {

constexpr std::size_t kOutputChunk = std::size_t{64} << 10;

bool WriteAll(int fd, const std::uint8_t* data, std::size_t size) {
  while (size != 0) {
    const ssize_t wrote = write(fd, data, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    data += wrote;
    size -= static_cast<std::size_t>(wrote);
  }
  return true;
}

}  // namespace

base::UniqueFd DecompressXz(std::span<const std::byte> data) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxXzMemory, 0) != LZMA_OK) return {};
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> end(&stream, lzma_end);
  base::UniqueFd fd(memfd_create("decompressed", MFD_CLOEXEC));
  if (!fd.valid()) return {};
  std::vector<std::uint8_t> buffer(kOutputChunk);
  stream.next_in = reinterpret_cast<const std::uint8_t*>(data.data());
  stream.avail_in = data.size();
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    result = lzma_code(&stream, LZMA_FINISH);
    if ((result != LZMA_OK && result != LZMA_STREAM_END) || stream.total_out > kMaxDecompressed ||
        !WriteAll(fd.get(), buffer.data(), buffer.size() - stream.avail_out)) {
      return {};
    }
  }
  return fd;
}

}  // namespace elf
