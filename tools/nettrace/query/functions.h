// The functions that `nettrace query` adds to those of SQLite.
#ifndef TOOLS_NETTRACE_QUERY_FUNCTIONS_H_
#define TOOLS_NETTRACE_QUERY_FUNCTIONS_H_

#include <sqlite3.h>

namespace tools::query {

// Adds these functions, and returns a result code of SQLite:
//   utc(ns)                the time in UTC, such as 2026-11-21T10:00:00.500000000Z
//   ns(text)               the time in a text of this form, in ns since 1970
//   percentile(value, p)   an aggregate: the value that p % of the values do not exceed, with the
//                          error of trace::DurationHistogram. Negative values count as 0.
// The result for NULL is NULL; percentile ignores such values.
int AddFunctions(sqlite3* database);

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_FUNCTIONS_H_
