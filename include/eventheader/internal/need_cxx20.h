// For headers that need C++20: they leave themselves out where EVENTHEADER_INTERNAL_CXX20 is not
// defined, so that the compiler says this one thing and not what else it does not know.
#ifndef EVENTHEADER_INTERNAL_NEED_CXX20_H_
#define EVENTHEADER_INTERNAL_NEED_CXX20_H_

#if __cplusplus >= 202002L
#define EVENTHEADER_INTERNAL_CXX20
#else
#error \
    "this header of libeventheader needs C++20 (-std=c++20); macros.h needs C++17, macros_c.h and eventheader_c.h C"
#endif

#endif  // EVENTHEADER_INTERNAL_NEED_CXX20_H_
