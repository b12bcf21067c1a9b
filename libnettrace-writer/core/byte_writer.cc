#include "libnettrace-writer/core/byte_writer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libnettrace-writer/core/utf.h"

namespace nettrace::internal {

void ByteWriter::Grow(std::size_t size) {
  constexpr std::size_t kFirstCapacity = 256;
  const std::size_t capacity = std::max({kFirstCapacity, 2 * capacity_, size_ + size});
  auto bytes = std::make_unique_for_overwrite<std::byte[]>(capacity);
  if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
  bytes_ = std::move(bytes);
  capacity_ = capacity;
}

void ByteWriter::String(std::string_view text) {
  std::string valid;
  if (ClassifyUtf8(std::as_bytes(std::span(text))) == TextKind::kInvalid) {
    AppendUtf8AsValid(std::as_bytes(std::span(text)), &valid);
    text = valid;
  }
  VarUInt(text.size());
  Bytes(std::as_bytes(std::span(text)));
}

}  // namespace nettrace::internal
