// Defines EVENTHEADER_INTERNAL_CXX20 if the compiler has C++20. The headers that need it are empty
// without it, so that a build with an older standard reports only the #error below.
#ifndef EVENTHEADER_INTERNAL_NEED_CXX20_H_
#define EVENTHEADER_INTERNAL_NEED_CXX20_H_

#if __cplusplus >= 202002L
#define EVENTHEADER_INTERNAL_CXX20
#else
#error \
    "this header of libeventheader needs C++20 (-std=c++20); to write events in C++17, use macros.h; in C, macros_c.h or eventheader_c.h"
#endif

#endif  // EVENTHEADER_INTERNAL_NEED_CXX20_H_
