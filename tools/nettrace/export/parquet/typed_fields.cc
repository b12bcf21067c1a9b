#include "tools/nettrace/export/parquet/typed_fields.h"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "eventheader/internal/field_rules.h"
#include "libnettrace-writer/core/types.h"
#include "tools/base/text.h"

namespace tools::parquet {
namespace {

using nettrace::Type;
using nettrace::TypeCode;
using nettrace::internal::IsArray;
using nettrace::internal::IsCodeUnit;
using trace::FieldFormat;

ColumnType Unsigned(std::size_t size) {
  return size == 1   ? ColumnType::kUint8
         : size == 2 ? ColumnType::kUint16
         : size == 4 ? ColumnType::kUint32
                     : ColumnType::kUint64;
}
ColumnType Signed(std::size_t size) {
  return size == 1   ? ColumnType::kInt8
         : size == 2 ? ColumnType::kInt16
         : size == 4 ? ColumnType::kInt32
                     : ColumnType::kInt64;
}

// Returns the column type for values of a NetTrace type that is neither a struct nor an array.
ColumnType TypeOf(TypeCode code) {
  switch (code) {
    case TypeCode::kBoolean8:
    case TypeCode::kBoolean32:
      return ColumnType::kBoolean;
    case TypeCode::kSByte:
      return ColumnType::kInt8;
    case TypeCode::kByte:
      return ColumnType::kUint8;
    case TypeCode::kInt16:
      return ColumnType::kInt16;
    case TypeCode::kUInt16:
      return ColumnType::kUint16;
    case TypeCode::kInt32:
      return ColumnType::kInt32;
    case TypeCode::kUInt32:
      return ColumnType::kUint32;
    case TypeCode::kInt64:
    case TypeCode::kVarInt:
      return ColumnType::kInt64;
    case TypeCode::kUInt64:
    case TypeCode::kVarUInt:
      return ColumnType::kUint64;
    case TypeCode::kSingle:
      return ColumnType::kFloat;
    case TypeCode::kDouble:
      return ColumnType::kDouble;
    case TypeCode::kDecimal:
      return ColumnType::kBinary;
    case TypeCode::kDateTime:
      return ColumnType::kTimestamp;
    case TypeCode::kGuid:
      return ColumnType::kUuid;
    default:
      return ColumnType::kString;
  }
}

// Returns the column type for numbers of `size` bytes in an EventHeader format; nullopt if no type
// fits the format.
std::optional<ColumnType> TypeOf(eh::Format format, std::size_t size) {
  switch (format) {
    case eh::Format::kUnsignedInt:
    case eh::Format::kHexInt:
    case eh::Format::kPort:
      return Unsigned(size);
    case eh::Format::kSignedInt:
    case eh::Format::kErrno:
    case eh::Format::kPid:
      return Signed(size);
    case eh::Format::kTime:
      return ColumnType::kTimestamp;
    case eh::Format::kBoolean:
      return ColumnType::kBoolean;
    case eh::Format::kFloat:
      return size == 8 ? ColumnType::kDouble : ColumnType::kFloat;
    case eh::Format::kString8:
    case eh::Format::kStringUtf:
      return ColumnType::kString;
    default:
      return std::nullopt;
  }
}

// Returns the column type for values that the trace contains as bytes.
ColumnType TypeOfBytes(const trace::FieldNote& note) {
  const std::size_t size = eh::internal::FixedSize(note.encoding);
  const eh::Format format = eh::internal::ShownFormat(note.encoding, note.format);
  switch (format) {
    case eh::Format::kUuid:
      return ColumnType::kUuid;
    case eh::Format::kHexBytes:
      return ColumnType::kBinary;
    default:
      break;
  }
  if (size == 0) return ColumnType::kString;
  return TypeOf(format, size).value_or(ColumnType::kString);
}

// Returns the column type for a single value. `type` is no struct, and an array only if it is a
// text.
ColumnType TypeOfValue(const Type& type, const FieldFormat* format) {
  using Values = FieldFormat::Values;
  if (format != nullptr &&
      (format->values == Values::kBytes || format->values == Values::kWrappedBytes)) {
    return TypeOfBytes(format->note);
  }
  if (format != nullptr && format->values != Values::kAsTyped &&
      format->values != Values::kNullOrText) {
    const eh::Encoding encoding = format->note.encoding;
    const eh::Format shown = eh::internal::ShownFormat(encoding, format->note.format);
    const std::size_t size = eh::internal::FixedSize(encoding);
    // NetTrace has types for floats of each size, so their format adds nothing.
    if (size != 0 && shown != eh::Format::kFloat) {
      if (const std::optional<ColumnType> number = TypeOf(shown, size)) return *number;
    }
  }
  return IsArray(type) ? ColumnType::kString : TypeOf(type.code);
}

// Returns the type of the elements if the array becomes a list of values. Otherwise returns null,
// and sets `*is_value` to whether the array becomes a single value, and not JSON.
const Type* ElementOf(const Type& type, const FieldFormat* format, bool* is_value) {
  using Values = FieldFormat::Values;
  const Values values = format == nullptr ? Values::kAsTyped : format->values;
  const Type& element = type.element.front();
  *is_value = IsCodeUnit(element) || values == Values::kBytes || values == Values::kNullOrNumber;
  if (*is_value) return nullptr;
  if (values == Values::kWrappedBytes || values == Values::kWrappedNullOrNumber) {
    return &element.fields.front().type.element.front();
  }
  if (element.code == TypeCode::kObject) return nullptr;
  if (IsArray(element) && !IsCodeUnit(element.element.front())) return nullptr;
  return &element;
}

// Makes the columns of fields, and gives them names that differ.
class Columns {
 public:
  explicit Columns(const std::vector<Column>& taken) {
    for (const Column& column : taken) reserved_.insert(absl::AsciiStrToLower(column.name));
  }
  void Add(const std::vector<nettrace::Field>& fields, const std::vector<FieldFormat>* formats,
           const std::string& parent) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const FieldFormat* const format =
          formats != nullptr && i < formats->size() ? &(*formats)[i] : nullptr;
      const std::string name = parent + base::ValidUtf8(fields[i].name);
      if (fields[i].type.code == TypeCode::kObject) {
        Add(fields[i].type.fields, format == nullptr ? nullptr : &format->members, name + ".");
      } else {
        columns_.push_back(ColumnFor(fields[i].type, format));
        columns_.back().name = FreeName(name);
      }
    }
  }
  std::vector<Column> Take() { return std::move(columns_); }

