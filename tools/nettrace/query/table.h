// The interface of the tables that SQL reads. It does not depend on how SQLite calls it.
#ifndef TOOLS_NETTRACE_QUERY_TABLE_H_
#define TOOLS_NETTRACE_QUERY_TABLE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "tools/trace/event_filter.h"

namespace tools::query {

class Inputs;

// The property of events that a column holds. Except for kOther, the reader can check conditions on
// the column, so that SQLite receives fewer rows.
enum class Property : std::uint8_t { kOther, kNumber, kTime, kProvider, kName, kLevel, kPid, kTid };

struct ColumnFacts {
  const char* declaration;  // name and type in SQL
  Property property = Property::kOther;
};

// The conditions of a query for the rows of a table. A cursor should skip rows that do not meet
// them, but may also return such rows, because SQLite checks each row again.
struct Conditions {
  bool is_never_met = false;
  std::optional<std::uint64_t> number;  // number of the event
  trace::EventFilter filter;            // filter that selects the event
};

// Reads the rows of a table, from the first one to the last one.
class Cursor {
 public:
  virtual ~Cursor() = default;
  // Moves to the first row. May be called again, with other conditions.
  virtual absl::Status Start(const Conditions& conditions) = 0;
  virtual absl::Status Next() = 0;
  virtual bool is_at_end() const = 0;
  // Passes the value of a column to SQLite. Must not be called at the end.
  virtual void Put(int column, sqlite3_context* to) = 0;
  // Returns a number that identifies the row in the table and does not depend on the conditions.
  // If SQLite reads the table several times, for example for OR, it finds repeated rows by this
  // number.
  virtual std::int64_t row_id() const = 0;
};

struct Table {
  const char* name;
  std::span<const ColumnFacts> columns;
  // Whether rows come in the order of the times and numbers of their events. If so, a search for an
  // event with a higher number can begin at the current event instead of the first.
  bool is_in_event_order;
  std::unique_ptr<Cursor> (*open)(Inputs* inputs);
};

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_TABLE_H_
