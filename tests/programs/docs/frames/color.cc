// A provider, and a call of the event that the block defines.
#include <eventheader/eh.h>

inline constinit eh::Provider provider("MyCompany_MyService");

// The block.

int main() { painted.Write(Color::kBlue); }
