// Tests the screen of `nettrace top` without a terminal: its contents, the effects of keys, the
// order of rows, and the keys in a terminal's bytes. tests/programs tests it in a terminal.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tools/base/text_width.h"
#include "tools/nettrace/top/numbers.h"
#include "tools/nettrace/top/screen.h"
#include "tools/nettrace/top/terminal.h"

namespace tools::top {
namespace {

SnapshotRow MakeRow(const std::string& name, double rate, std::uint64_t events) {
  SnapshotRow row;
  row.key = row.name.name = name;
  row.name.provider = "P";
  row.numbers.rate = rate;
  row.numbers.events = events;
  return row;
}

class ScreenTest : public ::testing::Test {
 protected:
  ScreenTest()
      : screen_("source", View::kEvent, Column::kRate, false,
                [this](View /*view*/, const std::string& key) {
                  asked_ = key;
                  return std::vector<std::string>{"event of " + key};
                }) {}

  void Show(std::vector<SnapshotRow> rows) {
    Snapshot snapshot;
    snapshot.views[static_cast<std::size_t>(View::kEvent)].rows = std::move(rows);
    snapshot.views[static_cast<std::size_t>(View::kThread)].lost_unknown = 17;
    screen_.Update(std::move(snapshot), "live");
  }
  void Press(const std::string& keys) {
    for (const char key : keys) EXPECT_TRUE(screen_.OnKey(static_cast<unsigned char>(key)));
  }
  std::vector<std::string> Lines(const ScreenSize& size = {10, 90}) {
    std::vector<std::string> lines;
    for (const Line& line : screen_.Lines(size)) {
      EXPECT_EQ(base::WidthOf(line.text), size.columns) << line.text;
      lines.push_back(line.text.substr(0, line.text.find_last_not_of(' ') + 1));
    }
    EXPECT_EQ(lines.size(), size.rows);
    return lines;
  }
  // Returns the first words of the rows of the table.
  std::string Names() {
    const std::vector<std::string> lines = Lines();
    std::string names;
    for (std::size_t i = 4; i + 1 < lines.size() && !lines[i].empty(); ++i) {
      names += (names.empty() ? "" : " ") + lines[i].substr(0, lines[i].find(' ', 1));
    }
    return names;
  }

