// A well-behaved service. Until SIGTERM, it writes numbered events of several kinds in turns, and a
// rare kind. It prints "enabled" with the first event that is recorded, and at the end as JSON how
// many events it wrote.
#include <eventheader/eh.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

constinit eh::Provider provider("Good");

using NumberField = eh::Field<"number", std::uint32_t>;
using TextField = eh::Field<"text", std::string_view>;

constexpr eh::Event<provider, "Kind0", eh::Traits{.keyword = 1}, NumberField> kind0;
constexpr eh::Event<provider, "Kind1", eh::Traits{.keyword = 1}, NumberField, TextField> kind1;
constexpr eh::Event<provider, "Kind2", eh::Traits{.keyword = 1}, TextField, NumberField> kind2;
constexpr eh::Event<provider, "Kind3", eh::Traits{.keyword = 1, .opcode = eh::Opcode::kSend},
                    NumberField>
    kind3;
constexpr eh::Event<provider, "Rare", eh::Traits{.keyword = 1}, NumberField> rare;

constexpr std::uint32_t kRareEach = 500;

eh::WriteResult WriteOne(std::uint32_t number) {
  if (number % kRareEach == 0) return rare.Write(number);
  switch (number % 4) {
    case 0:
      return kind0.Write(number);
    case 1:
      return kind1.Write(number, number % 3 == 0 ? "größe" : "number");
    case 2:
      return kind2.Write("before", number);
    default:
      return kind3.Write(number);
  }
}

volatile sig_atomic_t stop = 0;

}  // namespace

int main() {
  signal(SIGTERM, [](int) { stop = 1; });
  std::uint32_t number = 0;
  std::uint32_t not_written = 0;
  while (stop == 0) {
    const eh::WriteResult result = WriteOne(number);
    if (result == eh::WriteResult::kWritten) {
      if (number++ == 0) {
        std::puts("enabled");
        std::fflush(stdout);
      }
    } else if (number != 0) {
      ++not_written;
    }
    usleep(500);
  }
  std::printf("{\"written\":%u,\"notWritten\":%u}\n", number, not_written);
  return 0;
}
