// Descriptions of a trace, its events, threads and labels, for Writer and Reader. All are plain
// values: a copy does not refer to the original.
#ifndef NETTRACE_SCHEMA_H_
#define NETTRACE_SCHEMA_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "nettrace/format.h"

namespace nettrace {

using KeyValues = std::vector<std::pair<std::string, std::string>>;
// A GUID as in the file: i32, i16, i16 little-endian, then 8 bytes. See GuidFromUuid.
using Guid = std::array<std::byte, 16>;

// Reorders an RFC 4122 UUID (network order) into the file's Guid. Also converts a Guid back.
constexpr Guid GuidFromUuid(const std::array<std::byte, 16>& uuid) {
  return {uuid[3], uuid[2], uuid[1],  uuid[0],  uuid[5],  uuid[4],  uuid[7],  uuid[6],
          uuid[8], uuid[9], uuid[10], uuid[11], uuid[12], uuid[13], uuid[14], uuid[15]};
}

struct Field;

// The type of a payload field.
struct Type {
  TypeCode code = TypeCode::kInt32;
  std::vector<Type> element;  // 1 type for kArray, kFixedLengthArray, kRelLoc, kDataLoc; else empty
  std::uint16_t count = 0;    // elements of a kFixedLengthArray
  std::vector<Field> fields;  // members of a kObject

  static Type Simple(TypeCode code);
  static Type Array(Type element);
  static Type FixedLengthArray(Type element, std::uint16_t count);
  static Type RelLoc(Type element);
  static Type DataLoc(Type element);
  static Type Object(std::vector<Field> fields);

  friend bool operator==(const Type&, const Type&);
};

struct Field {
  std::string name;
  Type type;
  friend bool operator==(const Field&, const Field&) = default;
};

// The contents of the Trace block.
struct TraceInfo {
  absl::Time sync_time;         // UTC; the file stores it with a precision of 1 ms
  std::int64_t sync_ticks = 0;  // value of the trace's clock at sync_time
  std::int64_t ticks_per_second = 1'000'000'000;
  std::int32_t pointer_size = 8;  // bytes
  KeyValues key_values;
};

// A row of the metadata table: the schema of the events that refer to it.
struct EventMetadata {
  std::string provider;
  // TraceEvent requires an id of at most 65534 that differs for each combination of name, fields
  // and opcode of the provider.
  std::uint32_t event_id = 0;
  std::string name;
  std::vector<Field> fields;
  std::optional<std::uint8_t> opcode;
  std::optional<std::uint64_t> keywords;
  std::optional<std::uint8_t> level;
  std::optional<std::uint8_t> version;
  std::optional<std::string> message_template;
  std::optional<std::string> description;
  std::optional<Guid> provider_guid;
  KeyValues key_values;
  friend bool operator==(const EventMetadata&, const EventMetadata&) = default;
};

struct ThreadInfo {
  std::optional<std::string> name;
  std::optional<std::uint64_t> process_id;
  std::optional<std::uint64_t> thread_id;
  KeyValues key_values;
  friend bool operator==(const ThreadInfo&, const ThreadInfo&) = default;
};

// A label list. The file keeps the order within `strings` and within `integers`.
struct Labels {
  std::optional<Guid> activity_id;
  std::optional<Guid> related_activity_id;
  std::optional<std::array<std::byte, 16>> trace_id;
  std::optional<std::uint64_t> span_id;
  std::optional<std::uint8_t> opcode;
  std::optional<std::uint64_t> keywords;
  std::optional<std::uint8_t> level;
  std::optional<std::uint8_t> version;
  KeyValues strings;
  std::vector<std::pair<std::string, std::int64_t>> integers;

  bool empty() const {
    return !activity_id && !related_activity_id && !trace_id && !span_id && !opcode && !keywords &&
           !level && !version && strings.empty() && integers.empty();
  }
  friend bool operator==(const Labels&, const Labels&) = default;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_SCHEMA_H_
