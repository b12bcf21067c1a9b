// Makes the mangled names of C++ and Rust functions readable.
#ifndef TOOLS_TRACE_FUNCTION_NAME_H_
#define TOOLS_TRACE_FUNCTION_NAME_H_

#include <string>

namespace trace {

// Returns the readable form of a mangled name: "_ZN4Shop3buyEi" becomes "Shop::buy()", and
// "_RNvC4shop3buy" becomes "shop::buy". For C++, the types of parameters and the arguments of
// templates are left out. For Rust, hashes are left out. Other names and names whose readable form
// has more than 4096 bytes are returned unchanged. Memory and time are bounded for hostile names.
std::string ReadableFunction(std::string name);

}  // namespace trace

#endif  // TOOLS_TRACE_FUNCTION_NAME_H_
