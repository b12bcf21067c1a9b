// Writes one event of every type and prints, one on each line, the values that a reader must show.
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
