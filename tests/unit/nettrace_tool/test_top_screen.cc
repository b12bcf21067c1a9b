// Tests the screen of `nettrace top` without a terminal: its contents, the effects of keys, the
// order of rows, and the keys in a terminal's bytes. tests/programs tests it in a terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/base/text_width.h"
#include "tools/nettrace/top/numbers.h"
#include "tools/nettrace/top/screen.h"
#include "tools/nettrace/top/table.h"
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
  EXPECT_EQ(Lines()[4], " lost events that belong to no known row: 17");
  Press("?");
  EXPECT_EQ(Lines({30, 90})[3], "Keys");
  Press("x");
  EXPECT_FALSE(screen_.OnKey('q'));
}

TEST(Screen, CutsALongSourceBeforeTheState) {
  Screen screen(std::string(100, 's'), View::kEvent, Column::kRate, false, nullptr);
  screen.Update({}, "reading");
  EXPECT_EQ(screen.Lines({5, 40})[0].text, "nettrace top  ssssssssssssssss~  reading");
}

TEST_F(ScreenTest, NamesCannotControlTheTerminal) {
  Show({MakeRow("\x1b[2J\xff", 1, 1)});
  for (const std::string& line : Lines()) EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_NE(Lines()[4].find("\\u001b[2J\ufffd"), std::string::npos) << Lines()[4];
}

// Returns the headings of a table of this width, joined by spaces.
std::string Heads(std::size_t width, Column sorted = Column::kRate, View view = View::kEvent) {
  std::string heads;
  for (const ColumnFacts& facts : FittingColumns(width, sorted, view)) {
    heads += (heads.empty() ? "" : " ") + std::string(facts.head);
  }
  return heads;
}

TEST(Table, ColumnsVanishOnNarrowScreens) {
  EXPECT_EQ(
      Heads(kAnyWidth),
      "LEVEL RATE/S EVENTS ERR/S BYTES LOST TIMED P50 P99 MAX P50/1M BEFORE P99/1M BEFORE RATIO");
  EXPECT_EQ(Heads(120), "LEVEL RATE/S EVENTS ERR/S LOST TIMED P50 P99 P50/1M P99/1M BEFORE RATIO");
  EXPECT_EQ(Heads(80), "LEVEL RATE/S EVENTS ERR/S P99/1M BEFORE RATIO");
  EXPECT_EQ(Heads(60), "LEVEL RATE/S ERR/S P99/1M RATIO");
  EXPECT_EQ(Heads(40), "LEVEL RATE/S");
  EXPECT_EQ(Heads(1), "RATE/S");
  // The column by which the rows are sorted stays.
  EXPECT_EQ(Heads(60, Column::kBytes), "LEVEL RATE/S ERR/S BYTES P99/1M");
  EXPECT_EQ(Heads(1, Column::kBytes), "BYTES");
  // Only the view of functions has SELF, the number of events whose stacks end in a function.
  EXPECT_EQ(Heads(60, Column::kRate, View::kFunction), "LEVEL RATE/S SELF ERR/S");
  EXPECT_EQ(Heads(1, Column::kRate, View::kFunction), "RATE/S");
  EXPECT_EQ(Heads(1, Column::kSelf), "SELF");
  for (std::size_t width = 0; width < 200; ++width) {
    for (const ColumnFacts& facts : kColumns) {
      const std::vector<ColumnFacts> columns = FittingColumns(width, facts.column);
      EXPECT_NE(std::find_if(columns.begin(), columns.end(),
                             [&](const ColumnFacts& c) { return c.column == facts.column; }),
                columns.end());
      if (width < 30) continue;
      EXPECT_GE(TitleWidth(width, columns), 20U) << width;
    }
  }
}

TEST(Table, EachColumnHasItsPlaceAndRank) {
  std::vector<bool> ranks(kColumns.size() + 1);
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kColumns[i].column), i);
    EXPECT_LT(std::string_view(kColumns[i].head).size(),
              static_cast<std::size_t>(kColumns[i].width))
        << "a mark of the sort column must fit";
    ranks[static_cast<std::size_t>(kColumns[i].rank)] = true;
  }
  EXPECT_EQ(std::count(ranks.begin(), ranks.end(), true), static_cast<long>(kColumns.size()));
}

RowNumbers WithMinutes(std::uint64_t count, std::uint64_t last, std::uint64_t before) {
  RowNumbers numbers;
  numbers.level = 2;
  numbers.error_rate = 1.5;
  numbers.minute = {count, last, last};
  numbers.minute_before = {count, before, before};
  return numbers;
}

std::string Ratio(const RowNumbers& numbers) {
  return Cell(numbers, kColumns[static_cast<std::size_t>(Column::kRatio)]);
}

