// Measures the stack use of writing an event. A signal handler's stack may have only 8 KiB.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "eventheader/eh.h"
#include "eventheader/macros.h"
#include "eventheader/testing/transport.h"

namespace eh {
namespace {

// A transport that accepts every event, and needs no stack.
class Sink final : public Transport {
 public:
  int Register(const char*, std::uint64_t* enable_word, unsigned bit,
               std::uint64_t*) noexcept override {
    *enable_word |= std::uint64_t{1} << bit;
    return 0;
  }
  void Unregister(std::uint64_t*, unsigned) noexcept override {}
  bool IsCurrent(std::uint64_t) noexcept override { return true; }
  int Write(std::uint64_t, std::span<std::byte>) noexcept override { return 0; }
};

inline constinit Provider provider("Test_Stack");
constexpr Event<provider, "E", Traits{}, Field<"f", std::string_view>> event;

// Returns how many bytes of its stack a new thread uses to run `function`.
std::size_t Depth(void (*function)()) {
  alignas(64) static std::array<std::byte, 256 * 1024> stack;
  stack.fill(std::byte{0xA5});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack.data(), stack.size());
  pthread_t thread;
  void* (*run)(void*) = [](void* what) -> void* {
    (*static_cast<void (**)()>(what))();
    return nullptr;
  };
  EXPECT_EQ(pthread_create(&thread, &attributes, run, &function), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return static_cast<std::size_t>(
      stack.end() - std::find_if(stack.begin(), stack.end(),
                                 [](std::byte byte) { return byte != std::byte{0xA5}; }));
}

TEST(Stack, SmallEventsTakeLittleOfIt) {
  Sink sink;
  provider.SetTransport(&sink);
  ASSERT_TRUE(event.enabled());
  const std::size_t nothing = Depth([] {});
  EXPECT_LT(Depth([] { event.Write("text"); }), nothing + 2048);
  EXPECT_LT(Depth([] { EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", "text")); }),
            nothing + 3072);
  EXPECT_EQ(provider.counters().written, 2u);
  provider.SetTransport(nullptr);
}

}  // namespace
}  // namespace eh
