// Defines EVENTHEADER_INTERNAL_CXX17 if the compiler has C++17. The headers that need it are empty
// without it, so that a build with an older standard reports only the #error below.
#ifndef EVENTHEADER_INTERNAL_NEED_CXX17_H_
#define EVENTHEADER_INTERNAL_NEED_CXX17_H_

#if __cplusplus >= 201703L
#define EVENTHEADER_INTERNAL_CXX17
#else
#error \
    "this header of libeventheader needs C++17 (-std=c++17); macros_c.h and eventheader_c.h need only C"
#endif

#endif  // EVENTHEADER_INTERNAL_NEED_CXX17_H_
