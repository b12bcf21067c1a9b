// For headers that need C++17; see need_cxx20.h.
#ifndef EVENTHEADER_INTERNAL_NEED_CXX17_H_
#define EVENTHEADER_INTERNAL_NEED_CXX17_H_

#if __cplusplus >= 201703L
#define EVENTHEADER_INTERNAL_CXX17
#else
#error \
    "this header of libeventheader needs C++17 (-std=c++17); macros_c.h and eventheader_c.h need only C"
#endif

#endif  // EVENTHEADER_INTERNAL_NEED_CXX17_H_
