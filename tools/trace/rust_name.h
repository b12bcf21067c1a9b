// Reads the mangled names that Rust compilers give to functions: "_R...", as defined by version 0
// of the scheme in RFC 2603 ("v0"). No library of Debian 12 reads them within bounds: abseil is
// older than the scheme, and rust_demangle() of libiberty bounds neither its time nor its output.
#ifndef TOOLS_TRACE_RUST_NAME_H_
#define TOOLS_TRACE_RUST_NAME_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trace {

// Returns the readable form of `mangled`: "_RNvMs_C4shopNtB4_4Sale3buy" becomes
// "<shop::Sale>::buy". This form has the arguments of generics, but not the hashes of crates or the
// suffix that a compiler adds after '.' or '$'. Returns nullopt if the name does not follow the
// scheme, or if its readable form has more than `max_size` bytes. Also returns nullopt for a
// hostile name that has too many parts or too much nesting. The time is bounded by a constant and
// the length of `mangled`.
std::optional<std::string> ReadableRustName(std::string_view mangled, std::size_t max_size);

}  // namespace trace

#endif  // TOOLS_TRACE_RUST_NAME_H_
