// The table of `nettrace top`, on the screen and as text: which columns it has, its lines and their
// colors.
#ifndef TOOLS_NETTRACE_TOP_TABLE_H_
#define TOOLS_NETTRACE_TOP_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"

namespace tools::top {

// A width at which nothing is left out.
inline constexpr std::size_t kAnyWidth = std::numeric_limits<std::size_t>::max();

enum class LineStyle : std::uint8_t { kPlain, kBold, kReverse };

// A colored part of a line.
struct Span {
  std::size_t begin = 0;  // in bytes
  std::size_t end = 0;
  std::string_view color;  // escape sequence that begins the color
  friend bool operator==(const Span&, const Span&) = default;
};

struct Line {
  std::string text;  // without control characters
  LineStyle style = LineStyle::kPlain;
  std::vector<Span> spans = {};  // in ascending order
  friend bool operator==(const Line&, const Line&) = default;
};

// Returns the escape sequence that begins this style on a terminal.
std::string_view SequenceOf(LineStyle style);
// Returns the text of a line with its colors. `plain` is the escape sequence that ends a color.
std::string ColoredText(const Line& line, std::string_view plain);

// Returns the columns that fit beside a title in a table that is `width` characters wide, from left
// to right. The column by which the rows are sorted is always among them. The other columns vanish
// in the order of ColumnFacts::rank, the highest first. The column kSelf is only in the view of
// functions, and in views that are sorted by it.
std::vector<ColumnFacts> FittingColumns(std::size_t width, Column sorted, View view = View::kEvent);
// Returns the width that is left for the titles, at least 12.
std::size_t TitleWidth(std::size_t width, const std::vector<ColumnFacts>& columns);

// Returns the line of a row. The title takes `title_width` columns.
Line RowLine(const std::string& title, std::size_t title_width, const RowNumbers& numbers,
             const std::vector<ColumnFacts>& columns);
// Returns the headings. `mark` is put before the heading of `sorted`.
std::string HeadText(const std::string& title, std::size_t title_width,
                     const std::vector<ColumnFacts>& columns, Column sorted,
                     const std::string& mark);

// Return a line above the table: the totals of events, or the totals of activities. Parts of the
// line that do not fit `width` are left out.
std::string TotalsText(const Snapshot& snapshot, std::size_t width);
std::string ActivitiesText(const Snapshot& snapshot, std::size_t width);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_TABLE_H_
