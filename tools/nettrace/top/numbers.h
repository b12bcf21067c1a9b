// Formats rows for display: names, numbers of limited width, and the order of rows.
#ifndef TOOLS_NETTRACE_TOP_NUMBERS_H_
#define TOOLS_NETTRACE_TOP_NUMBERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/nettrace/top/model.h"

namespace tools::top {

// The numeric columns, from left to right.
enum class Column : std::uint8_t {
  kLevel,
  kRate,
  kEvents,
  kSelf,
  kErrors,
  kBytes,
  kLost,
  kDurations,
  kP50,
  kP99,
  kMax,
  kMinuteP50,
  kBeforeP50,
  kMinuteP99,
  kBeforeP99,
  kRatio
};
struct ColumnFacts {
  Column column;
  const char* head;  // the heading in the table
  const char* name;  // the argument of --sort
  int width;
  int rank;  // the order in which columns get space on a narrow screen, from 1
};
inline constexpr std::array kColumns = {
    ColumnFacts{Column::kLevel, "LEVEL", "level", 8, 2},
    ColumnFacts{Column::kRate, "RATE/S", "rate", 8, 1},
    ColumnFacts{Column::kEvents, "EVENTS", "events", 9, 6},
    ColumnFacts{Column::kSelf, "SELF", "self", 9, 16},
    ColumnFacts{Column::kErrors, "ERR/S", "errors", 6, 3},
    ColumnFacts{Column::kBytes, "BYTES", "bytes", 6, 14},
    ColumnFacts{Column::kLost, "LOST", "lost", 6, 8},
    ColumnFacts{Column::kDurations, "TIMED", "timed", 6, 10},
    ColumnFacts{Column::kP50, "P50", "p50", 6, 12},
    ColumnFacts{Column::kP99, "P99", "p99", 6, 11},
    ColumnFacts{Column::kMax, "MAX", "max", 6, 13},
    ColumnFacts{Column::kMinuteP50, "P50/1M", "p50-minute", 7, 9},
    ColumnFacts{Column::kBeforeP50, "BEFORE", "p50-before", 7, 15},
    ColumnFacts{Column::kMinuteP99, "P99/1M", "p99-minute", 7, 4},
    ColumnFacts{Column::kBeforeP99, "BEFORE", "p99-before", 7, 7},
    ColumnFacts{Column::kRatio, "RATIO", "ratio", 6, 5}};

// Returns the view's name: provider, event, process, thread, cpu, level or function.
const char* NameOf(View view);

// Formats a count in at most `width` (at least 6) characters: all digits, or "12.3k", "4.56M",
// "7G".
std::string FormatCount(std::uint64_t count, int width);
// Formats a rate in at most 8 characters: "0.3", "123.4", "12345", "123M".
std::string FormatRate(double rate);
// Formats a rate of errors in at most 6 characters: "0.0", "<0.1" for less than 0.05, "123.4",
// "12345", "1.23M".
std::string FormatErrorRate(double rate);
// Formats a ratio in at most 5 characters: "x1.04", "x12.3", "x123", "x9999" for all larger ratios.
std::string FormatRatio(double ratio);

inline constexpr double kMarkedRatio = 2;           // lowest ratio that has a mark
inline constexpr std::uint64_t kLeastForMark = 20;  // durations in each of the two minutes

// Returns the P99 of the last minute divided by the P99 of the minute before. Returns nullopt if
// the last minute has no durations, or if the P99 of the minute before is 0.
std::optional<double> P99Ratio(const RowNumbers& numbers);
// Returns whether both minutes have at least kLeastForMark durations, so that their ratio is
// unlikely to be chance.
bool HasEnoughForMark(const RowNumbers& numbers);
// Returns whether the ratio has a mark: HasEnoughForMark is true, and the ratio is at least
// kMarkedRatio.
bool IsMarked(const RowNumbers& numbers);

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
  // Returns the positions of the rows in `rows`, in descending order of `column`, or in ascending
  // order with `reverse`. With `is_exact`, sorts by the current numbers, and rows move at each
  // change.
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
