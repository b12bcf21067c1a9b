// Adapts tables to SQLite's interface of virtual tables.
#ifndef TOOLS_NETTRACE_QUERY_VIRTUAL_TABLE_H_
#define TOOLS_NETTRACE_QUERY_VIRTUAL_TABLE_H_

#include <sqlite3.h>

#include "tools/nettrace/query/inputs.h"
#include "tools/nettrace/query/table.h"

namespace tools::query {

// The data of a module: a table and the files that it reads.
struct Module {
  const Table* table;
  Inputs* inputs;
};

// Adds the table of `module`, which must outlive `database`. Returns a result code of SQLite.
int AddModule(sqlite3* database, Module* module);

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_VIRTUAL_TABLE_H_
