// Makes the mangled names of C++ and Rust functions readable.
#ifndef TOOLS_TRACE_FUNCTION_NAME_H_
#define TOOLS_TRACE_FUNCTION_NAME_H_

#include <string>

namespace trace {

// Returns the readable form of a mangled name: "_ZN4Shop3buyEi" becomes "Shop::buy()". The types of
// parameters and the arguments of templates are left out. Other names and names whose readable form
// has more than 4096 bytes are returned unchanged. So are names in Rust's newer form ("_R...") if
// abseil is older than 20240722. Memory and time are bounded for hostile names.
std::string ReadableFunction(std::string name);

}  // namespace trace

#endif  // TOOLS_TRACE_FUNCTION_NAME_H_
