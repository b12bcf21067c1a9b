// The functions that the test calls in each object that includes instrumented.h.
#ifndef TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_
#define TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_

// Number of ways to write an event, and the keyword of each. The last way uses a static set of an
// inline function. All objects may share this set, and it may be destroyed with any of them.
inline constexpr int kWays = 6;
inline constexpr int kKeywords[kWays] = {1, 2, 1, 1, 2, 4};

struct Object {
  int (*write)(int way, const char* text);  // Returns a WriteResult.
  int (*status)();
  int (*retry)();
};

#endif  // TESTS_VM_EVENTHEADER_SHARED_OBJECTS_OBJECT_H_
