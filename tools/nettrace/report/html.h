// Generates HTML from text that may contain any bytes.
#ifndef TOOLS_NETTRACE_REPORT_HTML_H_
#define TOOLS_NETTRACE_REPORT_HTML_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/base/quantities.h"

namespace tools::report {

// Escapes `text` for use in an HTML element or in a quoted attribute value. base::Printable first
// escapes control characters and replaces invalid UTF-8.
std::string HtmlText(std::string_view text);

// Builds an HTML table with a caption and a row of headings. A table that is wider than the page
// gets a scroll bar.
class HtmlTable {
 public:
  enum class Column : std::uint8_t { kText, kNumber };
  struct Heading {
    std::string_view text;
    Column column = Column::kText;
  };

  // `id` is the id of the table element. `caption` is text, not HTML.
  HtmlTable(std::string_view id, std::string_view caption, const std::vector<Heading>& headings);

  // The following functions add the next cell of a row, and begin a new row after the last column.
  // The first cell of each row is its heading.
  void Text(std::string_view text);
  void Number(std::uint64_t number) { Number(number, base::FormatGrouped(number)); }
  void Duration(std::uint64_t nanoseconds) {
    Number(nanoseconds, base::FormatDuration(nanoseconds));
  }
  // Adds a cell that shows `shown`. The page's script sorts the rows by `number`.
  void Number(std::uint64_t number, std::string_view shown);

  // Returns the HTML of the whole table.
  std::string Finish() &&;

 private:
  void Cell(std::string_view attributes, std::string_view html);

  const std::size_t columns_;
  std::size_t next_ = 0;
  std::string html_;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_HTML_H_
