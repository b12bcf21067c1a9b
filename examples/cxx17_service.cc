// A service in C++17 that takes orders:
//   nettrace record -o orders.nettrace -e ExampleOrders_L4K1 -e ExampleOrders_L2K1
//       -- example-cxx17-service
//   nettrace dump orders.nettrace
#include <eventheader/macros.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#if __cplusplus >= 202002L
#error "compile this file as C++17"
#endif

struct Item {
  std::string name;
  std::int32_t pieces;
};
EVENTHEADER_DESCRIBE_STRUCT(Item, EVENTHEADER_MEMBER("name", name),
                            EVENTHEADER_MEMBER("pieces", pieces));

namespace {

constexpr std::uint64_t kOrders = 0x1;

EVENTHEADER_DEFINE_PROVIDER(provider, "ExampleOrders");

void Take(std::uint32_t number) {
  const eh::ActivityId order = eh::NewActivityId();
  const std::vector<Item> items = {{"bolt", static_cast<std::int32_t>(number)}, {"nut", 2}};
  const std::array<std::uint8_t, 16> customer = {0x12, 0x3e, 0x45, 0x67, 0xe8, 0x9b, 0x12, 0xd3,
                                                 0xa4, 0x56, 0x42, 0x66, 0x14, 0x17, 0x40, 0x00};
  const std::chrono::system_clock::time_point due(std::chrono::hours(24 * number));
  EVENTHEADER_EVENT(provider, "Order", eh::Level::kInformation, kOrders,
                    EVENTHEADER_OPCODE(eh::Opcode::kActivityStart), EVENTHEADER_ACTIVITY(order),
                    EVENTHEADER_FIELD("number", number), EVENTHEADER_UUID("customer", customer),
                    EVENTHEADER_FIELD("due", due), EVENTHEADER_FIELD("items", items));
  if (number % 2 == 1) {
    EVENTHEADER_EVENT(provider, "PrintFailed", eh::Level::kError, kOrders,
                      EVENTHEADER_ACTIVITY(order),
                      EVENTHEADER_FIELD("printer", "lp" + std::to_string(number)),
                      EVENTHEADER_FIELD_AS("error", ENOENT, eh::Format::kErrno));
  }
  EVENTHEADER_EVENT(provider, "Order", eh::Level::kInformation, kOrders,
                    EVENTHEADER_OPCODE(eh::Opcode::kActivityStop), EVENTHEADER_ACTIVITY(order));
}

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: example-cxx17-service [--orders N]\n\n"
      "Takes N orders (3), as provider ExampleOrders.\n\n"
      "example:\n  example-cxx17-service --orders 10\n\n"
      "exit status: 0 done, 2 wrong usage\n",
      to);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint32_t orders = 3;
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) return Usage(stdout, 0);
  if (argc == 3 && std::strcmp(argv[1], "--orders") == 0) {
    orders = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  } else if (argc != 1) {
    return Usage(stderr, 2);
  }
  for (std::uint32_t number = 0; number < orders; ++number) Take(number);

  const auto counters = provider.counters();
  std::printf("%llu events written, %llu failed; %s\n",
              static_cast<unsigned long long>(counters.written),
              static_cast<unsigned long long>(counters.failed),
              eh::RegistrationErrorText(provider.status()));
  return 0;
}
