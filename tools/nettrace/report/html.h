// HTML with text from files, which may be any bytes.
#ifndef TOOLS_NETTRACE_REPORT_HTML_H_
#define TOOLS_NETTRACE_REPORT_HTML_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tools::report {

// `text` as the text of an element or the value of an attribute in quotes, as Printable shows it.
std::string HtmlText(std::string_view text);

// "1,234,567".
std::string Grouped(std::uint64_t number);
// Three digits and a unit, such as "1.23 ms".
std::string DurationText(std::uint64_t nanoseconds);

// A table with a caption and a row of headings, which scrolls by itself if it is too wide.
class HtmlTable {
 public:
  enum class Column : std::uint8_t { kText, kNumber };
  struct Heading {
    std::string_view text;
    Column column = Column::kText;
  };

  // `id` is that of the element; `caption` is text.
  HtmlTable(std::string_view id, std::string_view caption, const std::vector<Heading>& headings);

  // A cell at a time, from the left; the first one of a row is its heading.
  void Text(std::string_view text);
  void Number(std::uint64_t number) { Number(number, Grouped(number)); }
  void Duration(std::uint64_t nanoseconds) { Number(nanoseconds, DurationText(nanoseconds)); }
  // The number by which rows are sorted, and how it is shown.
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
