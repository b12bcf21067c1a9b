// The functions that the document's block of code calls, and a call of the block's function.
#include <cstddef>

int CostlyToMake();

// The block.

int CostlyToMake() { return 200; }

int main() { Done("/", 1, "body", 4, eh::NewActivityId()); }
