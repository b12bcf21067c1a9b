// The functions that the test calls in each object that includes instrumented.h.
#ifndef TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_
#define TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_

// Ways to write an event: to keyword 1, 2, 1, 1, 2, 4. The last is by a set of the header's that
// objects may share, so that it can go with any of them, as static objects of inline functions do.
inline constexpr int kWays = 6;
inline constexpr int kKeywords[kWays] = {1, 2, 1, 1, 2, 4};

struct Object {
  int (*write)(int way, const char* text);  // returns a WriteResult
  int (*status)();
  int (*retry)();
};

#endif  // TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_
