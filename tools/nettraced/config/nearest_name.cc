#include "tools/nettraced/config/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace nettraced {
namespace {

// Returns how many letters must be added, removed, replaced, or swapped with the letter after them,
// to turn one text into the other.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;                // row i - 1
  std::vector<std::size_t> row(b.size() + 1, 0);  // row i
  std::vector<std::size_t> next(b.size() + 1);    // row i + 1
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = row[j] + (a[i] == b[j] ? 0 : 1);
      next[j + 1] = std::min({replaced, row[j + 1] + 1, next[j] + 1});
      const bool is_swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (is_swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before = row;
    row.swap(next);
  }
  return row.back();
}

}  // namespace

std::string Nearest(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;
  std::string nearest;
  // Accepts a distance of at most two fifths of the letters of `text`, or of 1 if `text` has fewer
  // than five letters.
  std::size_t least = std::max<std::size_t>(text.size() * 2 / 5, 1) + 1;
  if (text.size() > kLongest) return nearest;
  for (const std::string& name : names) {
    const std::size_t distance = Distance(text, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace nettraced