  std::string asked_;
  Screen screen_;
};

TEST_F(ScreenTest, RowsAreSortedAndMoveOnlyWhenMuchChanges) {
  Show({MakeRow("a", 100, 1), MakeRow("b", 90, 2), MakeRow("c", 10, 3)});
  EXPECT_EQ(Names(), ">a  b  c");
  Show({MakeRow("a", 90, 1), MakeRow("b", 100, 2), MakeRow("c", 10, 3)});
  EXPECT_EQ(Names(), ">a  b  c");
  Show({MakeRow("a", 90, 1), MakeRow("b", 100, 2), MakeRow("c", 200, 3)});
  EXPECT_EQ(Names(), ">c  a  b");
  screen_.OnKey(kRight);
  EXPECT_EQ(Names(), ">c  b  a");
  Press("r");
  EXPECT_EQ(Names(), ">a  b  c");
}

TEST_F(ScreenTest, SelectedRowStaysSelectedWhenItMoves) {
  Show({MakeRow("a", 100, 1), MakeRow("b", 90, 2)});
  screen_.OnKey(kDown);
  EXPECT_EQ(Names(), " a >b");
  Show({MakeRow("a", 100, 1), MakeRow("b", 500, 2)});
  EXPECT_EQ(Names(), ">b  a");
  screen_.OnKey(kEnter);
  EXPECT_EQ(asked_, "b");
  EXPECT_EQ(Lines()[3], "Last events of b  P");
  EXPECT_EQ(Lines()[4], "event of b");
  screen_.OnKey(kEscape);
  EXPECT_EQ(Names(), ">b  a");
}

TEST_F(ScreenTest, AFilterShowsOnlyRowsWithItsText) {
  Show({MakeRow("Request", 3, 1), MakeRow("Query", 2, 2), MakeRow("Requeue", 1, 2)});
  Press("/reQuE");
  EXPECT_EQ(Lines().back(), "show only rows with: reQuE_");
  EXPECT_EQ(Names(), ">Request  Requeue");
  screen_.OnKey(kBackspace);
  Press("x\x7f\r");
  EXPECT_NE(Lines()[3].find("EVENT /reQu"), std::string::npos) << Lines()[3];
  screen_.OnKey(kEscape);
  EXPECT_EQ(Names(), ">Request  Query  Requeue");
}

TEST_F(ScreenTest, WhileHeldThePictureDoesNotChange) {
  Show({MakeRow("a", 1, 1)});
  Press(" ");
  Show({MakeRow("b", 1, 1)});
  EXPECT_EQ(Names(), ">a");
  EXPECT_NE(Lines()[0].find("paused"), std::string::npos);
  Press(" ");
  Show({MakeRow("b", 1, 1)});
  EXPECT_EQ(Names(), ">b");
}

TEST_F(ScreenTest, AllSizesAreFilledAndNothingMore) {
  std::vector<SnapshotRow> rows;
  rows.reserve(30);
  for (int i = 0; i < 30; ++i) rows.push_back(MakeRow("\u65e5\u672c" + std::to_string(i), i, 1));
  Show(std::move(rows));
  for (const std::size_t rows_shown : {1U, 2U, 5U, 24U, 100U}) {
    for (const std::size_t columns : {1U, 13U, 80U, 300U}) Lines({rows_shown, columns});
  }
  Lines();
  for (int i = 0; i < 40; ++i) screen_.OnKey(kDown);
  EXPECT_EQ(Lines()[8].substr(0, 8), ">\u65e5\u672c0");
  EXPECT_EQ(Lines()[3].substr(0, 20), " EVENT 26-30 of 30  ");
  screen_.OnKey(kHome);
  EXPECT_EQ(Lines()[4].substr(0, 9), ">\u65e5\u672c29");
  Press("t");
  EXPECT_EQ(Lines()[4], " lost of unknown rows: 17");
  Press("?");
  EXPECT_EQ(Lines({30, 90})[3], "Keys");
  Press("x");
  EXPECT_FALSE(screen_.OnKey('q'));
}

TEST_F(ScreenTest, NamesCannotControlTheTerminal) {
  Show({MakeRow("\x1b[2J\xff", 1, 1)});
  for (const std::string& line : Lines()) EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(Lines()[4].find("\\u001b[2J\ufffd"), std::string::npos) << Lines()[4];
}

TEST(Numbers, KeepToTheirWidths) {
  EXPECT_EQ(FormatCount(999'999, 6), "999999");
  EXPECT_EQ(FormatCount(1'000'000, 6), "1.00M");
  EXPECT_EQ(FormatCount(999'999'999'999, 6), "1.00T");
  EXPECT_EQ(FormatCount(~std::uint64_t{0}, 6), "18.4E");
  EXPECT_EQ(FormatRate(0.04), "0.0");
  EXPECT_EQ(FormatRate(9999.94), "9999.9");
  EXPECT_EQ(FormatRate(9999.96), "10000");
  EXPECT_EQ(FormatRate(123'456'789), "123M");
}

TEST(Numbers, TextFitsByTheColumnsOfATerminal) {
  EXPECT_EQ(base::Fit("abc", 5), "abc  ");
  EXPECT_EQ(base::Fit("abcdef", 4), "abc~");
  EXPECT_EQ(base::Fit("\u65e5\u672c\u8a9e", 6), "\u65e5\u672c\u8a9e");
  EXPECT_EQ(base::Fit("\u65e5\u672c\u8a9e", 5), "\u65e5\u672c~");
  EXPECT_EQ(base::Fit("\u65e5\u672c\u8a9e", 4), "\u65e5~ ");
  EXPECT_EQ(base::Fit("e\u0301x", 2), "e\u0301x");
  EXPECT_EQ(base::Fit("abc", 0), "");
}

TEST(Keys, AreReadFromBytes) {
  std::string bytes = "a\x1b[A\x1b[6~\x1bOD\x1b[999x\r\x1b[";
  std::vector<Key> keys;
  ParseKeys(&bytes, /*is_all=*/false, &keys);
  EXPECT_EQ(keys, (std::vector<Key>{'a', kUp, kPageDown, kLeft, kEnter}));
  EXPECT_EQ(bytes, "\x1b[");
  bytes += "B\x1b";
  keys.clear();
  ParseKeys(&bytes, /*is_all=*/false, &keys);
  EXPECT_EQ(keys, std::vector<Key>{kDown});
  ParseKeys(&bytes, /*is_all=*/true, &keys);
  EXPECT_EQ(keys, (std::vector<Key>{kDown, kEscape}));
  EXPECT_EQ(bytes, "");
}

}  // namespace
}  // namespace tools::top
