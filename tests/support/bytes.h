// Bytes in memory that tests read and write.
#ifndef TESTS_SUPPORT_BYTES_H_
#define TESTS_SUPPORT_BYTES_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/sink.h"

namespace tests {

// Returns the bytes of `text`.
inline std::vector<std::byte> ToBytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Appends to bytes that outlive the sink.
class BytesSink : public nettrace::Sink {
 public:
  explicit BytesSink(std::vector<std::byte>* bytes) : bytes_(bytes) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte>* bytes_;
};

}  // namespace tests

#endif  // TESTS_SUPPORT_BYTES_H_
