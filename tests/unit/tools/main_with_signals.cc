// The main function of tests that need CatchSignals, which must be called once, before there are
// other threads.
#include <gtest/gtest.h>

#include "tools/common/signals.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return tools::CatchSignals().ok() ? RUN_ALL_TESTS() : 1;
}
