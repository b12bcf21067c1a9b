#include "nettrace/sink.h"

namespace nettrace {

absl::Status MemorySink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  *taken = bytes.size();
  return absl::OkStatus();
}

}  // namespace nettrace
