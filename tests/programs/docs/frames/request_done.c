/* The functions that the document's block of code calls, and a call of the block's function. */
int CostlyToMake(void);

// The block.

int CostlyToMake(void) { return 200; }

int main(void) {
  static const uint8_t id[16] = {1};
  Done("/", 1, "body", 4, id);
  return 0;
}
