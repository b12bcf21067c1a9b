// The words of a record of a Fuchsia trace.
#ifndef TOOLS_NETTRACE_EXPORT_FXT_RECORD_WORDS_H_
#define TOOLS_NETTRACE_EXPORT_FXT_RECORD_WORDS_H_

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/numbers.h"
#include "libnettrace-writer/core/little_endian.h"
#include "tools/nettrace/export/fxt/fxt_format.h"

namespace tools::fxt {

// Collects the words of a record after its first one.
class RecordWords {
 public:
  // Maximum number of words of a record, without the first one. The caller must not exceed it; the
  // functions do not check this.
  static constexpr std::size_t kMaxWords = 4094;

  void Clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(words_.data()), size_ * sizeof(std::uint64_t)};
  }

  void Put(std::uint64_t word) { words_[size_++] = nettrace::internal::LittleEndian(word); }
  // Appends the text, padded to whole words.
  void PutStream(std::string_view text) {
    const std::size_t words = WordsOf(text);
    if (words == 0) return;
    words_[size_ + words - 1] = 0;
    std::memcpy(&words_[size_], text.data(), text.size());
    size_ += words;
  }
  // Appends the first word of an argument. The value is in the upper half of this word (`in_head`),
  // or in `words` further words.
  void PutArgumentHead(ArgumentType type, std::uint16_t name, std::uint64_t in_head,
                       std::uint64_t words) {
    Put(static_cast<std::uint64_t>(type) | (1 + words) << 4 | std::uint64_t{name} << 16 |
        in_head << 32);
  }
  void PutWordArgument(ArgumentType type, std::uint16_t name, std::uint64_t value) {
    PutArgumentHead(type, name, 0, 1);
    Put(value);
  }
  void PutText(std::uint16_t name, std::string_view text) {
    PutArgumentHead(ArgumentType::kString, name, text.empty() ? 0 : kInlineString | text.size(),
                    WordsOf(text));
    PutStream(text);
  }
  void PutUnsigned(std::uint16_t name, std::uint64_t number) {
    if (number <= UINT32_MAX) return PutArgumentHead(ArgumentType::kUInt32, name, number, 0);
    PutWordArgument(ArgumentType::kUInt64, name, number);
  }
  void PutSigned(std::uint16_t name, std::int64_t number) {
    if (number >= 0) return PutUnsigned(name, static_cast<std::uint64_t>(number));
    if (number >= INT32_MIN) {
      return PutArgumentHead(ArgumentType::kInt32, name, static_cast<std::uint32_t>(number), 0);
    }
    PutWordArgument(ArgumentType::kInt64, name, static_cast<std::uint64_t>(number));
  }
  // Appends a number that is given as JSON: an integer of up to 64 bits, or a double.
  void PutNumber(std::uint16_t name, std::string_view digits) {
    const char* const begin = digits.data();
    const char* const end = begin + digits.size();
    std::uint64_t positive = 0;
    std::int64_t negative = 0;
    if (const auto read = std::from_chars(begin, end, positive);
        read.ec == std::errc() && read.ptr == end) {
      return PutUnsigned(name, positive);
    }
    if (const auto read = std::from_chars(begin, end, negative);
        read.ec == std::errc() && read.ptr == end) {
      return PutSigned(name, negative);
    }
    double real = 0;
    if (const auto read = std::from_chars(begin, end, real);
        read.ec != std::errc() || read.ptr != end) {
      (void)absl::SimpleAtod(absl::string_view(begin, digits.size()), &real);
    }
    PutWordArgument(ArgumentType::kDouble, name, std::bit_cast<std::uint64_t>(real));
  }

 private:
  static std::size_t WordsOf(std::string_view text) {
    return (text.size() + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
  }

  std::array<std::uint64_t, kMaxWords> words_ = {};
  std::size_t size_ = 0;
};

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_RECORD_WORDS_H_
