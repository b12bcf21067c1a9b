// Writes one event of every type and prints, a line each, what a reader has to make of it.
#include <cstdio>

#include "every_type.h"

int main() {
  using eh::testing::EveryType;
  for (const auto& row : EveryType()) {
    if (row.write() != eh::WriteResult::kWritten) return 1;
    std::printf("{\"type\":\"%s\",\"value\":%s}\n", row.name.c_str(), row.json.c_str());
  }
  return 0;
}