 private:
  static Column ColumnFor(const Type& type, const FieldFormat* format) {
    Column column;
    bool is_value = true;
    const Type* const element = IsArray(type) ? ElementOf(type, format, &is_value) : nullptr;
    if (element != nullptr) {
      column.is_list = true;
      column.type = TypeOfValue(*element, format);
    } else if (is_value) {
      column.type = TypeOfValue(
          IsArray(type) && !IsCodeUnit(type.element.front()) ? type.element.front() : type, format);
    } else {
      column.type = ColumnType::kJson;
    }
    column.has_dictionary = column.type == ColumnType::kString;
    column.has_bounds = column.type != ColumnType::kJson && column.type != ColumnType::kUuid &&
                        column.type != ColumnType::kBinary && !column.is_list;
    return column;
  }
  std::string FreeName(const std::string& name) {
    std::string base = name;
    if (reserved_.contains(absl::AsciiStrToLower(base))) base = "field." + name;
    std::string free = base;
    for (int number = 2; reserved_.contains(absl::AsciiStrToLower(free)) ||
                         !used_.insert(absl::AsciiStrToLower(free)).second;
         ++number) {
      free = absl::StrCat(base, "_", number);
    }
    return free;
  }

  absl::flat_hash_set<std::string> reserved_;  // in lower case
  absl::flat_hash_set<std::string> used_;      // in lower case
  std::vector<Column> columns_;
};

