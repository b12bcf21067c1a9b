// Writes TSDL, the language of a CTF 1.8 trace's metadata. Names and text from files may contain
// any bytes; the result is always valid TSDL.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_
#define TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "tools/nettrace/export/ctf/field_class.h"
#include "tools/nettrace/export/ctf/trace_class.h"

namespace tools::ctf {

// Returns the text in double quotes, on one line. Control characters become \u and four hexadecimal
// digits.
std::string Quote(std::string_view text);

inline constexpr std::size_t kMaxIdentifier = 200;  // bytes
// Returns `text` cut to kMaxIdentifier bytes, with '_' for each byte that is no letter or digit.
std::string Identifier(std::string_view text);

// Returns the contents of an event block, without the ids of the event class and its stream class.
std::string TsdlOf(const EventClass& event);

// Returns the whole metadata.
std::string TsdlOf(const TraceClass& trace);

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_TSDL_H_
