// Waits in a test for the work of another thread or process.
#ifndef TESTS_SUPPORT_WAIT_UNTIL_H_
#define TESTS_SUPPORT_WAIT_UNTIL_H_

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace tests {

// Blocks until `condition` returns true; fails after `limit`.
template <typename Condition>
void WaitUntil(Condition condition, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "the condition did not become true";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace tests

#endif  // TESTS_SUPPORT_WAIT_UNTIL_H_