// Returns whether an integer is in the range of the type. `bits` is the integer in two's
// complement, and `is_negative` states whether it is below 0.
bool Fits(ColumnType type, std::uint64_t bits, bool is_negative) {
  const auto up_to = [&](std::uint64_t greatest) { return !is_negative && bits <= greatest; };
  const auto within = [&](std::int64_t least, std::int64_t greatest) {
    return is_negative ? static_cast<std::int64_t>(bits) >= least
                       : bits <= static_cast<std::uint64_t>(greatest);
  };
  switch (type) {
    case ColumnType::kBoolean:
      return up_to(1);
    case ColumnType::kUint8:
      return up_to(std::numeric_limits<std::uint8_t>::max());
    case ColumnType::kUint16:
      return up_to(std::numeric_limits<std::uint16_t>::max());
    case ColumnType::kUint32:
      return up_to(std::numeric_limits<std::uint32_t>::max());
    case ColumnType::kUint64:
      return !is_negative;
    case ColumnType::kInt8:
      return within(std::numeric_limits<std::int8_t>::min(),
                    std::numeric_limits<std::int8_t>::max());
    case ColumnType::kInt16:
      return within(std::numeric_limits<std::int16_t>::min(),
                    std::numeric_limits<std::int16_t>::max());
    case ColumnType::kInt32:
      return within(std::numeric_limits<std::int32_t>::min(),
                    std::numeric_limits<std::int32_t>::max());
    case ColumnType::kInt64:
      return within(std::numeric_limits<std::int64_t>::min(),
                    std::numeric_limits<std::int64_t>::max());
    default:
      return false;
  }
}

bool IsInteger(ColumnType type) { return type >= ColumnType::kInt8 && type <= ColumnType::kUint64; }

// Parses the text form of a UUID. Returns its bytes, or nullopt if the text is no UUID.
std::optional<std::array<char, 16>> ParseUuid(std::string_view text) {
  std::array<char, 16> bytes = {};
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int value = absl::ascii_isdigit(static_cast<unsigned char>(c)) ? c - '0' : c - 'a' + 10;
    if (digits == 32 || value < 0 || value > 15) return std::nullopt;
    char& byte = bytes[digits / 2];
    byte = static_cast<char>(static_cast<unsigned char>(byte) << 4 | value);
    ++digits;
  }
  if (digits != 32) return std::nullopt;
  return bytes;
}

// Parses a time in the form that `nettrace dump` prints. Returns ns since 1970, or nullopt.
std::optional<std::int64_t> ParseTime(std::string_view text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, absl::string_view(text.data(), text.size()), &time,
                       &error)) {
    return std::nullopt;
  }
  const std::int64_t nanoseconds = absl::ToUnixNanos(time);
  using Limits = std::numeric_limits<std::int64_t>;
  if (nanoseconds == Limits::min() || nanoseconds == Limits::max()) return std::nullopt;
  return nanoseconds;
}

}  // namespace

std::vector<Column> FieldColumns(const nettrace::EventMetadata& metadata,
                                 const trace::RowNotes& notes, bool is_raw,
                                 const std::vector<Column>& taken) {
  Columns columns(taken);
  columns.Add(metadata.fields, is_raw ? nullptr : &notes.formats, "");
  return columns.Take();
}

absl::Status TypedFields::Put(const nettrace::Event& event, std::size_t first, std::size_t end,
                              trace::PayloadJson* payloads, TableWriter* table) {
  table_ = table;
  next_ = first;
  end_ = end;
  depth_ = skipped_ = 0;
  is_json_ = false;
  mismatch_.clear();
  absl::Status status = payloads->PutMembers(event, this);
  while (depth_ > 0) EndArray();
  while (next_ < end_) table_->column(next_++).Null();
  if (!status.ok() || mismatch_.empty()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(mismatch_, ": the value does not fit the type of the column"));
}

void TypedFields::BeginArray() {
  if (next_ >= end_) return;
  ++depth_;
  if (is_json_) return json_.BeginArray();
  if (skipped_ != 0) return;
  if (depth_ == 1 && type() == ColumnType::kJson) {
    is_json_ = true;
    buffer_.Clear();
    writer_.Reset(buffer_);
    return json_.BeginArray();
  }
  if (depth_ == 1 && table_->columns()[next_].is_list) return table_->column(next_).BeginList();
  skipped_ = depth_;
}

