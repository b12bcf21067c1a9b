// A provider, and a call of the event that the document's block of code defines.
#include <eventheader/eh.h>

inline constinit eh::Provider provider("MyCompany_MyService");

// The block.

int main() { painted.Write(Color::kBlue); }
