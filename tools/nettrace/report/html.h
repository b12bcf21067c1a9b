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

// Returns `text`, made Printable, as the text of an element or as a quoted attribute value.
std::string HtmlText(std::string_view text);

// Builds a table with a caption and a row of headings. A table that is too wide scrolls separately.
class HtmlTable {
 public:
  enum class Column : std::uint8_t { kText, kNumber };
  struct Heading {
    std::string_view text;
    Column column = Column::kText;
  };

  // `id` is the element's id; `caption` is plain text.
  HtmlTable(std::string_view id, std::string_view caption, const std::vector<Heading>& headings);

  // The following functions add a cell, from left to right. The first cell of a row is its heading.
  void Text(std::string_view text);
  void Number(std::uint64_t number) { Number(number, base::FormatGrouped(number)); }
  void Duration(std::uint64_t nanoseconds) {
    Number(nanoseconds, base::FormatDuration(nanoseconds));
  }
  // Adds a cell that shows `shown`; rows are sorted by `number`.
  void Number(std::uint64_t number, std::string_view shown);

  std::string Finish() &&;

 private:
  void Cell(std::string_view attributes, std::string_view html);

  const std::size_t columns_;
  std::size_t next_ = 0;
  std::string html_;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_HTML_H_
