#include "tools/nettrace/export/parquet/column_writer.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/string_view.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/export/parquet/run_encoding.h"

namespace tools::parquet {
namespace {

// The numbers in this file are those of parquet.thrift.
enum Physical : std::int32_t {
  kPhysicalBoolean = 0,
  kPhysicalInt32 = 1,
  kPhysicalInt64 = 2,
  kPhysicalFloat = 4,
  kPhysicalDouble = 5,
  kPhysicalByteArray = 6,
  kPhysicalFixedByteArray = 7,
};
enum Encoding : std::int32_t { kPlain = 0, kRle = 3, kRleDictionary = 8 };
enum PageType : std::int32_t { kDataPage = 0, kDictionaryPage = 2 };
enum Repetition : std::int32_t { kRequired = 0, kOptional = 1, kRepeated = 2 };
constexpr std::int32_t kZstd = 6;
constexpr std::int32_t kListConverted = 3;
constexpr std::int32_t kUuidSize = 16;
constexpr std::int16_t kListLogical = 3;
// The names of the repeated group within the group of a list, and of the leaf within this group.
constexpr char kListGroup[] = "list";
constexpr char kListElement[] = "element";

// The properties of a type in the file.
struct TypeFacts {
  Physical physical;
  std::int16_t logical = 0;  // number of the field of LogicalType; 0 if there is none
  std::int32_t converted = -1;
  std::int8_t bits = 0;  // size of an integer
  bool is_signed = false;
};

constexpr std::int16_t kStringLogical = 1;
constexpr std::int16_t kTimestampLogical = 8;
constexpr std::int16_t kIntegerLogical = 10;
constexpr std::int16_t kJsonLogical = 12;
constexpr std::int16_t kUuidLogical = 14;

TypeFacts FactsOf(ColumnType type) {
  switch (type) {
    case ColumnType::kBoolean:
      return {kPhysicalBoolean};
    case ColumnType::kInt8:
      return {kPhysicalInt32, kIntegerLogical, 15, 8, true};
    case ColumnType::kInt16:
      return {kPhysicalInt32, kIntegerLogical, 16, 16, true};
    case ColumnType::kInt32:
      return {kPhysicalInt32, kIntegerLogical, 17, 32, true};
    case ColumnType::kInt64:
      return {kPhysicalInt64, kIntegerLogical, 18, 64, true};
    case ColumnType::kUint8:
      return {kPhysicalInt32, kIntegerLogical, 11, 8, false};
    case ColumnType::kUint16:
      return {kPhysicalInt32, kIntegerLogical, 12, 16, false};
    case ColumnType::kUint32:
      return {kPhysicalInt32, kIntegerLogical, 13, 32, false};
    case ColumnType::kUint64:
      return {kPhysicalInt64, kIntegerLogical, 14, 64, false};
    case ColumnType::kTimestamp:
      return {kPhysicalInt64, kTimestampLogical, -1, 64, true};
    case ColumnType::kFloat:
      return {kPhysicalFloat};
    case ColumnType::kDouble:
      return {kPhysicalDouble};
    case ColumnType::kString:
      return {kPhysicalByteArray, kStringLogical, 0};
    case ColumnType::kJson:
      return {kPhysicalByteArray, kJsonLogical, 19};
    case ColumnType::kBinary:
      return {kPhysicalByteArray};
    case ColumnType::kUuid:
      return {kPhysicalFixedByteArray, kUuidLogical};
  }
  return {kPhysicalByteArray};
}

void PutLogicalType(const TypeFacts& facts, ThriftWriter* schema) {
  schema->BeginStruct(10);
  schema->BeginStruct(facts.logical);
  if (facts.logical == kTimestampLogical) {
    schema->Bool(1, true);  // UTC
    schema->BeginStruct(2);
    schema->EmptyStruct(3);  // nanoseconds
    schema->EndStruct();
  } else if (facts.logical == kIntegerLogical) {
    schema->I8(1, facts.bits);
    schema->Bool(2, facts.is_signed);
  }
  schema->EndStruct();
  schema->EndStruct();
}

void PutLeaf(ColumnType type, Repetition repetition, std::string_view name, ThriftWriter* schema) {
  const TypeFacts facts = FactsOf(type);
  schema->BeginStruct();
  schema->I32(1, facts.physical);
  if (facts.physical == kPhysicalFixedByteArray) schema->I32(2, kUuidSize);
  schema->I32(3, repetition);
  schema->Binary(4, name);
  if (facts.converted >= 0) schema->I32(6, facts.converted);
  if (facts.logical != 0) PutLogicalType(facts, schema);
  schema->EndStruct();
}

// Returns the lowest `size` bytes of `bits` in little-endian order, which is the PLAIN encoding of
// numbers.
std::string LittleEndian(std::uint64_t bits, std::size_t size) {
  std::string bytes;
  for (; size > 0; --size, bits >>= 8) bytes += static_cast<char>(bits);
  return bytes;
}

bool HasFourBytes(Physical physical) {
  return physical == kPhysicalInt32 || physical == kPhysicalFloat;
}

constexpr std::uint64_t kSign = std::uint64_t{1} << 63;

// Convert a number to a key, and a key to its number. Keys compare as their numbers do.
std::uint64_t KeyOf(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
double NumberOf(std::uint64_t key) {
  return std::bit_cast<double>((key & kSign) != 0 ? key & ~kSign : ~key);
}

// Returns the part of a valid UTF-8 text that has at most `size` bytes and whole characters.
std::string_view Cut(std::string_view text, std::size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

// Appends the levels, which have `width` bits each, as runs. Their encoded size in bytes precedes
// them, as a number of 4 bytes.
void AppendLevels(const std::vector<std::uint8_t>& levels, int width, std::string* out) {
  const std::size_t begin = out->size();
  out->append(4, '\0');
  AppendRuns(levels, width, out);
  out->replace(begin, 4, LittleEndian(out->size() - begin - 4, 4));
}

}  // namespace

void AppendSchema(const Column& column, ThriftWriter* schema) {
  if (!column.is_list) {
    return PutLeaf(column.type, column.is_optional ? kOptional : kRequired, column.name, schema);
  }
  schema->BeginStruct();
  schema->I32(3, kOptional);
  schema->Binary(4, column.name);
  schema->I32(5, 1);  // children
  schema->I32(6, kListConverted);
  schema->BeginStruct(10);
  schema->EmptyStruct(kListLogical);
  schema->EndStruct();
  schema->EndStruct();
  schema->BeginStruct();
  schema->I32(3, kRepeated);
  schema->Binary(4, kListGroup);
  schema->I32(5, 1);
  schema->EndStruct();
  PutLeaf(column.type, kOptional, kListElement, schema);
}

std::size_t CountSchemaElements(const Column& column) { return column.is_list ? 3 : 1; }

ColumnWriter::ColumnWriter(const Column& column, PageCompressor* compressor)
    : column_(column),
      max_definition_(column.is_list       ? 3
                      : column.is_optional ? 1
                                           : 0),
      compressor_(compressor) {
  group_.uses_dictionary = column.has_dictionary;
}

void ColumnWriter::AddLevels(std::uint8_t definition) {
  if (max_definition_ != 0) definitions_.push_back(definition);
  if (column_.is_list) {
    repetitions_.push_back(in_list_ ? next_repetition_ : 0);
    next_repetition_ = 1;
  }
  ++page_values_;
  ++page_bytes_;
}

void ColumnWriter::Null() { AddLevels(in_list_ ? 2 : 0); }

void ColumnWriter::EndList() {
  if (next_repetition_ == 0) AddLevels(1);  // the list is empty
  in_list_ = false;
}

void ColumnWriter::Whole(std::uint64_t bits) {
  AddPresent();
  ++group_.present;
  if (group_.uses_dictionary && group_.last_number == bits) return AddIndex(group_.last_index);
  if (column_.has_bounds && column_.type != ColumnType::kBoolean) {
    BoundNumber(FactsOf(column_.type).is_signed ? bits ^ kSign : bits);
  }
  if (!group_.uses_dictionary) return AppendNumber(bits, &plain_);
  const auto [entry, added] = group_.entries.numbers.try_emplace(bits, group_.entries.size());
  group_.last_number = bits;
  group_.last_index = entry->second;
  AddIndex(group_.last_index);
  if (!added) return;
  AppendNumber(bits, &group_.dictionary);
  CheckDictionary();
}

void ColumnWriter::Real(double value) {
  AddPresent();
  ++group_.present;
  group_.has_nan = group_.has_nan || std::isnan(value);
  if (column_.has_bounds && !group_.has_nan) BoundNumber(KeyOf(value));
  AppendNumber(column_.type == ColumnType::kFloat
                   ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                   : std::bit_cast<std::uint64_t>(value),
               &plain_);
}

void ColumnWriter::Bytes(std::string_view bytes) {
  AddPresent();
  ++group_.present;
  if (group_.uses_dictionary && group_.last_text == bytes) return AddIndex(group_.last_index);
  if (!group_.uses_dictionary) {
    if (column_.has_bounds) BoundBytes(bytes);
    return AppendBytes(bytes, &plain_);
  }
  auto entry = group_.entries.texts.find(absl::string_view(bytes.data(), bytes.size()));
  const bool added = entry == group_.entries.texts.end();
  if (added) entry = group_.entries.texts.emplace(std::string(bytes), group_.entries.size()).first;
  group_.last_text = bytes;
  group_.last_index = entry->second;
  AddIndex(group_.last_index);
  if (!added) return;
  if (column_.has_bounds) BoundBytes(bytes);
  AppendBytes(bytes, &group_.dictionary);
  CheckDictionary();
}

void ColumnWriter::AddIndex(std::uint32_t index) {
  indices_.push_back(index);
  page_bytes_ += sizeof index;
}

void ColumnWriter::AppendNumber(std::uint64_t bits, std::string* out) {
  const Physical physical = FactsOf(column_.type).physical;
  const std::size_t size = physical == kPhysicalBoolean ? 1 : HasFourBytes(physical) ? 4 : 8;
  for (std::size_t i = 0; i < size; ++i, bits >>= 8) *out += static_cast<char>(bits);
  if (out == &plain_) page_bytes_ += size;
}

void ColumnWriter::AppendBytes(std::string_view bytes, std::string* out) {
  const std::size_t before = out->size();
  if (column_.type != ColumnType::kUuid) {
    for (int shift = 0; shift < 32; shift += 8) *out += static_cast<char>(bytes.size() >> shift);
  }
  *out += bytes;
  if (out == &plain_) page_bytes_ += out->size() - before;
}

void ColumnWriter::CheckDictionary() {
  group_.dictionary_is_full =
      group_.dictionary_is_full || group_.dictionary.size() > kMaxDictionaryBytes ||
      (group_.entries.size() == kCheckedEntries && group_.present < 2 * kCheckedEntries);
}

void ColumnWriter::BoundNumber(std::uint64_t key) {
  group_.greatest = group_.least ? std::max(group_.greatest, key) : key;
  group_.least = group_.least ? std::min(*group_.least, key) : key;
}

void ColumnWriter::BoundBytes(std::string_view bytes) {
  if (!group_.least_text || bytes > group_.greatest_text) group_.greatest_text = bytes;
  if (!group_.least_text || bytes < *group_.least_text) group_.least_text = bytes;
}

template <typename PutHead>
absl::StatusOr<std::uint64_t> ColumnWriter::AppendPage(std::int32_t type, const PutHead& put_head,
                                                       std::string* pages) {
  ASSIGN_OR_RETURN(const std::string_view compressed, compressor_->Compress());
  const std::size_t plain_size = compressor_->plain()->size();
  const std::size_t begin = pages->size();
  ThriftWriter header(pages);
  header.BeginStruct();
  header.I32(1, type);
  header.I32(2, static_cast<std::int32_t>(plain_size));
  header.I32(3, static_cast<std::int32_t>(compressed.size()));
  const uLong checksum = crc32(0, reinterpret_cast<const Bytef*>(compressed.data()),
                               static_cast<uInt>(compressed.size()));
  header.I32(4, static_cast<std::int32_t>(static_cast<std::uint32_t>(checksum)));
  put_head(&header);
  header.EndStruct();
  const std::uint64_t plain = pages->size() - begin + plain_size;
  *pages += compressed;
  return plain;
}

absl::Status ColumnWriter::EndPage() {
  const bool has_indices = !indices_.empty();
  std::string& page = *compressor_->plain();
  page.clear();
  if (column_.is_list) AppendLevels(repetitions_, 1, &page);
  if (max_definition_ != 0) AppendLevels(definitions_, std::bit_width(max_definition_), &page);
  if (has_indices) {
    const int width = std::max(1, static_cast<int>(std::bit_width(group_.entries.size() - 1)));
    page += static_cast<char>(width);
    AppendRuns(indices_, width, &page);
  } else if (column_.type == ColumnType::kBoolean) {
    AppendBits(plain_, &page);
  } else {
    page += plain_;
  }
  const auto put_head = [&](ThriftWriter* header) {
    header->BeginStruct(5);
    header->I32(1, static_cast<std::int32_t>(page_values_));
    header->I32(2, has_indices ? kRleDictionary : kPlain);
    header->I32(3, kRle);
    header->I32(4, kRle);
    header->EndStruct();
  };
  ASSIGN_OR_RETURN(const std::uint64_t plain, AppendPage(kDataPage, put_head, &group_.pages));
  group_.pages_plain += plain;
  group_.values += page_values_;
  definitions_.clear();
  repetitions_.clear();
  indices_.clear();
  plain_.clear();
  page_values_ = 0;
  page_bytes_ = 0;
  if (group_.dictionary_is_full) group_.uses_dictionary = group_.dictionary_is_full = false;
  return absl::OkStatus();
}

absl::Status ColumnWriter::EndGroup(std::uint64_t offset, ThriftWriter* group, std::uint64_t* plain,
                                    std::uint64_t* compressed, std::string* out) {
  if (page_values_ != 0) RETURN_IF_ERROR(EndPage());
  const std::size_t begin = out->size();
  std::uint64_t chunk_plain = group_.pages_plain;
  if (!group_.dictionary.empty()) {
    compressor_->plain()->swap(group_.dictionary);
    const auto put_head = [&](ThriftWriter* header) {
      header->BeginStruct(7);
      header->I32(1, static_cast<std::int32_t>(group_.entries.size()));
      header->I32(2, kPlain);
      header->EndStruct();
    };
    ASSIGN_OR_RETURN(const std::uint64_t page_plain, AppendPage(kDictionaryPage, put_head, out));
    chunk_plain += page_plain;
  }
  const std::uint64_t dictionary_size = out->size() - begin;
  *out += group_.pages;
  const std::uint64_t chunk_compressed = out->size() - begin;
  group->BeginStruct();
  group->I64(2, 0);  // file_offset, which is no longer used
  group->BeginStruct(3);
  group->I32(1, FactsOf(column_.type).physical);
  PutEncodings(group);
  group->List(3, ThriftType::kBinary, column_.is_list ? 3 : 1);
  group->ElementBinary(column_.name);
  if (column_.is_list) {
    group->ElementBinary(kListGroup);
    group->ElementBinary(kListElement);
  }
  group->I32(4, kZstd);
  group->I64(5, static_cast<std::int64_t>(group_.values));
  group->I64(6, static_cast<std::int64_t>(chunk_plain));
  group->I64(7, static_cast<std::int64_t>(chunk_compressed));
  group->I64(9, static_cast<std::int64_t>(offset + dictionary_size));
  if (dictionary_size != 0) group->I64(11, static_cast<std::int64_t>(offset));
  PutStatistics(group);
  group->EndStruct();
  group->EndStruct();
  *plain += chunk_plain;
  *compressed += chunk_compressed;
  // Frees the memory of the row group, because many tables may be open.
  group_ = Group();
  group_.uses_dictionary = column_.has_dictionary;
  definitions_ = repetitions_ = std::vector<std::uint8_t>();
  indices_ = std::vector<std::uint32_t>();
  plain_ = std::string();
  return absl::OkStatus();
}

void ColumnWriter::PutEncodings(ThriftWriter* chunk) const {
  const bool has_dictionary = group_.entries.size() != 0;
  chunk->List(2, ThriftType::kI32, has_dictionary ? 3 : 2);
  chunk->ElementI32(kPlain);
  chunk->ElementI32(kRle);
  if (has_dictionary) chunk->ElementI32(kRleDictionary);
}

void ColumnWriter::PutStatistics(ThriftWriter* chunk) const {
  chunk->BeginStruct(12);
  chunk->I64(3, static_cast<std::int64_t>(group_.values - group_.present));
  if (group_.least && !group_.has_nan) {
    chunk->Binary(5, BoundOf(group_.greatest, /*is_greatest=*/true));
    chunk->Binary(6, BoundOf(*group_.least, /*is_greatest=*/false));
  } else if (group_.least_text) {
    const std::string_view least = Cut(*group_.least_text, kMaxBound);
    const bool has_greatest = group_.greatest_text.size() <= kMaxBound;
    if (has_greatest) chunk->Binary(5, group_.greatest_text);
    chunk->Binary(6, least);
    if (has_greatest) chunk->Bool(7, true);
    chunk->Bool(8, least.size() == group_.least_text->size());
  }
  chunk->EndStruct();
}

std::string ColumnWriter::BoundOf(std::uint64_t key, bool is_greatest) const {
  const TypeFacts facts = FactsOf(column_.type);
  if (facts.physical == kPhysicalInt32 || facts.physical == kPhysicalInt64) {
    return LittleEndian(facts.is_signed ? key ^ kSign : key, HasFourBytes(facts.physical) ? 4 : 8);
  }
  double number = NumberOf(key);
  // The format demands that a bound of 0 includes both 0.0 and -0.0.
  if (number == 0) number = is_greatest ? 0.0 : -0.0;
  if (facts.physical == kPhysicalDouble) {
    return LittleEndian(std::bit_cast<std::uint64_t>(number), 8);
  }
  return LittleEndian(std::bit_cast<std::uint32_t>(static_cast<float>(number)), 4);
}

}  // namespace tools::parquet
