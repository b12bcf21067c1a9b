#include "tools/nettraced/config/settings_errors.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/text.h"

namespace nettraced {

void SettingsErrors::Add(const std::string& file, std::uint32_t line, std::uint32_t column,
                         const std::string& what) {
  ++count_;
  if (!HasFile(file)) files_.push_back(file);
  if (errors_.size() == kKept) return;
  const auto index = std::find(files_.begin(), files_.end(), file) - files_.begin();
  errors_.push_back({static_cast<std::size_t>(index), line, column, what});
}

bool SettingsErrors::HasFile(const std::string& file) const {
  return std::find(files_.begin(), files_.end(), file) != files_.end();
}

absl::Status SettingsErrors::ToStatus() const {
  if (errors_.empty()) return absl::OkStatus();
  std::vector<const Error*> sorted;
  for (const Error& error : errors_) sorted.push_back(&error);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Error* a, const Error* b) {
    return std::tie(a->file, a->line, a->column) < std::tie(b->file, b->line, b->column);
  });
  std::vector<std::string> lines;
  for (const Error* error : sorted) {
    if (lines.size() == kShown) break;
    std::string place = base::Printable(files_[error->file]);
    if (error->line != 0) absl::StrAppend(&place, ":", error->line, ":", error->column);
    lines.push_back(absl::StrCat(place, ": ", error->text));
  }
  if (count_ > lines.size()) lines.push_back(absl::StrCat("and ", count_ - lines.size(), " more"));
  return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
}

}  // namespace nettraced
