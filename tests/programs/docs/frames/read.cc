// The functions that the document's block of code calls for an event, and for an error.
#include <nettrace/reader.h>

#include <cstdio>

namespace {

using nettrace::Reader;

void Use(const nettrace::Event& event) { std::printf("%d\n", event.level()); }

void Tell(const absl::Status& status) { std::printf("%s\n", status.ToString().c_str()); }

}  // namespace

int main() {
  // The block.
  return 0;
}
