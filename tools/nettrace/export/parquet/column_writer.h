// Encodes the values of one column of a Parquet file.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_COLUMN_WRITER_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_COLUMN_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nettrace/export/parquet/page_compressor.h"
#include "tools/nettrace/export/parquet/thrift_writer.h"

namespace tools::parquet {

enum class ColumnType : std::uint8_t {
  kBoolean,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kTimestamp,  // nanoseconds since 1970, UTC
  kFloat,
  kDouble,
  kString,  // valid UTF-8
  kJson,    // valid UTF-8
  kBinary,
  kUuid,  // 16 bytes in network order
};

struct Column {
  std::string name;  // valid UTF-8
  ColumnType type = ColumnType::kString;
  bool is_optional = true;
  bool is_list = false;  // a list of optional values; the list itself is optional, too
  // Whether equal values are stored only once, as long as this saves space.
  bool has_dictionary = false;
  // Whether the file states the least and the greatest value of each row group. By these bounds,
  // readers skip row groups without the values that they search for.
  bool has_bounds = true;
};

// Appends the elements of the schema that describe a column. The schema is a list of structures.
void AppendSchema(const Column& column, ThriftWriter* schema);
// Returns the number of elements that AppendSchema appends for a column.
std::size_t CountSchemaElements(const Column& column);

// Encodes the values of a column, one row group after the other. Pages are compressed when they are
// complete, so memory holds the compressed pages of a row group and one open page.
//
// For each row, the caller passes one value, or several between BeginList and EndList if the column
// is a list, and then calls EndRow. Not thread-safe.
class ColumnWriter {
 public:
  static constexpr std::size_t kPageBytes = std::size_t{1} << 20;
  // A dictionary that has more than kMaxDictionaryBytes is not used for later pages of its row
  // group. The same applies to a dictionary that saves little space: one that has kCheckedEntries
  // entries after fewer than 2 * kCheckedEntries values.
  static constexpr std::size_t kMaxDictionaryBytes = std::size_t{1} << 20;
  static constexpr std::size_t kCheckedEntries = 4096;
  // Maximum bytes of a text that is a bound of a row group. If the least text is longer, it is cut.
  // If the greatest text is longer, the row group has no upper bound.
  static constexpr std::size_t kMaxBound = 64;

  // `compressor` must outlive this object.
  ColumnWriter(const Column& column, PageCompressor* compressor);

  void Null();
  // Adds an integer, a boolean or a timestamp. `bits` is the value, sign-extended to 64 bits if the
  // type is signed.
  void Whole(std::uint64_t bits);
  void Real(double value);             // kFloat and kDouble
  void Bytes(std::string_view bytes);  // all other types
  void BeginList() {
    in_list_ = true;
    next_repetition_ = 0;
  }
  void EndList();
  absl::Status EndRow() {
    return page_bytes_ >= kPageBytes || group_.dictionary_is_full ? EndPage() : absl::OkStatus();
  }

  // Returns the approximate memory of the values that were added since the last row group, in
  // bytes.
  std::size_t buffered() const {
    return group_.pages.size() + page_bytes_ + 3 * group_.dictionary.size();
  }
  // Ends the row group. Appends the bytes of the column to `out`, and the ColumnChunk that
  // describes them to `group`. `offset` is the offset in the file at which the caller writes these
  // bytes. Adds their sizes before and after compression to `*plain` and `*compressed`.
  absl::Status EndGroup(std::uint64_t offset, ThriftWriter* group, std::uint64_t* plain,
                        std::uint64_t* compressed, std::string* out);

 private:
  // Maps values to their indices in the dictionary. Numbers are found by their bits.
  struct Dictionary {
    absl::flat_hash_map<std::uint64_t, std::uint32_t> numbers;
    absl::flat_hash_map<std::string, std::uint32_t> texts;
    std::size_t size() const { return numbers.size() + texts.size(); }
  };

  // The state of a row group.
  struct Group {
    std::string pages;
    std::uint64_t pages_plain = 0;  // bytes of `pages` before compression
    std::uint64_t values = 0;       // in complete pages, including nulls
    std::uint64_t present = 0;      // values that are not null
    bool uses_dictionary = false;
    bool dictionary_is_full = false;
    Dictionary entries;
    std::string dictionary;  // the entries, encoded as PLAIN
    // The last value that was looked up in the dictionary.
    std::optional<std::uint64_t> last_number;
    std::optional<std::string> last_text;
    std::uint32_t last_index = 0;
    bool has_nan = false;
    // Bounds of the group's values: of numbers (as keys that have the order of the numbers), or of
    // texts.
    std::optional<std::uint64_t> least;
    std::uint64_t greatest = 0;
    std::optional<std::string> least_text;
    std::string greatest_text;
  };

  void AddLevels(std::uint8_t definition);
  void AddPresent() { AddLevels(max_definition_); }
  void AddIndex(std::uint32_t index);
  void AppendNumber(std::uint64_t bits, std::string* out);
  void AppendBytes(std::string_view bytes, std::string* out);
  // Called after an entry was added. If the dictionary has become too large, or its values rarely
  // repeat, marks it as full: the page ends with the row, and later pages do not use it.
  void CheckDictionary();
  // Extend the bounds of the row group.
  void BoundNumber(std::uint64_t key);
  void BoundBytes(std::string_view bytes);

  absl::Status EndPage();
  // Appends the buffer of the compressor to `pages` as a page. `put_head` writes the fields of the
  // header that depend on the type of the page. Returns the bytes of the page before compression.
  template <typename PutHead>
  absl::StatusOr<std::uint64_t> AppendPage(std::int32_t type, const PutHead& put_head,
                                           std::string* pages);
  void PutEncodings(ThriftWriter* chunk) const;
  void PutStatistics(ThriftWriter* chunk) const;
  std::string BoundOf(std::uint64_t key, bool is_greatest) const;

  const Column column_;
  const std::uint8_t max_definition_;
  PageCompressor* const compressor_;

  // The open page.
  std::vector<std::uint8_t> definitions_;
  std::vector<std::uint8_t> repetitions_;  // only of lists
  std::vector<std::uint32_t> indices_;     // in the dictionary
  std::string plain_;                      // values that are not in the dictionary
  std::uint32_t page_values_ = 0;          // including nulls
  std::size_t page_bytes_ = 0;             // approximate
  bool in_list_ = false;
  std::uint8_t next_repetition_ = 0;

  Group group_;
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_COLUMN_WRITER_H_
