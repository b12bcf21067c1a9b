// The classes of a CTF trace's fields, for both versions of the format: tsdl.h and metadata_json.h
// write them down. All fields are packed: none is aligned to more than a byte.
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
  static FieldClass Hex(unsigned bits);  // unsigned, and to be shown in hexadecimal
  static FieldClass Time();              // of the trace's clock, 64 bits
  static FieldClass Float(unsigned bits);
  static FieldClass Boolean();  // a byte
  static FieldClass Text();     // UTF-8 up to a NUL
  // Without a length, the member before it has it, of 32 bits; so it is with arrays.
  static FieldClass Bytes(std::optional<std::uint32_t> length = std::nullopt);
  static FieldClass Struct(std::vector<Member> members);
  // An element that needs a length before it becomes the member `value` of a struct.
  static FieldClass Array(FieldClass element, std::optional<std::uint32_t> length = std::nullopt);

  // With the role that the field has. In CTF 1.8 its name says that.
  FieldClass For(const char* its_role) &&;
  // Whether a member before it has the number of its elements or bytes.
  bool HasLengthBefore() const;

  Kind kind = Kind::kInteger;
  unsigned bits = 0;
  bool is_signed = false;
  bool is_hex = false;
  bool is_time = false;
  const char* role = nullptr;
  std::vector<std::pair<std::string, std::string>> names;  // of an integer's values: name, value
  std::vector<Member> members;
  std::vector<FieldClass> element;  // one, of an array
  std::optional<std::uint32_t> length;
};

struct Member {
  std::string name;
  FieldClass field;
};

// The names of one struct's members, and of the lengths before them.
class MemberNames {
 public:
  // `name`; with _2, _3, ... behind it if it is there already, or its length's name is.
  std::string Add(std::string_view name);
  // The name of the field that has the length of `name`.
  static std::string LengthName(std::string_view name);

 private:
  bool Take(const std::string& name);

  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, std::uint32_t> counts_;  // by name, so that each is counted on
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_FIELD_CLASS_H_
