// Formats rows for display: names, numbers of limited width, and the order of rows.
#ifndef TOOLS_NETTRACE_TOP_NUMBERS_H_
#define TOOLS_NETTRACE_TOP_NUMBERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/nettrace/top/model.h"

namespace tools::top {

// The numeric columns, from left to right.
enum class Column : std::uint8_t { kRate, kEvents, kBytes, kLost, kDurations, kP50, kP99, kMax };
struct ColumnFacts {
  Column column;
  const char* head;  // the heading in the table
  const char* name;  // the argument of --sort
  int width;
};
inline constexpr std::array kColumns = {ColumnFacts{Column::kRate, "RATE/S", "rate", 8},
                                        ColumnFacts{Column::kEvents, "EVENTS", "events", 9},
                                        ColumnFacts{Column::kBytes, "BYTES", "bytes", 6},
                                        ColumnFacts{Column::kLost, "LOST", "lost", 6},
                                        ColumnFacts{Column::kDurations, "TIMED", "timed", 6},
                                        ColumnFacts{Column::kP50, "P50", "p50", 6},
                                        ColumnFacts{Column::kP99, "P99", "p99", 6},
                                        ColumnFacts{Column::kMax, "MAX", "max", 6}};

// Returns the view's name: provider, event, process, thread or cpu.
const char* NameOf(View view);

// Formats a count in at most `width` (at least 6) characters: all digits, or "12.3k", "4.56M",
// "7G".
std::string FormatCount(std::uint64_t count, int width);
// Formats a rate in at most 8 characters: "0.3", "123.4", "12345", "123M".
std::string FormatRate(double rate);

// Returns the text of a cell; "-" for a duration if the row has none.
std::string Cell(const RowNumbers& numbers, const ColumnFacts& facts);
double ValueOf(const RowNumbers& numbers, Column column);

// Returns the name of a row with escaped control characters. With `with_paths`, processes have the
// full paths from the stream.
std::string Title(View view, const RowName& name, bool with_paths);
// Returns text such as "(12 others)".
std::string OthersTitle(const SnapshotView& view);

// Sorts rows and keeps the order stable between updates: a row moves only when its number has
// changed by more than a fifth.
class CalmOrder {
 public:
  // Returns positions in `rows` in descending order of `column`, or ascending with `reverse`.
  // With `is_exact`, sorts by the current numbers, and rows move at each change.
  std::vector<std::size_t> Sort(const std::vector<SnapshotRow>& rows, Column column, bool reverse,
                                bool is_exact);
  // Forgets the numbers of the last Sort. Must be called when another view or column is sorted.
  void Forget() { values_.clear(); }

 private:
  // For each key of a row, the number by which the row was sorted last.
  absl::flat_hash_map<std::string, double> values_;
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_NUMBERS_H_