TEST(Table, RatiosAreMarkedIfThereAreEnoughDurations) {
  EXPECT_EQ(Ratio(WithMinutes(20, 3000, 1500)), "x2.00!");
  EXPECT_EQ(Ratio(WithMinutes(19, 3000, 1500)), "x2.00");
  EXPECT_EQ(Ratio(WithMinutes(20, 2998, 1500)), "x2.00");
  EXPECT_EQ(Ratio(WithMinutes(20, 1000, 2000)), "x0.50");
  EXPECT_EQ(Ratio(WithMinutes(20, 150'000, 1500)), "x100!");
  EXPECT_EQ(Ratio(WithMinutes(20, 1'500'000'000, 1)), "x9999!");
  EXPECT_EQ(Ratio(WithMinutes(20, 10, 0)), "-");
  EXPECT_EQ(Ratio(WithMinutes(0, 0, 0)), "-");
  EXPECT_EQ(Ratio(RowNumbers()), "-");
}

TEST(Table, CellsHaveTheColorsOfTheirLevels) {
  const std::vector<ColumnFacts> columns = FittingColumns(60, Column::kRate);
  const Line line = RowLine("A", 20, WithMinutes(20, 3000, 1500), columns);
  EXPECT_EQ(line.text, "A                       error      0.0    1.5  3.00us x2.00!");
  EXPECT_EQ(
      ColoredText(line, "<"),
      "A                       \x1b[31merror<      0.0    \x1b[31m1.5<  3.00us \x1b[31mx2.00!<");
  EXPECT_EQ(RowLine("A", 20, RowNumbers(), columns).spans, std::vector<Span>());
  const Line slower = RowLine("A", 20, WithMinutes(20, 1600, 1000), columns);
  EXPECT_EQ(slower.spans.back().color, "\x1b[33m");
  EXPECT_EQ(RowLine("A", 20, WithMinutes(3, 9600, 1000), columns).spans.size(), 2U);
  // Parts beyond the end of a cut line are left out.
  EXPECT_EQ(ColoredText({"abc", LineStyle::kPlain, {{2, 5, "!"}}}, "<"), "abc");
}

TEST(Table, TextAboveTheTableFitsItsWidth) {
  Snapshot snapshot;
  snapshot.total = WithMinutes(20, 3000, 1500);
  snapshot.total.durations = 40;
  snapshot.total.events = 123'456'789;
  snapshot.total.errors = 1234;
  EXPECT_EQ(TotalsText(snapshot, 80),
            "events 123456789 (0.0/s)  errors 1234 (1.5/s)  bytes 0 (0/s)  lost 0");
  EXPECT_EQ(TotalsText(snapshot, 60), "events 123456789 (0.0/s)  errors 1234 (1.5/s)  lost 0");
  EXPECT_NE(ActivitiesText(snapshot, 100).find("; p99 3.00us last minute, 1.50us before"),
            std::string::npos);
  EXPECT_EQ(ActivitiesText(snapshot, 60),
            "activities 40 stopped (p50 0ns, p99 0ns, max 0ns), 0 open");
}

TEST(Numbers, RatesOfErrorsShowSingleErrors) {
  EXPECT_EQ(FormatErrorRate(0), "0.0");
  EXPECT_EQ(FormatErrorRate(0.0001), "<0.1");
  EXPECT_EQ(FormatErrorRate(0.06), "0.1");
  EXPECT_EQ(FormatErrorRate(123'456.7), "123457");
  EXPECT_EQ(FormatErrorRate(1'234'567), "1.23M");
}

TEST_F(ScreenTest, RowsMoveWhenTheirLevelChanges) {
  std::vector<SnapshotRow> rows;
  for (const std::uint8_t level : std::initializer_list<std::uint8_t>{0, 5, 4, 3, 2, 1, 9}) {
    rows.push_back(MakeRow("L" + std::to_string(level), 1, 1));
    rows.back().numbers.level = level;
  }
  Show(rows);
  screen_.OnKey(kLeft);
  EXPECT_EQ(Names(), ">L1  L2  L3  L4  L5");
  rows[1].numbers.level = 3;
  Show(rows);
  EXPECT_EQ(Names(), ">L1  L2  L3  L5  L4");
}

TEST_F(ScreenTest, NarrowScreensShowLevelsErrorsAndTheLastMinute) {
  SnapshotRow row = MakeRow("Request", 12.5, 1000);
  row.numbers.level = 3;
  row.numbers.error_rate = 0.25;
  row.numbers.minute = {100, 4'000'000, 8'000'000};
  row.numbers.minute_before = {100, 2'000'000, 4'000'000};
  Show({row});
  EXPECT_EQ(Lines({10, 80})[3],
            " EVENT                    LEVEL  vRATE/S    EVENTS  ERR/S  P99/1M  BEFORE  RATIO");
  EXPECT_EQ(Lines({10, 80})[4],
            ">Request  P             warning     12.5      1000    0.2  8.00ms  4.00ms x2.00!");
  EXPECT_EQ(Lines({10, 60})[3], " EVENT                  LEVEL  vRATE/S  ERR/S  P99/1M  RATIO");
  EXPECT_EQ(Lines({10, 60})[4], ">Request  P           warning     12.5    0.2  8.00ms x2.00!");
  EXPECT_EQ(Lines({10, 60})[9], "p e o t c l f view  arrows  Enter  /  ? help  q quit");
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
