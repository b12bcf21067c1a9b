// Rows as people see them: names, numbers that keep to a width, and the order of rows.
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

// The columns of numbers, from left to right.
enum class Column : std::uint8_t { kRate, kEvents, kBytes, kLost, kDurations, kP50, kP99, kMax };
struct ColumnFacts {
  Column column;
  const char* head;  // of the table
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

// The names of the views, in their order: provider, event, process, thread, cpu.
const char* NameOf(View view);

// At most `width` (at least 6) characters: all digits, or "12.3k", "4.56M", "7G".
std::string FormatCount(std::uint64_t count, int width);
// At most 8 characters: "0.3", "123.4", "12345".
std::string FormatRate(double rate);
// At most 6 characters: "99999", "97.7K", "1.5M" of 1024 bytes.
std::string FormatBytes6(std::uint64_t bytes);
// At most 6 characters: "850ns", "1.23us", "12.3ms", "4.5s", "2.5h".
std::string FormatDuration(std::uint64_t nanoseconds);

// The cell of a row; "-" for a time that there is none of.
std::string Cell(const RowNumbers& numbers, const ColumnFacts& facts);
double ValueOf(const RowNumbers& numbers, Column column);

// The name of a row, Printable. `with_paths`: processes by the whole paths that the stream says.
std::string Title(View view, const RowName& name, bool with_paths);
// "(12 others)"
std::string OthersTitle(const SnapshotView& view);

// The columns that `text` takes on a terminal, as far as can be known.
std::size_t WidthOf(std::string_view text);
// `text` with spaces after it, or cut, with "~" at its end, so that it takes `width` columns.
std::string Fit(std::string_view text, std::size_t width);

// Puts rows in an order that changes no more than it has to: a row moves once its number has
// changed by a fifth.
class CalmOrder {
 public:
  // Positions in `rows`, those with the largest numbers first; with `reverse`, last. `is_exact`
  // sorts by the numbers as they are.
  std::vector<std::size_t> Sort(const std::vector<SnapshotRow>& rows, Column column, bool reverse,
                                bool is_exact);
  // To be called when rows or column are others than before.
  void Forget() { values_.clear(); }

 private:
  absl::flat_hash_map<std::string, double> values_;  // by which rows were sorted, by key
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_NUMBERS_H_
