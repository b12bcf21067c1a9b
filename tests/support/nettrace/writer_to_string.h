// A writer whose bytes can be examined, and views of bytes.
#ifndef TESTS_SUPPORT_NETTRACE_WRITER_TO_STRING_H_
#define TESTS_SUPPORT_NETTRACE_WRITER_TO_STRING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/writer.h"

namespace nettrace::testing {

inline std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) absl::StrAppend(&hex, absl::Hex(c & 0xFF, absl::kZeroPad2), " ");
  return hex;
}

inline std::span<const std::byte> Span(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::array<std::byte, 16> SixteenFrom(unsigned first) {
  std::array<std::byte, 16> bytes;
  for (unsigned i = 0; i < 16; ++i) bytes[i] = static_cast<std::byte>(first + i);
  return bytes;
}

// Returns the metadata of an event named "N" of the provider "P".
inline EventMetadata SmallMetadata(std::uint32_t id, std::vector<Field> fields = {}) {
  EventMetadata metadata;
  metadata.provider = "P";
  metadata.event_id = id;
  metadata.name = "N";
  metadata.fields = std::move(fields);
  return metadata;
}

// A writer into a string that outlives it.
struct WriterToString {
  explicit WriterToString(const WriterOptions& options = {}, const TraceInfo& info = {})
      : writer(*Writer::Create(
            std::make_unique<CallbackSink>(
                [text = written.get()](std::span<const std::byte> bytes, std::size_t* taken) {
                  text->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                  *taken = bytes.size();
                  return absl::OkStatus();
                }),
            info, options)),
        start(written->size()) {}

  // Returns the bytes after the stream header and the Trace block, as hexadecimal digits.
  std::string blocks() const { return Hex(std::string_view(*written).substr(start)); }

  std::unique_ptr<std::string> written = std::make_unique<std::string>();
  std::unique_ptr<Writer> writer;
  std::size_t start;
};

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_WRITER_TO_STRING_H_
