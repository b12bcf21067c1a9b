// Bytes in the notation of the tests, in strings and in the files of golden/ and broken/.
#ifndef TESTS_UNIT_LIBNETTRACE_ANNOTATED_BYTES_H_
#define TESTS_UNIT_LIBNETTRACE_ANNOTATED_BYTES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace nettrace::testing {

// Parses "4E 65 'ttrace' 00{4}  # a comment": pairs of hexadecimal digits; text in single quotes; a
// byte and {N} for N repetitions of the byte; comments from # to the end of the line; blanks and
// line breaks anywhere.
inline std::string Bytes(std::string_view text) {
  std::string bytes;
  const auto number = [](std::string_view digits, int base) {
    std::size_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    EXPECT_TRUE(error == std::errc() && stop == end) << "not a number: " << digits;
    return value;
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto take_to = [&text, &i](char last) {
      const std::size_t start = i + 1;
      const std::size_t end = std::min(text.find(last, start), text.size());
      i = end + 1;
      return text.substr(start, end - start);
    };
    if (text[i] == ' ' || text[i] == '\n') {
      ++i;
    } else if (text[i] == '#') {
      take_to('\n');
    } else if (text[i] == '\'') {
      bytes += take_to('\'');
    } else if (text[i] == '{' && !bytes.empty()) {
      bytes.resize(bytes.size() - 1 + number(take_to('}'), 10), bytes.back());
    } else {
      bytes += static_cast<char>(number(text.substr(i, 2), 16));
      i += 2;
    }
  }
  return bytes;
}

inline std::string TextOfFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace nettrace::testing

#endif  // TESTS_UNIT_LIBNETTRACE_ANNOTATED_BYTES_H_
