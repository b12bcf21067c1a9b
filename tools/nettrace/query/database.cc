#include "tools/nettrace/query/database.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/query/derived_tables.h"
#include "tools/nettrace/query/event_tables.h"
#include "tools/nettrace/query/functions.h"

namespace tools::query {
namespace {

constexpr char kOnlyReads[] = "a query can only read, with SELECT";
constexpr char kRemedy[] = "nettrace-query(1) has the tables, columns and examples";

// Statements that set up the connection. Without LIMIT, SQLite would replace each view by its table
// in a query. With LIMIT, SQLite stores the rows of the view and can index them for a join.
constexpr char kSetup[] =
    "PRAGMA temp_store = FILE;"
    "PRAGMA cache_size = -8192;"  // KiB; also the memory for sorting
    "CREATE VIEW activities AS SELECT * FROM activity_rows LIMIT -1;"
    "CREATE VIEW processes AS SELECT * FROM process_rows LIMIT -1;"
    "CREATE VIEW losses AS SELECT * FROM loss_rows LIMIT -1;"
    // Connects the tables before Authorize() is installed, because Authorize() forbids the
    // declaration of columns.
    "SELECT 1 FROM events, fields, activities, processes, losses, pragma_table_info(''),"
    " pragma_table_xinfo(''), pragma_table_list(''), pragma_function_list LIMIT 0;";

struct Limit {
  int id;
  int value;
};
constexpr Limit kLimits[] = {
    {SQLITE_LIMIT_LENGTH, Database::kMaxText},
    {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
    {SQLITE_LIMIT_COLUMN, 500},
    {SQLITE_LIMIT_EXPR_DEPTH, 200},
    {SQLITE_LIMIT_COMPOUND_SELECT, 100},
    {SQLITE_LIMIT_VDBE_OP, 1'000'000},
    {SQLITE_LIMIT_FUNCTION_ARG, 100},
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
    {SQLITE_LIMIT_VARIABLE_NUMBER, 0},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
};

// Pragmas that only describe the tables and functions.
constexpr const char* kPragmas[] = {"table_info", "table_xinfo", "table_list", "function_list"};

bool IsDescription(const char* pragma) {
  return pragma != nullptr &&
         std::any_of(std::begin(kPragmas), std::end(kPragmas),
                     [pragma](const char* each) { return sqlite3_stricmp(pragma, each) == 0; });
}

int Authorize(void* /*data*/, int action, const char* first, const char* second,
              const char* /*database*/, const char* /*trigger*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return sqlite3_stricmp(second, "load_extension") == 0 ? SQLITE_DENY : SQLITE_OK;
    case SQLITE_PRAGMA:
      return IsDescription(first) ? SQLITE_OK : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

// Returns a remedy for an error of SQLite in a statement.
std::string RemedyFor(std::string_view message) {
  const auto has = [message](std::string_view words) {
    return message.find(words) != message.npos;
  };
  if (has("no such table")) {
    return "the tables are events, fields, activities, processes and losses";
  }
  if (has("no such column")) return absl::StrCat("put text in single quotes; ", kRemedy);
  if (has("not authorized") || has("prohibited")) return kOnlyReads;
  return kRemedy;
}

}  // namespace

Database::Database(Inputs* inputs)
    : modules_{Module{&kEventTable, inputs}, Module{&kFieldTable, inputs},
               Module{&kActivityTable, inputs}, Module{&kProcessTable, inputs},
               Module{&kLossTable, inputs}} {}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(Inputs* inputs) {
  std::unique_ptr<Database> database(new Database(inputs));
  RETURN_IF_ERROR(database->Setup());
  return database;
}

absl::Status Database::Setup() {
  sqlite3_hard_heap_limit64(kMaxMemory);
  if (sqlite3_open_v2(":memory:", &database_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    return Error("");
  }
  for (Module& module : modules_) {
    if (AddModule(database_, &module) != SQLITE_OK) return Error("");
  }
  if (AddFunctions(database_) != SQLITE_OK ||
      sqlite3_exec(database_, kSetup, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return Error("");
  }
  for (const Limit& limit : kLimits) sqlite3_limit(database_, limit.id, limit.value);
  // Makes a wrong name of a column in double quotes an error. By default, SQLite reads it as a
  // text.
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_set_authorizer(database_, Authorize, nullptr);
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* prepared = nullptr;
  const char* rest = nullptr;
  const int result = sqlite3_prepare_v2(database_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                        &prepared, &rest);
  Statement statement(prepared);
  if (result != SQLITE_OK) {
    const std::string message = sqlite3_errmsg(database_);
    const int offset = sqlite3_error_offset(database_);
    const std::string place = offset < 0 ? "" : absl::StrCat(" at character ", offset + 1);
    return absl::InvalidArgumentError(absl::StrCat(message, place, "; ", RemedyFor(message)));
  }
  if (statement == nullptr) {
    return absl::InvalidArgumentError(
        "no statement; example: SELECT name, count(*) FROM events GROUP BY name");
  }
  if (sqlite3_stmt_readonly(statement.get()) == 0 || sqlite3_column_count(statement.get()) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("not a query; ", kOnlyReads));
  }
  RETURN_IF_ERROR(RefuseMore(rest));
  return statement;
}

// Returns an error if `sql` contains anything other than space and comments.
absl::Status Database::RefuseMore(const char* sql) {
  while (sql != nullptr && *sql != '\0') {
    sqlite3_stmt* prepared = nullptr;
    const char* rest = nullptr;
    const int result = sqlite3_prepare_v2(database_, sql, -1, &prepared, &rest);
    const Statement statement(prepared);
    if (result != SQLITE_OK || statement != nullptr) {
      return absl::InvalidArgumentError("more than one statement; run a query for each");
    }
    sql = rest;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Database::Step(sqlite3_stmt* statement) {
  switch (sqlite3_step(statement)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    case SQLITE_NOMEM:
      return Error(absl::StrCat("the query needs more than ", kMaxMemory >> 20,
                                " MB, the maximum; select fewer columns or shorter texts"));
    case SQLITE_TOOBIG:
      return Error(absl::StrCat("a text or row has more than ", kMaxText >> 20,
                                " MB, the maximum; select fewer columns or shorter texts"));
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return Error("sorting needs temporary files; set TMPDIR to a directory with enough space");
    default:
      return Error("");
  }
}

absl::Status Database::Error(const std::string& remedy) const {
  const std::string message =
      database_ == nullptr ? "not enough memory" : sqlite3_errmsg(database_);
  return absl::InternalError(remedy.empty() ? message : absl::StrCat(message, "; ", remedy));
}

}  // namespace tools::query
