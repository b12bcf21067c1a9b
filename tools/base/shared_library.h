// Finds functions in a library that is loaded only when it is needed.
#ifndef TOOLS_BASE_SHARED_LIBRARY_H_
#define TOOLS_BASE_SHARED_LIBRARY_H_

#include <dlfcn.h>

namespace base {

// Sets `*function` to the function with this name in `library`, which dlopen() returned. Returns
// whether the library has it.
template <typename Function>
bool FindFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

}  // namespace base

#endif  // TOOLS_BASE_SHARED_LIBRARY_H_
