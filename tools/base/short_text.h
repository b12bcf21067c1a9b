// Puts together short texts of a bounded size, in a fraction of the time that
// appending each part to a string takes.
#ifndef TOOLS_BASE_SHORT_TEXT_H_
#define TOOLS_BASE_SHORT_TEXT_H_

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "nettrace/schema.h"
#include "tools/base/text.h"

namespace base {

// A text of at most `kSize` bytes. The caller must not add more.
template <std::size_t kSize>
class ShortText {
 public:
  std::string_view text() const { return {bytes_.data(), size_}; }

  // Adds a string literal.
  template <std::size_t kLength>
  void Add(const char (&literal)[kLength]) {
    std::memcpy(&bytes_[size_], literal, kLength - 1);
    size_ += kLength - 1;
  }
  void Add(char c) { bytes_[size_++] = c; }
  void AddNumber(std::uint64_t number, int base = 10) {
    char* const begin = bytes_.data();
    size_ = static_cast<std::size_t>(std::to_chars(begin + size_, begin + kSize, number, base).ptr -
                                     begin);
  }
  void AddGuid(const nettrace::Guid& guid) {
    const std::string text = FormatGuid(guid);
    size_ += text.copy(&bytes_[size_], kSize - size_);
  }

 private:
  std::array<char, kSize> bytes_;
  std::size_t size_ = 0;
};

}  // namespace base

#endif  // TOOLS_BASE_SHORT_TEXT_H_
