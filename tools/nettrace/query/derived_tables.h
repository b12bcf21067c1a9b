// The tables of what the events of an input describe together: activities, processes and losses.
#ifndef TOOLS_NETTRACE_QUERY_DERIVED_TABLES_H_
#define TOOLS_NETTRACE_QUERY_DERIVED_TABLES_H_

#include "tools/nettrace/query/table.h"

namespace tools::query {

// The names end with _rows, because SQL reads these tables through views: see Database.
extern const Table kActivityTable;
extern const Table kProcessTable;
extern const Table kLossTable;

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_DERIVED_TABLES_H_
