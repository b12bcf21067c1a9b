// The main function of tests that need CatchSignals, which must be called once, before there are
// other threads.
#include <gtest/gtest.h>

#include "tools/cli/signals.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return cli::CatchSignals().ok() ? RUN_ALL_TESTS() : 1;
}
