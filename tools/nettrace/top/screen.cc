#include "tools/nettrace/top/screen.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/text.h"
#include "tools/base/text_width.h"

namespace tools::top {
namespace {

constexpr std::size_t kMaxFilter = 200;  // bytes
constexpr std::size_t kMinSource = 8;    // columns
constexpr std::size_t kEventsStep = 16;  // columns by which a key scrolls the events

constexpr const char* kHelp[] = {
    "p e o t c l f show providers, events, processes, threads, CPUs, levels, functions",
    "Tab           show the next of these",
    "left right    choose the column to sort by; r reverses the order",
    "up down       choose a row; PgUp PgDn Home End",
    "Enter         show the last events of the row; Esc goes back",
    "/             show only rows with this text; Esc shows all",
    "space         pause the screen; counting continues",
    "q             quit",
    "",
    "LEVEL         most severe level of the row's events",
    "ERR/S         events of the levels critical and error per second",
    "TIMED         completed activities that started in this row",
    "P50 P99 MAX   their durations; P50 and P99 are exact to 1.6 %",
    "P50/1M P99/1M P50 and P99 of the last minute; BEFORE: of the minute before it",
    "RATIO         P99/1M divided by its BEFORE; ! marks 2 and more",
    "SELF          events whose stack ends in the function",
    "LOST          lost events that are known to belong to the row",
    "",
    "A narrow screen leaves out columns, but not the one by which rows are sorted.",
    "A row moves only when its value in that column has changed by over a fifth."};

std::string Lower(const std::string& text) { return absl::AsciiStrToLower(text); }

// Returns `text` without its first `columns` columns.
std::string Skip(const std::string& text, std::size_t columns) {
  std::size_t begin = 0;
  for (; begin < text.size() && columns > 0; --columns) {
    ++begin;
    while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  }
  return text.substr(begin);
}

}  // namespace

Screen::Screen(std::string source, View view, Column column, bool reverse, LastEvents last_events)
    : source_(std::move(source)),
      last_events_(std::move(last_events)),
      view_(view),
      column_(static_cast<std::size_t>(column)),
      reverse_(reverse) {}

bool Screen::OnKey(Key key) {
  if (is_typing_) {
    OnTextKey(key);
    return true;
  }
  if (key == 'q') return false;
  if (is_help_) {
    is_help_ = false;
    return true;
  }
  switch (key) {
    case 'p':
      SetView(View::kProvider);
      break;
    case 'e':
      SetView(View::kEvent);
      break;
    case 'o':
      SetView(View::kProcess);
      break;
    case 't':
      SetView(View::kThread);
      break;
    case 'c':
      SetView(View::kCpu);
      break;
    case 'l':
      SetView(View::kLevel);
      break;
    case 'f':
      SetView(View::kFunction);
      break;
    case kTab:
      SetView(kViews[(static_cast<std::size_t>(view_) + 1) % kViews.size()]);
      break;
    case 'r':
      reverse_ = !reverse_;
      Arrange();
      break;
    case ' ':
      is_paused_ = !is_paused_;
      break;
    case '/':
      looked_at_.reset();
      is_typing_ = true;
      filter_before_ = filter_;
      break;
    case 'h':
    case '?':
      is_help_ = true;
      break;
    case kEnter:
    case '\n':
      if (looked_at_) {
        looked_at_.reset();
      } else if (position_ < shown_.size()) {
        looked_at_ = snapshot_.of(view_).rows[shown_[position_]];
        events_back_ = events_column_ = 0;
        events_.clear();
        RefreshEvents();
      }
      break;
    case kEscape:
      if (!looked_at_) filter_.clear();
      looked_at_.reset();
      Arrange();
      break;
    default:
      OnMove(key);
  }
  return true;
}

// Handles a key while the user types the filter.
void Screen::OnTextKey(Key key) {
  if (key == kEnter || key == '\n') {
    is_typing_ = false;
  } else if (key == kEscape) {
    is_typing_ = false;
    filter_ = filter_before_;
  } else if (key == kBackspace || key == '\b') {
    // Removes all bytes of the last character.
    while (!filter_.empty() && (static_cast<unsigned char>(filter_.back()) & 0xC0) == 0x80) {
      filter_.pop_back();
    }
    if (!filter_.empty()) filter_.pop_back();
  } else if (key >= ' ' && key < 256 && filter_.size() < kMaxFilter) {
    filter_ += static_cast<char>(key);
  }
  Arrange();
}

void Screen::OnMove(Key key) {
  if (looked_at_) {
    const std::size_t step = key == kUp || key == kDown ? 1 : page_;
    if (key == kUp || key == kPageUp) events_back_ = std::min(events_back_ + step, events_.size());
    if (key == kDown || key == kPageDown) events_back_ -= std::min(step, events_back_);
    if (key == kRight)
      events_column_ = std::min(events_column_ + kEventsStep, Model::kMaxEventText);
    if (key == kLeft) events_column_ -= std::min(kEventsStep, events_column_);
    if (key == kHome) events_back_ = events_.size();
    if (key == kEnd) events_back_ = 0;
    return;
  }
  if (key == kRight || key == 's') return SetColumn(ColumnAfter(1));
  if (key == kLeft) return SetColumn(ColumnAfter(kColumns.size() - 1));
  const std::size_t last = shown_.empty() ? 0 : shown_.size() - 1;
  if (key == kUp) position_ -= std::min<std::size_t>(1, position_);
  if (key == kDown) position_ = std::min(position_ + 1, last);
  if (key == kPageUp) position_ -= std::min(page_, position_);
  if (key == kPageDown) position_ = std::min(position_ + page_, last);
  if (key == kHome) position_ = 0;
  if (key == kEnd) position_ = last;
  if (position_ < shown_.size()) selected_ = snapshot_.of(view_).rows[shown_[position_]].key;
}

void Screen::Update(Snapshot snapshot, std::string state) {
  state_ = std::move(state);
  if (is_paused_) return;
  snapshot_ = std::move(snapshot);
  Arrange();
  RefreshEvents();
}

void Screen::SetView(View view) {
  looked_at_.reset();
  if (view == view_) return;
  view_ = view;
  order_.Forget();
  selected_.clear();
  position_ = top_ = 0;
  Arrange();
}

std::size_t Screen::ColumnAfter(std::size_t step) const {
  const std::size_t next = (column_ + step) % kColumns.size();
  const bool is_absent = kColumns[next].column == Column::kSelf && view_ != View::kFunction;
  return is_absent ? (next + step) % kColumns.size() : next;
}

void Screen::SetColumn(std::size_t index) {
  column_ = index;
  order_.Forget();
  Arrange();
}

void Screen::Arrange() {
  const std::vector<SnapshotRow>& rows = snapshot_.of(view_).rows;
  shown_ = order_.Sort(rows, kColumns[column_].column, reverse_, snapshot_.is_finished);
  if (!filter_.empty()) {
    const std::string wanted = Lower(filter_);
    std::erase_if(shown_, [&](std::size_t i) {
      return Lower(Title(view_, rows[i].name, /*with_paths=*/true)).find(wanted) ==
             std::string::npos;
    });
  }
  // Until the user selects a row, `selected_` is empty and the cursor stays on the top row.
  const auto selected = std::find_if(shown_.begin(), shown_.end(), [&](std::size_t i) {
    return !selected_.empty() && rows[i].key == selected_;
  });
  if (selected != shown_.end()) {
    position_ = static_cast<std::size_t>(selected - shown_.begin());
  } else {
    position_ = std::min(position_, shown_.empty() ? 0 : shown_.size() - 1);
  }
}

void Screen::RefreshEvents() {
  if (looked_at_) events_ = last_events_(view_, looked_at_->key);
}

std::vector<Line> Screen::Lines(const ScreenSize& size) {
  std::vector<Line> lines;
  AppendHead(size.columns, &lines);
  if (is_help_) {
    AppendHelp(&lines);
  } else if (looked_at_) {
    AppendEvents(size, &lines);
  } else {
    AppendTable(size, &lines);
  }
  lines.resize(std::max<std::size_t>(size.rows, 1) - 1);
  lines.push_back({Footer(size.columns)});
  for (Line& line : lines) line.text = base::Fit(line.text, size.columns);
  return lines;
}

void Screen::AppendHead(std::size_t width, std::vector<Line>* lines) const {
  const std::string state = is_paused_ ? "paused" : state_;
  // A long source is cut, so that the state stays visible.
  const std::size_t others = base::WidthOf(state) + 16;
  const std::size_t left = std::max(kMinSource, width - std::min(width, others));
  const std::string source = base::WidthOf(source_) <= left ? source_ : base::Fit(source_, left);
  std::string first = absl::StrCat("nettrace top  ", source, "  ", state);
  if (snapshot_.last) {
    const std::string time = absl::FormatTime("%H:%M:%SZ", *snapshot_.last, absl::UTCTimeZone());
    const std::size_t used = base::WidthOf(first) + base::WidthOf(time);
    if (used + 2 <= width) first += std::string(width - used, ' ') + time;
  }
  lines->push_back({first, LineStyle::kBold});
  lines->push_back({TotalsText(snapshot_, width)});
  lines->push_back({ActivitiesText(snapshot_, width)});
}

// Returns the heading of the table and marks the sort column. `end` is the position after the last
// visible row.
std::string Screen::TableHead(std::size_t title_width, const std::vector<ColumnFacts>& columns,
                              std::size_t end) const {
  std::string name = absl::StrCat(" ", absl::AsciiStrToUpper(NameOf(view_)));
  if (end - top_ < shown_.size()) {
    absl::StrAppend(&name, " ", top_ + 1, "-", end, " of ", shown_.size());
  }
  if (!filter_.empty()) absl::StrAppend(&name, " /", base::Printable(filter_));
  return HeadText(name, title_width, columns, kColumns[column_].column, reverse_ ? "^" : "v");
}

void Screen::AppendTable(const ScreenSize& size, std::vector<Line>* lines) {
  const std::vector<ColumnFacts> columns =
      FittingColumns(size.columns, kColumns[column_].column, view_);
  const std::size_t title_width = TitleWidth(size.columns, columns);
  const auto append = [&](const std::string& title, const RowNumbers& numbers, LineStyle style) {
    lines->push_back(RowLine(title, title_width, numbers, columns));
    lines->back().style = style;
  };
  const SnapshotView& view = snapshot_.of(view_);
  std::size_t below = 1;  // lines below the rows: the footer, and up to two more
  if (view.other_rows != 0) ++below;
  if (view.lost_unknown != 0) ++below;
  const std::size_t used = lines->size() + 1 + below;
  page_ = size.rows > used ? size.rows - used : 1;
  top_ = std::min(top_, position_);
  if (position_ >= top_ + page_) top_ = position_ - page_ + 1;
  top_ = std::min(top_, shown_.size() - std::min(page_, shown_.size()));
  const std::size_t end = std::min(shown_.size(), top_ + page_);
  lines->push_back({TableHead(title_width, columns, end), LineStyle::kReverse});
  for (std::size_t i = top_; i < end; ++i) {
    const SnapshotRow& row = view.rows[shown_[i]];
    append(absl::StrCat(i == position_ ? ">" : " ", Title(view_, row.name, /*with_paths=*/false)),
           row.numbers, i == position_ ? LineStyle::kBold : LineStyle::kPlain);
  }
  if (view.other_rows != 0)
    append(absl::StrCat(" ", OthersTitle(view)), view.others, LineStyle::kPlain);
  if (view.lost_unknown != 0) {
    lines->push_back(
        {absl::StrFormat(" lost events that belong to no known row: %d", view.lost_unknown)});
  }
}

void Screen::AppendEvents(const ScreenSize& size, std::vector<Line>* lines) {
  lines->push_back(
      {absl::StrCat("Last events of ", Title(view_, looked_at_->name, true)), LineStyle::kReverse});
  page_ = size.rows > lines->size() + 1 ? size.rows - lines->size() - 1 : 1;
  const std::size_t shown = std::min(page_, events_.size());
  events_back_ = std::min(events_back_, events_.size() - shown);
  const std::size_t begin = events_.size() - shown - events_back_;
  for (std::size_t i = begin; i < begin + shown; ++i) {
    lines->push_back({Skip(events_[i], events_column_)});
  }
}

void Screen::AppendHelp(std::vector<Line>* lines) const {
  lines->push_back({"Keys", LineStyle::kReverse});
  for (const char* line : kHelp) lines->push_back({line});
}

std::string Screen::Footer(std::size_t width) const {
  if (is_typing_) return absl::StrCat("show only rows with: ", base::Printable(filter_), "_");
  if (is_help_) return "any key goes back";
  if (looked_at_) return "Esc back  arrows move  space pause  q quit";
  static constexpr std::string_view kLong =
      "p e o t c l f view  arrows sort, row  Enter events  / filter  space pause  ? help  q quit";
  static constexpr std::string_view kShort = "p e o t c l f view  arrows  Enter  /  ? help  q quit";
  return std::string(kLong.size() <= width ? kLong : kShort);
}

}  // namespace tools::top
