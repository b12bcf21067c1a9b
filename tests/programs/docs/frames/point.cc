// An event with a field of the struct that the document's block of code describes.
#include <eventheader/eh.h>

struct Point {
  int x, y;
};

inline constinit eh::Provider provider("MyCompany_MyService");

// The block.

constexpr eh::Event<provider, "Moved", eh::Traits{.keyword = 0x1}, eh::Field<"to", Point>> moved;

int main() { moved.Write(Point{1, 2}); }
