// A connection to SQLite whose tables are those of a recording. It can only read them.
#ifndef TOOLS_NETTRACE_QUERY_DATABASE_H_
#define TOOLS_NETTRACE_QUERY_DATABASE_H_

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nettrace/query/inputs.h"
#include "tools/nettrace/query/virtual_table.h"

namespace tools::query {

struct StatementDeleter {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, StatementDeleter>;

// Offers the tables `events` and `fields`, and the views `activities`, `processes` and `losses`.
// SQLite does not index virtual tables, but indexes the rows of a view in a join. Not thread-safe.
class Database {
 public:
  // Maximum bytes of memory that SQLite uses. Rows that are sorted go to temporary files.
  static constexpr std::int64_t kMaxMemory = std::int64_t{256} << 20;
  // Maximum bytes of a text, and of a row that is sorted.
  static constexpr int kMaxText = 64 << 20;

  // `inputs` must outlive the result.
  static absl::StatusOr<std::unique_ptr<Database>> Open(Inputs* inputs);
  ~Database() { sqlite3_close(database_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Compiles one SELECT statement. If `sql` is anything else, fails with InvalidArgument and a
  // message that names a remedy.
  absl::StatusOr<Statement> Prepare(const std::string& sql);
  // Moves to the next row of the result. Returns false after the last row. Fails with Internal if
  // SQLite or a table reports an error.
  absl::StatusOr<bool> Step(sqlite3_stmt* statement);

 private:
  explicit Database(Inputs* inputs);
  absl::Status Setup();
  absl::Status RefuseMore(const char* sql);
  // Returns an Internal error with SQLite's message for its last error, and with the remedy, which
  // may be "".
  absl::Status Error(const std::string& remedy) const;

  sqlite3* database_ = nullptr;
  std::array<Module, 5> modules_;
};

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_DATABASE_H_
