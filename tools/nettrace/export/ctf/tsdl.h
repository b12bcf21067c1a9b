// Names and text from files in TSDL, the language of a CTF 1.8 trace's metadata. They may be any
// bytes; what comes out is valid TSDL, whatever they are.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_
#define TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace tools::ctf {

// The text in double quotes, in one line; control characters as \u and four digits.
std::string Quote(std::string_view text);

// `text` with '_' in place of what an identifier cannot have, cut after kMaxIdentifier bytes.
inline constexpr std::size_t kMaxIdentifier = 200;
std::string Identifier(std::string_view text);

// The names of one struct.
class FieldNames {
 public:
  // A name with '_' before it, which readers leave out: no name is a keyword then. A name that is
  // there already, or whose length's name is (see LengthName), gets _2, _3, ...
  std::string Add(std::string_view name);
  // The name of the field that has the number of elements of the sequence `name`.
  static std::string LengthName(std::string_view name);

 private:
  bool Take(const std::string& name);

  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_map<std::string, std::uint32_t> counts_;  // by name, so that each is counted on
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_
