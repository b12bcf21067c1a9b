// The tables of activities, processes and losses. Each row may combine several events of an input.
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
