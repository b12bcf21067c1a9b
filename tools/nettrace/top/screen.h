// The screen of `nettrace top`: handles keys and returns the lines to show. It does not depend on a
// terminal.
#ifndef TOOLS_NETTRACE_TOP_SCREEN_H_
#define TOOLS_NETTRACE_TOP_SCREEN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"
#include "tools/nettrace/top/table.h"

namespace tools::top {

// A key: one of the following constants, or a byte of text.
using Key = int;
inline constexpr Key kEnter = '\r';
inline constexpr Key kEscape = '\x1b';
inline constexpr Key kTab = '\t';
inline constexpr Key kBackspace = 0x7F;
inline constexpr Key kUp = 256;
inline constexpr Key kDown = 257;
inline constexpr Key kRight = 258;
inline constexpr Key kLeft = 259;
inline constexpr Key kPageUp = 260;
inline constexpr Key kPageDown = 261;
inline constexpr Key kHome = 262;
inline constexpr Key kEnd = 263;

struct ScreenSize {
  std::size_t rows = 24;
  std::size_t columns = 80;
};

// Holds the state of the screen. Not thread-safe.
class Screen {
 public:
  // `source` is shown on the first line. `last_events` returns the latest events of the row that
  // the user has opened.
  using LastEvents = std::function<std::vector<std::string>(View view, const std::string& key)>;
  Screen(std::string source, View view, Column column, bool reverse, LastEvents last_events);

  // Handles a key. Returns false if the key ends the program.
  bool OnKey(Key key);
  // Shows these numbers, unless the screen is paused. `state` describes the stream, such as "live".
  void Update(Snapshot snapshot, std::string state);
  bool is_paused() const { return is_paused_; }

  // Returns one line for each row of the screen, each as wide as the screen. Lines have colors; a
  // Terminal without colors leaves them out.
  std::vector<Line> Lines(const ScreenSize& size);

 private:
  void OnTextKey(Key key);
  void OnMove(Key key);
  void SetView(View view);
  // Returns the index of the column that is `step` columns after the one by which rows are sorted.
  // Skips a column that the view does not have.
  std::size_t ColumnAfter(std::size_t step) const;
  void SetColumn(std::size_t index);
  // Filters and sorts the rows of the table. The selected row stays selected if it is still shown.
  void Arrange();
  void RefreshEvents();

  void AppendHead(std::size_t width, std::vector<Line>* lines) const;
  void AppendTable(const ScreenSize& size, std::vector<Line>* lines);
  void AppendEvents(const ScreenSize& size, std::vector<Line>* lines);
  void AppendHelp(std::vector<Line>* lines) const;
  std::string TableHead(std::size_t title_width, const std::vector<ColumnFacts>& columns,
                        std::size_t end) const;
  std::string Footer(std::size_t width) const;

  const std::string source_;
  const LastEvents last_events_;
  std::string state_;
  Snapshot snapshot_;
  View view_;
  std::size_t column_;  // index into kColumns
  bool reverse_;
  bool is_paused_ = false;
  bool is_help_ = false;
  bool is_typing_ = false;  // whether the user types the filter
  std::string filter_;
  std::string filter_before_;  // the filter before the user began to type

  CalmOrder order_;
  std::vector<std::size_t> shown_;  // positions in the view's rows
  std::string selected_;            // key of the selected row
  std::size_t position_ = 0;        // index of the selected row in shown_
  std::size_t top_ = 0;             // position in shown_ of the first row on the screen
  std::size_t page_ = 1;            // number of rows of the table, or events, on the screen

  // The row whose events are shown, and its events.
  std::optional<SnapshotRow> looked_at_;
  std::vector<std::string> events_;
  std::size_t events_back_ = 0;    // number of latest events below the screen
  std::size_t events_column_ = 0;  // columns scrolled to the right
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_SCREEN_H_
