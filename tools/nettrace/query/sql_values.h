// Passes values of columns to SQLite.
#ifndef TOOLS_NETTRACE_QUERY_SQL_VALUES_H_
#define TOOLS_NETTRACE_QUERY_SQL_VALUES_H_

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "nettrace/schema.h"
#include "tools/base/text.h"

namespace tools::query {

// Passes the bits of an unsigned number as a signed number, because SQLite has no unsigned type:
// 2^64-1 becomes -1.
inline void PutInteger(sqlite3_context* to, std::uint64_t number) {
  sqlite3_result_int64(to, static_cast<sqlite3_int64>(number));
}
inline void PutSigned(sqlite3_context* to, std::int64_t number) {
  sqlite3_result_int64(to, number);
}
inline void PutOptional(sqlite3_context* to, const std::optional<std::uint64_t>& number) {
  number ? PutInteger(to, *number) : sqlite3_result_null(to);
}

inline void PutText(sqlite3_context* to, std::string_view text) {
  sqlite3_result_text64(to, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}
// Passes an empty text, which means an unknown name, as NULL.
inline void PutName(sqlite3_context* to, std::string_view name) {
  name.empty() ? sqlite3_result_null(to) : PutText(to, name);
}

// Passes a time as ns since 1970.
inline void PutTime(sqlite3_context* to, absl::Time time) {
  sqlite3_result_int64(to, absl::ToUnixNanos(time));
}

inline void PutGuid(sqlite3_context* to, const std::optional<nettrace::Guid>& guid) {
  guid ? PutText(to, base::FormatGuid(*guid)) : sqlite3_result_null(to);
}

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_SQL_VALUES_H_
