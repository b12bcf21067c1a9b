// Prints the rows of a result.
#ifndef TOOLS_NETTRACE_QUERY_RESULT_OUTPUT_H_
#define TOOLS_NETTRACE_QUERY_RESULT_OUTPUT_H_

#include <sqlite3.h>

#include <memory>
#include <string>

namespace tools::query {

enum class Format { kTable, kCsv, kJson };

class ResultOutput {
 public:
  virtual ~ResultOutput() = default;
  // Adds the current row of the statement. Appends to `out` the text of the rows that can be
  // printed already.
  virtual void Add(std::string* out) = 0;
  // Appends the text of the remaining rows. Must be called after the last row.
  virtual void Finish(std::string* out) = 0;
};

// `statement` must outlive the result.
std::unique_ptr<ResultOutput> CreateOutput(Format format, sqlite3_stmt* statement);

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_RESULT_OUTPUT_H_
