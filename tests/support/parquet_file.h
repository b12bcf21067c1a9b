// Reads the structure of Parquet files for tests: the metadata at the end, and the pages. Fails on
// everything that a file of `nettrace export` must not have.
#ifndef TESTS_SUPPORT_PARQUET_FILE_H_
#define TESTS_SUPPORT_PARQUET_FILE_H_

#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tests {

// A value in Thrift's compact protocol. Fields of a structure are found by their numbers.
struct Thrift {
  std::int64_t number = 0;  // an integer; 0 or 1 for a boolean
  std::string bytes;
  std::vector<Thrift> list;
  std::map<int, Thrift> fields;

  const Thrift& operator[](int field) const {
    static const Thrift none;
    const auto found = fields.find(field);
    return found == fields.end() ? none : found->second;
  }
  bool has(int field) const { return fields.contains(field); }
};

// Parses one structure. `ok` becomes false if the bytes are not valid.
class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : rest_(bytes) {}

  Thrift Struct() {
    Thrift result;
    int field = 0;
    for (std::uint8_t head = Byte(); ok && head != 0; head = Byte()) {
      field = (head >> 4) != 0 ? field + (head >> 4) : static_cast<int>(ZigZag());
      if (result.fields.contains(field)) ok = false;
      result.fields[field] = Value(head & 0xF, /*in_list=*/false);
    }
    return result;
  }
  std::string_view rest() const { return rest_; }
  bool ok = true;

 private:
  std::uint8_t Byte() {
    if (rest_.empty()) {
      ok = false;
      return 0;
    }
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::uint64_t Varint() {
    std::uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = Byte();
      result |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return result;
    }
    ok = false;
    return 0;
  }
  std::int64_t ZigZag() {
    const std::uint64_t bits = Varint();
    return static_cast<std::int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  }
  Thrift Value(int type, bool in_list) {
    Thrift result;
    switch (type) {
      case 1:
      case 2:
        result.number = in_list ? Byte() == 1 : type == 1;
        break;
      case 3:
        result.number = static_cast<std::int8_t>(Byte());
        break;
      case 4:
      case 5:
      case 6:
        result.number = ZigZag();
        break;
      case 8: {
        const std::uint64_t size = Varint();
        if (size > rest_.size()) {
          ok = false;
          break;
        }
        result.bytes = rest_.substr(0, size);
        rest_.remove_prefix(size);
        break;
      }
      case 9:
      case 10: {
        const std::uint8_t head = Byte();
        const std::uint64_t size = head >> 4 == 15 ? Varint() : head >> 4;
        for (std::uint64_t i = 0; ok && i < size; ++i) {
          result.list.push_back(Value(head & 0xF, /*in_list=*/true));
        }
        break;
      }
      case 12:
        result = Struct();
        break;
      default:
        ok = false;
        break;
    }
    return result;
  }

  std::string_view rest_;
};

// Returns the structure FileMetaData of a file, or nullopt if the file is not valid.
inline std::optional<Thrift> ReadParquetMetadata(std::string_view file) {
  constexpr std::string_view kMagic = "PAR1";
  if (file.size() < 12 || !file.starts_with(kMagic) || !file.ends_with(kMagic)) return std::nullopt;
  std::uint32_t size = 0;
  std::memcpy(&size, file.data() + file.size() - 8, sizeof size);
  if (size > file.size() - 12) return std::nullopt;
  ThriftReader reader(file.substr(file.size() - 8 - size, size));
  Thrift metadata = reader.Struct();
  if (!reader.ok || !reader.rest().empty()) return std::nullopt;
  return metadata;
}

// A page of a column: its header, and its bytes after decompression.
struct ParquetPage {
  Thrift header;
  std::string bytes;
};

// Returns the pages of a column in a row group, which ColumnMetaData describes. Returns nullopt if
// they are not valid.
inline std::optional<std::vector<ParquetPage>> ReadParquetPages(std::string_view file,
                                                                const Thrift& column) {
  const auto begin = static_cast<std::size_t>(column[column.has(11) ? 11 : 9].number);
  const auto size = static_cast<std::size_t>(column[7].number);
  if (begin > file.size() || size > file.size() - begin) return std::nullopt;
  std::string_view rest = file.substr(begin, size);
  std::vector<ParquetPage> pages;
  while (!rest.empty()) {
    ThriftReader reader(rest);
    ParquetPage& page = pages.emplace_back();
    page.header = reader.Struct();
    const auto compressed = static_cast<std::size_t>(page.header[3].number);
    if (!reader.ok || compressed > reader.rest().size()) return std::nullopt;
    page.bytes.resize(static_cast<std::size_t>(page.header[2].number));
    if (ZSTD_decompress(page.bytes.data(), page.bytes.size(), reader.rest().data(), compressed) !=
        page.bytes.size()) {
      return std::nullopt;
    }
    rest = reader.rest().substr(compressed);
  }
  return pages;
}

}  // namespace tests

#endif  // TESTS_SUPPORT_PARQUET_FILE_H_
