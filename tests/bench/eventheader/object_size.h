// Measures how many bytes an object file adds to a program.
#ifndef TESTS_BENCH_EVENTHEADER_OBJECT_SIZE_H_
#define TESTS_BENCH_EVENTHEADER_OBJECT_SIZE_H_

#include <cstddef>
#include <optional>
#include <string>

struct ObjectSize {
  std::size_t code = 0;
  std::size_t read_only = 0;  // Read-only data, without .eh_frame.
  std::size_t unwind = 0;     // .eh_frame
};

// Adds up the sections that are loaded, except notes and writable data. Returns nullopt if `path`
// is not a 64-bit ELF file. The file must have this machine's byte order.
std::optional<ObjectSize> SizeOfObject(const std::string& path);

#endif  // TESTS_BENCH_EVENTHEADER_OBJECT_SIZE_H_
