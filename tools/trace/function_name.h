// Shows the names that compilers give to functions of C++ and Rust as users write them.
#ifndef TOOLS_TRACE_FUNCTION_NAME_H_
#define TOOLS_TRACE_FUNCTION_NAME_H_

#include <string>
#include <string_view>

namespace trace {

// Returns the name of the function that has this symbol: `std::vector<>::push_back()` for
// `_ZNSt6vectorIiSaIiEE9push_backEOi`. Arguments of functions and templates are left out, so that
// names are short, and the work is linear in the length of a hostile symbol. Returns `symbol` if it
// is not mangled or cannot be demangled.
std::string FunctionName(std::string_view symbol);

}  // namespace trace

#endif  // TOOLS_TRACE_FUNCTION_NAME_H_
