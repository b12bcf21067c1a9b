// The classes of fields in a CTF trace, for both versions of the format. tsdl.h and metadata_json.h
// write them. All fields are packed: none has an alignment above one byte.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_FIELD_CLASS_H_
#define TOOLS_NETTRACE_EXPORT_CTF_FIELD_CLASS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tools::ctf {

struct Member;

struct FieldClass {
  enum class Kind : std::uint8_t { kInteger, kFloat, kBoolean, kText, kBytes, kStruct, kArray };

  static FieldClass Unsigned(unsigned bits);
  static FieldClass Signed(unsigned bits);
  static FieldClass Hex(unsigned bits);  // unsigned, displayed in hexadecimal
  static FieldClass Time();              // time of the trace's clock, 64 bits
  static FieldClass Float(unsigned bits);
  static FieldClass Boolean();  // one byte
  static FieldClass Text();     // UTF-8, terminated by NUL
  // Without `length`, a preceding member holds the length, in 32 bits. The same applies to Array.
  static FieldClass Bytes(std::optional<std::uint32_t> length = std::nullopt);
  static FieldClass Struct(std::vector<Member> members);
  // If `element` is an array or bytes, it becomes the member `value` of a struct.
  static FieldClass Array(FieldClass element, std::optional<std::uint32_t> length = std::nullopt);

  // Returns this class with a role of CTF 2, such as "packet-magic-number". CTF 1.8 has no roles;
  // there, the name of the field states its meaning.
  FieldClass For(const char* its_role) &&;
  // Returns whether a preceding member holds the number of elements or bytes.
  bool HasLengthBefore() const;

  Kind kind = Kind::kInteger;
  unsigned bits = 0;
  bool is_signed = false;
  bool is_hex = false;
  bool is_time = false;
  const char* role = nullptr;
  std::vector<std::pair<std::string, std::string>> names;  // (name, value) pairs of an integer
  std::vector<Member> members;
  std::vector<FieldClass> element;  // one element type, for arrays
  std::optional<std::uint32_t> length;
};

struct Member {
  std::string name;
  FieldClass field;
};

// Makes the names of one struct's members unique, including the names of their lengths.
class MemberNames {
 public:
  // Returns `name` if it and LengthName(name) are not taken yet. Otherwise, appends _2, _3 and so
  // on to `name` until this is true.
  std::string Add(std::string_view name);
  // Returns the name of the field that holds the length of `name`.
  static std::string LengthName(std::string_view name);

 private:
  bool Take(const std::string& name);

  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, std::uint32_t> counts_;  // last suffix that Add() tried, by name
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_FIELD_CLASS_H_
