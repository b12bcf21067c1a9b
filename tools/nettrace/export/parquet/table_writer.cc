#include "tools/nettrace/export/parquet/table_writer.h"

#include <utility>

#include "tools/base/status_macros.h"
#include "tools/nettrace/export/parquet/thrift_writer.h"

namespace tools::parquet {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::int32_t kFormatVersion = 2;
constexpr char kCreator[] = "nettrace";

void PutFileSchema(const std::vector<Column>& columns, ThriftWriter* file) {
  std::size_t elements = 1;
  for (const Column& column : columns) elements += CountSchemaElements(column);
  file->List(2, ThriftType::kStruct, elements);
  file->BeginStruct();
  file->Binary(4, "schema");
  file->I32(5, static_cast<std::int32_t>(columns.size()));
  file->EndStruct();
  for (const Column& column : columns) AppendSchema(column, file);
}

void PutNotes(const nettrace::KeyValues& notes, ThriftWriter* file) {
  if (notes.empty()) return;
  file->List(5, ThriftType::kStruct, notes.size());
  for (const auto& [key, value] : notes) {
    file->BeginStruct();
    file->Binary(1, key);
    file->Binary(2, value);
    file->EndStruct();
  }
}

// States that the bounds of each column are in the order of its type. Without this, readers ignore
// the bounds.
void PutOrders(std::size_t columns, ThriftWriter* file) {
  file->List(7, ThriftType::kStruct, columns);
  for (std::size_t i = 0; i < columns; ++i) {
    file->BeginStruct();
    file->EmptyStruct(1);
    file->EndStruct();
  }
}

}  // namespace

TableWriter::TableWriter(std::vector<Column> columns, nettrace::KeyValues notes,
                         PageCompressor* compressor, Write write)
    : columns_(std::move(columns)), notes_(std::move(notes)), write_(std::move(write)) {
  writers_.reserve(columns_.size());
  for (const Column& column : columns_) writers_.emplace_back(column, compressor);
}

absl::Status TableWriter::EndRow() {
  ++group_rows_;
  buffered_ = 0;
  for (ColumnWriter& writer : writers_) {
    RETURN_IF_ERROR(writer.EndRow());
    buffered_ += writer.buffered();
  }
  if (group_rows_ < kGroupRows && buffered_ < kGroupBytes) return absl::OkStatus();
  return EndGroup();
}

absl::Status TableWriter::EndGroup() {
  if (group_rows_ == 0) return absl::OkStatus();
  if (size_ == 0) RETURN_IF_ERROR(Append(kMagic));
  const std::uint64_t begin = size_;
  std::uint64_t plain = 0;
  std::uint64_t compressed = 0;
  ThriftWriter group(&described_groups_);
  group.BeginStruct();
  group.List(1, ThriftType::kStruct, writers_.size());
  for (ColumnWriter& writer : writers_) {
    std::string chunk;
    RETURN_IF_ERROR(writer.EndGroup(size_, &group, &plain, &compressed, &chunk));
    RETURN_IF_ERROR(Append(chunk));
  }
  group.I64(2, static_cast<std::int64_t>(plain));
  group.I64(3, static_cast<std::int64_t>(group_rows_));
  group.I64(5, static_cast<std::int64_t>(begin));
  group.I64(6, static_cast<std::int64_t>(compressed));
  group.EndStruct();
  ++groups_;
  rows_ += std::exchange(group_rows_, 0);
  buffered_ = 0;
  return absl::OkStatus();
}

absl::Status TableWriter::Finish() {
  RETURN_IF_ERROR(EndGroup());
  if (size_ == 0) RETURN_IF_ERROR(Append(kMagic));
  std::string end;
  ThriftWriter file(&end);
  file.BeginStruct();
  file.I32(1, kFormatVersion);
  PutFileSchema(columns_, &file);
  file.I64(3, static_cast<std::int64_t>(rows_));
  file.List(4, ThriftType::kStruct, groups_);
  end += described_groups_;
  PutNotes(notes_, &file);
  file.Binary(6, kCreator);
  PutOrders(columns_.size(), &file);
  file.EndStruct();
  const std::size_t size = end.size();
  for (int shift = 0; shift < 32; shift += 8) end += static_cast<char>(size >> shift);
  end += kMagic;
  return Append(end);
}

absl::Status TableWriter::Append(std::string_view bytes) {
  size_ += bytes.size();
  return write_(bytes);
}

}  // namespace tools::parquet
