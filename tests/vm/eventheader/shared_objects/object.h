// The functions that the test calls in each object that includes instrumented.h.
#ifndef TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_
#define TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_

// Ways to write an event: to keyword 1, 2, 1, 1, 2, 4. The last way uses a set of the header that
// objects may share. It can be destroyed with any of them, like a static object of an inline
// function.
inline constexpr int kWays = 6;
inline constexpr int kKeywords[kWays] = {1, 2, 1, 1, 2, 4};

struct Object {
  int (*write)(int way, const char* text);  // Returns a WriteResult.
  int (*status)();
  int (*retry)();
};

#endif  // TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_
