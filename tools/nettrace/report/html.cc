#include "tools/nettrace/report/html.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/text.h"

namespace tools::report {

std::string HtmlText(std::string_view text) {
  std::string html;
  for (const char c : base::Printable(text)) {
    switch (c) {
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '&':
        html += "&amp;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

HtmlTable::HtmlTable(std::string_view id, std::string_view caption,
                     const std::vector<Heading>& headings)
    : columns_(headings.size()) {
  const std::string text = HtmlText(caption);
  html_ = absl::StrCat("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"", text,
                       "\">\n<table id=\"", HtmlText(id), "\">\n<caption>", text,
                       "</caption>\n<thead><tr>");
  for (const auto& [heading, column] : headings) {
    absl::StrAppend(&html_, "<th scope=\"col\"",
                    column == Column::kNumber ? " class=\"number\">" : ">", HtmlText(heading),
                    "</th>");
  }
  html_ += "</tr></thead>\n<tbody>\n";
}

void HtmlTable::Cell(std::string_view attributes, std::string_view html) {
  const bool is_heading = next_ == 0;
  const std::string_view tag = is_heading ? "th" : "td";
  if (is_heading) html_ += "<tr>";
  html_ += '<';
  html_ += tag;
  if (is_heading) html_ += " scope=\"row\"";
  html_ += attributes;
  html_ += '>';
  html_ += html;
  html_ += "</";
  html_ += tag;
  html_ += '>';
  next_ = (next_ + 1) % columns_;
  if (next_ == 0) html_ += "</tr>\n";
}

void HtmlTable::Text(std::string_view text) { Cell("", HtmlText(text)); }

void HtmlTable::Number(std::uint64_t number, std::string_view shown) {
  Cell(absl::StrCat(" class=\"number\" data-value=\"", number, "\""), HtmlText(shown));
}

std::string HtmlTable::Finish() && {
  html_ += "</tbody>\n</table>\n</div>\n";
  return std::move(html_);
}

}  // namespace tools::report
