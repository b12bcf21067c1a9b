// All headers of this library need C++20. This header defines NETTRACE_CXX20 if the compiler has
// it. The other headers are empty without it, so that a build with an older standard reports only
// the #error below.
#ifndef NETTRACE_NEED_CXX20_H_
#define NETTRACE_NEED_CXX20_H_

#if __cplusplus >= 202002L
#define NETTRACE_CXX20
#else
#error "the headers of libnettrace need C++20 (-std=c++20)"
#endif

#endif  // NETTRACE_NEED_CXX20_H_
