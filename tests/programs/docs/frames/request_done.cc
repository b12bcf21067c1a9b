// What the block calls, and a call of it.
#include <cstddef>

int CostlyToMake();

// The block.

int CostlyToMake() { return 200; }

int main() { Done("/", 1, "body", 4, eh::NewActivityId()); }
