// Writes a Parquet file: a table of columns.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_TABLE_WRITER_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_TABLE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/schema.h"
#include "tools/nettrace/export/parquet/column_writer.h"
#include "tools/nettrace/export/parquet/page_compressor.h"

namespace tools::parquet {

// Writes the rows of one file from its first byte to its last, without seeking. For each row, the
// caller adds a value to each column, and then calls EndRow.
//
// Memory holds one row group: at most kGroupBytes, and the last row. It also holds the description
// of each complete row group, which is written at the end; it has about 150 bytes for each column.
// Not thread-safe.
class TableWriter {
 public:
  static constexpr std::uint64_t kGroupRows = 131'072;
  static constexpr std::size_t kGroupBytes = std::size_t{64} << 20;

  using Write = std::function<absl::Status(std::string_view)>;

  // `notes` are key-value pairs of valid UTF-8, which the file contains. `compressor` must outlive
  // this object.
  TableWriter(std::vector<Column> columns, nettrace::KeyValues notes, PageCompressor* compressor,
              Write write);

  const std::vector<Column>& columns() const { return columns_; }
  ColumnWriter& column(std::size_t index) { return writers_[index]; }
  // Ends the row, and writes the row group if it is full. Fails with the error of `write`, or if
  // memory is insufficient. No function may be called after an error.
  absl::Status EndRow();
  // Writes the rows that were added since the last row group as a row group. Does nothing if there
  // are none.
  absl::Status EndGroup();
  // Writes the last row group and the end of the file.
  absl::Status Finish();

  // Returns the approximate memory of the open row group, in bytes.
  std::size_t buffered() const { return buffered_; }
  std::uint64_t rows() const { return rows_; }  // in complete row groups

 private:
  absl::Status Append(std::string_view bytes);

  const std::vector<Column> columns_;
  const nettrace::KeyValues notes_;
  const Write write_;
  std::vector<ColumnWriter> writers_;
  std::uint64_t size_ = 0;  // bytes of the file so far
  std::uint64_t rows_ = 0;
  std::uint64_t group_rows_ = 0;  // rows of the open row group
  std::size_t buffered_ = 0;
  std::size_t groups_ = 0;        // complete row groups
  std::string described_groups_;  // the structures RowGroup of complete row groups
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_TABLE_WRITER_H_
