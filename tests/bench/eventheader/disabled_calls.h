// Calls of events that are not enabled.
#ifndef TESTS_BENCH_EVENTHEADER_DISABLED_CALLS_H_
#define TESTS_BENCH_EVENTHEADER_DISABLED_CALLS_H_

#include <cstdint>
#include <string>
#include <string_view>

struct Request {
  std::int32_t number;
  std::int32_t status;
  std::string path;
};

extern "C" {
// The arguments are already in registers.
void WriteDisabled(std::int32_t number, std::int32_t status, std::string_view path);
// The arguments are not loaded unless the event is enabled.
void WriteDisabledByMacro(const Request& request);
// Like WriteDisabledByMacro, with EVENTHEADER_EVENT, which also defines the event.
void WriteDisabledByCxx17(const Request& request);
}

#endif  // TESTS_BENCH_EVENTHEADER_DISABLED_CALLS_H_
