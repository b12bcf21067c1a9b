#include "tools/nettrace/top/table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/quantities.h"
#include "tools/base/text_width.h"
#include "tools/trace/levels.h"

namespace tools::top {
namespace {

constexpr std::size_t kMinTitle = 12;  // columns of the terminal
// Wanted width of titles, in columns of the terminal. Columns of the table are left out if the
// titles would get less width than this.
constexpr std::size_t kWantedTitle = 20;

// Lowest ratio that has the color of a warning. A marked ratio has the color of an error.
constexpr double kSlowerRatio = 1.5;

std::size_t WidthOfColumn(const ColumnFacts& facts) {
  return static_cast<std::size_t>(facts.width) + 1;
}

std::string_view ColorOfRatio(const RowNumbers& numbers) {
  if (IsMarked(numbers)) return trace::LevelColor(2);
  const std::optional<double> ratio = P99Ratio(numbers);
  if (HasEnoughForMark(numbers) && ratio && *ratio >= kSlowerRatio) return trace::LevelColor(3);
  return "";
}

std::string_view ColorOfCell(const RowNumbers& numbers, Column column) {
  switch (column) {
    case Column::kLevel:
      return trace::LevelColor(numbers.level);
    case Column::kErrors:
      return numbers.error_rate > 0 ? trace::LevelColor(2) : "";
    case Column::kRatio:
      return ColorOfRatio(numbers);
    default:
      return "";
  }
}

}  // namespace

std::string_view SequenceOf(LineStyle style) {
  switch (style) {
    case LineStyle::kPlain:
      return trace::kPlainText;
    case LineStyle::kBold:
      return "\x1b[0;1m";
    case LineStyle::kReverse:
      return "\x1b[0;7m";
  }
  return "";
}

std::string ColoredText(const Line& line, std::string_view plain) {
  std::string text;
  std::size_t at = 0;
  for (const Span& span : line.spans) {
    if (span.end > line.text.size()) break;
    text.append(line.text, at, span.begin - at).append(span.color);
    text.append(line.text, span.begin, span.end - span.begin).append(plain);
    at = span.end;
  }
  return text.append(line.text, at);
}

std::vector<ColumnFacts> FittingColumns(std::size_t width, Column sorted, View view) {
  std::vector<ColumnFacts> columns(kColumns.begin(), kColumns.end());
  const auto rank = [sorted](const ColumnFacts& facts) {
    if (facts.column == sorted) return -1;
    return facts.column == Column::kSelf ? 0 : facts.rank;
  };
  if (view != View::kFunction && sorted != Column::kSelf) {
    std::erase_if(columns, [](const ColumnFacts& facts) { return facts.column == Column::kSelf; });
  }
  std::sort(columns.begin(), columns.end(),
            [&](const ColumnFacts& a, const ColumnFacts& b) { return rank(a) < rank(b); });
  std::size_t used = kWantedTitle + WidthOfColumn(columns.front());
  std::size_t count = 1;
  while (count < columns.size() && width - std::min(width, used) >= WidthOfColumn(columns[count])) {
    used += WidthOfColumn(columns[count++]);
  }
  columns.resize(count);
  std::sort(columns.begin(), columns.end(),
            [](const ColumnFacts& a, const ColumnFacts& b) { return a.column < b.column; });
  return columns;
}

std::size_t TitleWidth(std::size_t width, const std::vector<ColumnFacts>& columns) {
  std::size_t used = 0;
  for (const ColumnFacts& facts : columns) used += WidthOfColumn(facts);
  return std::max(kMinTitle, width - std::min(width, used));
}

Line RowLine(const std::string& title, std::size_t title_width, const RowNumbers& numbers,
             const std::vector<ColumnFacts>& columns) {
  Line line = {base::Fit(title, title_width)};
  for (const ColumnFacts& facts : columns) {
    const std::string cell = Cell(numbers, facts);
    absl::StrAppendFormat(&line.text, " %*s", facts.width, cell);
    if (const std::string_view color = ColorOfCell(numbers, facts.column); !color.empty()) {
      line.spans.push_back({line.text.size() - cell.size(), line.text.size(), color});
    }
  }
  return line;
}

std::string HeadText(const std::string& title, std::size_t title_width,
                     const std::vector<ColumnFacts>& columns, Column sorted,
                     const std::string& mark) {
  std::string head = base::Fit(title, title_width);
  for (const ColumnFacts& facts : columns) {
    absl::StrAppendFormat(&head, " %*s", facts.width,
                          facts.column == sorted ? mark + facts.head : facts.head);
  }
  return head;
}

std::string TotalsText(const Snapshot& snapshot, std::size_t width) {
  const RowNumbers& total = snapshot.total;
  const std::string begin =
      absl::StrFormat("events %d (%s/s)  errors %d (%s/s)", total.events, FormatRate(total.rate),
                      total.errors, FormatErrorRate(total.error_rate));
  const std::string bytes = absl::StrFormat(
      "  bytes %s (%s/s)", base::FormatNarrowBytes(total.bytes),
      base::FormatNarrowBytes(static_cast<std::uint64_t>(std::llround(snapshot.byte_rate))));
  const std::string end = absl::StrFormat("  lost %d", total.lost);
  std::string text = absl::StrCat(begin, bytes, end);
  return text.size() <= width ? text : absl::StrCat(begin, end);
}

std::string ActivitiesText(const Snapshot& snapshot, std::size_t width) {
  const RowNumbers& total = snapshot.total;
  std::string text = absl::StrFormat("activities %d stopped", total.durations);
  if (total.durations != 0) {
    absl::StrAppendFormat(&text, " (p50 %s, p99 %s, max %s)", base::FormatNarrowDuration(total.p50),
                          base::FormatNarrowDuration(total.p99),
                          base::FormatNarrowDuration(total.max));
  }
  absl::StrAppendFormat(&text, ", %d open", snapshot.open);
  if (snapshot.unmatched != 0) {
    absl::StrAppendFormat(&text, ", %d without a start", snapshot.unmatched);
  }
  if (snapshot.forgotten != 0) absl::StrAppendFormat(&text, ", %d discarded", snapshot.forgotten);
  if (total.minute.durations != 0 && total.minute_before.durations != 0) {
    const std::string minute = absl::StrFormat("; p99 %s last minute, %s before",
                                               base::FormatNarrowDuration(total.minute.p99),
                                               base::FormatNarrowDuration(total.minute_before.p99));
    if (text.size() + minute.size() <= width) text += minute;
  }
  return text;
}

}  // namespace tools::top