void TypedFields::EndArray() {
  if (next_ >= end_) return;
  const int depth = depth_--;
  if (is_json_) {
    json_.EndArray();
    if (depth_ != 0) return;
    is_json_ = false;
    table_->column(next_).Bytes({buffer_.GetString(), buffer_.GetSize()});
  } else if (skipped_ != 0) {
    if (skipped_ != depth) return;
    skipped_ = 0;
    Mismatch(&table_->column(next_));
    return;
  } else {
    table_->column(next_).EndList();
  }
  Advance();
}

ColumnWriter* TypedFields::Target() {
  if (skipped_ != 0 || next_ >= end_) return nullptr;
  return &table_->column(next_);
}

void TypedFields::Mismatch(ColumnWriter* column) {
  if (mismatch_.empty()) mismatch_ = table_->columns()[next_].name;
  column->Null();
  Advance();
}

void TypedFields::Null() {
  if (is_json_) return json_.Null();
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  column->Null();
  Advance();
}

void TypedFields::Bool(bool value) {
  if (is_json_) return json_.Bool(value);
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  if (type() != ColumnType::kBoolean) return Mismatch(column);
  column->Whole(value ? 1 : 0);
  Advance();
}

void TypedFields::Whole(std::int64_t value) {
  if (value >= 0) return Whole(static_cast<std::uint64_t>(value));
  if (is_json_) return json_.Whole(value);
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  if (!Fits(type(), static_cast<std::uint64_t>(value), /*is_negative=*/true)) {
    return Mismatch(column);
  }
  column->Whole(static_cast<std::uint64_t>(value));
  Advance();
}

void TypedFields::Whole(std::uint64_t value) {
  if (is_json_) return json_.Whole(value);
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  if (type() == ColumnType::kString) {
    text_.clear();
    base::AppendNumber(value, &text_);
    column->Bytes(text_);
  } else if (Fits(type(), value, /*is_negative=*/false)) {
    column->Whole(value);
  } else {
    return Mismatch(column);
  }
  Advance();
}

void TypedFields::Double(double value) {
  if (is_json_) return json_.Double(value);
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  if (type() != ColumnType::kDouble && type() != ColumnType::kFloat) return Mismatch(column);
  column->Real(value);
  Advance();
}

void TypedFields::Single(float value) {
  if (is_json_) return json_.Single(value);
  Double(value);
}

void TypedFields::Text(std::string_view utf8) {
  if (is_json_) return json_.Text(utf8);
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  if (type() == ColumnType::kString) {
    column->Bytes(utf8);
  } else if (type() == ColumnType::kUuid) {
    const std::optional<std::array<char, 16>> uuid = ParseUuid(utf8);
    if (!uuid) return Mismatch(column);
    column->Bytes({uuid->data(), uuid->size()});
  } else if (type() == ColumnType::kTimestamp) {
    const std::optional<std::int64_t> time = ParseTime(utf8);
    if (!time) return Mismatch(column);
    column->Whole(static_cast<std::uint64_t>(*time));
  } else {
    // Fields with the hexadecimal format have texts such as 0x1f, and their columns are integers.
    const std::optional<std::uint64_t> number =
        IsInteger(type()) ? base::ParseUint64(utf8) : std::nullopt;
    if (!number || !Fits(type(), *number, /*is_negative=*/false)) return Mismatch(column);
    column->Whole(*number);
  }
  Advance();
}

void TypedFields::Bytes(std::span<const std::byte> bytes) {
  if (is_json_) return json_.Bytes(bytes);
  ColumnWriter* const column = Target();
  if (column == nullptr) return;
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (type() == ColumnType::kBinary || (type() == ColumnType::kUuid && bytes.size() == 16)) {
    column->Bytes(view);
  } else if (type() == ColumnType::kString) {
    column->Bytes(base::FormatHex(bytes));
  } else {
    return Mismatch(column);
  }
  Advance();
}

}  // namespace tools::parquet
