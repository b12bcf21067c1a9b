// TSDL, the language of a CTF 1.8 trace's metadata. Names and text from files may be any bytes;
// what comes out is valid TSDL, whatever they are.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_
#define TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/nettrace/export/ctf/field_class.h"
#include "tools/nettrace/export/ctf/trace_class.h"

namespace tools::ctf {

// The text in double quotes, in one line; control characters as \u and four digits.
std::string Quote(std::string_view text);

// `text` with '_' in place of what an identifier cannot have, cut after kMaxIdentifier bytes.
inline constexpr std::size_t kMaxIdentifier = 200;
std::string Identifier(std::string_view text);

// What an event block has beside its numbers.
std::string TsdlOf(const EventClass& event);

// The whole metadata.
std::string TsdlOf(const TraceClass& trace);

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_
