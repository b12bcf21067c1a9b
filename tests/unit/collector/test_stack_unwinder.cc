#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tools/base/unique_fd.h"
#include "tools/collector/perf/user_registers.h"
#include "tools/collector/unwind/stack_unwinder.h"
#include "tools/collector/unwind/stack_walk.h"

namespace collector {
namespace {

constexpr std::size_t kDepth = 20;
constexpr std::size_t kMaxFrames = 500;

// Holds a copy of the registers and the stack of this thread, and the return addresses of the calls
// that led to the copy, innermost first.
struct Captured {
  ThreadState state;
  std::vector<std::byte> stack;
  std::vector<std::uint64_t> callers;
};

void ReadRegisters(const ucontext_t& context, ThreadState* state) {
#if defined(__x86_64__)
  // The registers in the order of DWARF; the last one is the program counter.
  constexpr std::array kOrder = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                 REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (std::size_t i = 0; i < kOrder.size(); ++i) {
    state->registers[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kOrder[i]]);
  }
#elif defined(__aarch64__)
  for (std::size_t i = 0; i < 31; ++i) state->registers[i] = context.uc_mcontext.regs[i];
  state->registers[kStackPointer] = context.uc_mcontext.sp;
  state->registers[kProgramCounter] = context.uc_mcontext.pc;
#endif
}

[[gnu::noinline]] void Capture(Captured* captured, std::size_t bytes) {
  captured->callers.push_back(reinterpret_cast<std::uint64_t>(__builtin_return_address(0)));
  std::reverse(captured->callers.begin(), captured->callers.end());
  ucontext_t context;
  ASSERT_EQ(getcontext(&context), 0);
  ReadRegisters(context, &captured->state);
  captured->stack.resize(bytes);
  // Reads the memory through a file, because the stack has parts that sanitizers protect.
  const base::UniqueFd memory(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  const ssize_t got = pread(memory.get(), captured->stack.data(), bytes,
                            static_cast<off_t>(captured->state.registers[kStackPointer]));
  ASSERT_GT(got, 0);
  captured->stack.resize(static_cast<std::size_t>(got));
  captured->state.pid = static_cast<std::uint32_t>(getpid());
  captured->state.timestamp = 10;
  captured->state.stack = captured->stack;
}

[[gnu::noinline]] void Recurse(std::size_t n, Captured* captured, std::size_t bytes) {
  captured->callers.push_back(reinterpret_cast<std::uint64_t>(__builtin_return_address(0)));
  if (n == 0) {
    Capture(captured, bytes);
  } else {
    Recurse(n - 1, captured, bytes);
  }
  // Keeps the compiler from replacing the call above by a jump.
  asm volatile("" ::: "memory");
}

std::shared_ptr<const CodeSnapshot> OwnCode() {
  static CodeTracker* const tracker = [] {
    auto* const created = new CodeTracker(KernelSymbols());
    created->LoadFromProc(1);
    return created;
  }();
  return tracker->TakeSnapshot(static_cast<std::uint32_t>(getpid()), 10);
}

// Returns whether `frames` contains all of `callers`, one after the other.
bool HasCallers(const std::vector<std::uint64_t>& frames,
                const std::vector<std::uint64_t>& callers) {
  return std::search(frames.begin(), frames.end(), callers.begin(), callers.end()) != frames.end();
}

bool Walk(const Captured& captured, std::size_t max_frames, std::vector<std::uint64_t>* frames) {
  ModuleCache modules;
  return WalkStack(
      captured.state, *OwnCode(), max_frames,
      [&](const CodeMapping& mapping) { return modules.Find(captured.state.pid, mapping); },
      frames);
}

TEST(WalkStack, FindsEveryCallerUpToTheStartOfTheProgram) {
  Captured captured;
  Recurse(kDepth, &captured, 1 << 20);
  std::vector<std::uint64_t> frames;
  EXPECT_TRUE(Walk(captured, kMaxFrames, &frames));
  EXPECT_EQ(captured.callers.size(), kDepth + 2);
  EXPECT_TRUE(HasCallers(frames, captured.callers));
  EXPECT_GT(frames.size(), kDepth + 5);  // main and its callers
}

TEST(WalkStack, ReportsThatAShortCopyCutsTheStack) {
  Captured captured;
  Recurse(kDepth, &captured, 1 << 20);
  std::vector<std::uint64_t> whole;
  ASSERT_TRUE(Walk(captured, kMaxFrames, &whole));
  captured.state.stack = std::span(captured.stack).first(2048);
  std::vector<std::uint64_t> frames;
  EXPECT_FALSE(Walk(captured, kMaxFrames, &frames));
  ASSERT_LT(frames.size(), whole.size());
  EXPECT_TRUE(std::equal(frames.begin(), frames.end(), whole.begin()));
  frames.clear();
  captured.state.stack = captured.stack;
  EXPECT_FALSE(Walk(captured, 5, &frames));
  EXPECT_EQ(frames.size(), 5U);
}

TEST(WalkStack, HasOnlyTheInnermostFrameOfUnknownCode) {
  Captured captured;
  Recurse(1, &captured, 1 << 16);
  std::vector<std::uint64_t> frames;
  EXPECT_FALSE(WalkStack(
      captured.state, CodeSnapshot(), kMaxFrames,
      [](const CodeMapping&) -> const Module* { return nullptr; }, &frames));
  EXPECT_EQ(frames, std::vector{captured.state.registers[kProgramCounter]});
}

TEST(ModuleCache, DropsTheLeastRecentlyUsedModule) {
  const auto code = OwnCode();
  ModuleCache modules({1, std::size_t{1} << 30});
  const auto pid = static_cast<std::uint32_t>(getpid());
  std::size_t found = 0;
  for (const CodeSnapshot::Entry& entry : code->now) {
    found += modules.Find(pid, entry.mapping) != nullptr ? 1 : 0;
    EXPECT_LE(modules.size(), 1U);
  }
  EXPECT_GT(found, 1U);  // this program and a library
}

// A sample with the registers and the stack of `captured`, and the bytes that it refers to.
struct Sample {
  explicit Sample(const Captured& captured) {
    for (const std::uint8_t number : kUserRegisters) {
      registers.push_back(captured.state.registers[number]);
    }
    record.pid = captured.state.pid;
    record.tid = 7;
    SampleStack& stack = record.stack.emplace();
    stack.copy = {std::as_bytes(std::span(registers)), captured.stack, /*has_64_bits=*/true};
    stack.entries = std::as_bytes(std::span(kernel));
  }
  std::vector<std::uint64_t> registers;
  std::array<std::uint64_t, 2> kernel = {static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL),
                                         0xffffffff81000000};
  SampleRecord record;
};

std::vector<std::uint64_t> EntriesOf(const SampleRecord& sample) {
  const std::span<const std::byte> bytes = sample.stack->entries;
  std::vector<std::uint64_t> entries(bytes.size() / 8);
  std::memcpy(entries.data(), bytes.data(), bytes.size());
  return entries;
}

void WaitFor(StackUnwinder* unwinder) {
  while (unwinder->FindOldest() != StackUnwinder::kNone) {
    pollfd descriptor = {unwinder->fd(), POLLIN, 0};
    ASSERT_EQ(poll(&descriptor, 1, 60'000), 1);
    unwinder->ClearWake();
  }
}

TEST(StackUnwinder, CompletesSamplesWithTheirStacks) {
  Captured captured;
  Recurse(kDepth, &captured, 1 << 20);
  auto unwinder = StackUnwinder::Start(kMaxFrames);
  ASSERT_TRUE(unwinder.ok());
  Sample sample(captured);
  EXPECT_TRUE((*unwinder)->Begin(1, sample.record, 10, OwnCode));
  EXPECT_TRUE((*unwinder)->Begin(1, sample.record, 10, OwnCode));  // known already
  WaitFor(unwinder->get());
  (*unwinder)->Complete(1, &sample.record, 10);
  EXPECT_FALSE(sample.record.stack->is_cut);
  const std::vector<std::uint64_t> entries = EntriesOf(sample.record);
  ASSERT_GT(entries.size(), 3U);
  EXPECT_EQ(entries[1], sample.kernel[1]);
  EXPECT_EQ(entries[2], static_cast<std::uint64_t>(PERF_CONTEXT_USER));
  EXPECT_TRUE(HasCallers(entries, captured.callers));
  EXPECT_EQ((*unwinder)->TakeSkipped().count, 0U);
}

TEST(StackUnwinder, CountsTheSamplesThatItGivesUp) {
  Captured captured;
  Recurse(1, &captured, 4096);
  auto unwinder = StackUnwinder::Start(kMaxFrames, {3, 1 << 20});
  ASSERT_TRUE(unwinder.ok());
  const Sample sample(captured);
  std::size_t begun = 0;
  for (std::uint64_t time = 1; time <= 5; ++time) {
    begun += (*unwinder)->Begin(0, sample.record, time, OwnCode) ? 1 : 0;
  }
  EXPECT_EQ(begun, 3U);  // the limit
  WaitFor(unwinder->get());
  (*unwinder)->GiveUp(5);
  std::size_t cut = 0;
  for (std::uint64_t time = 1; time <= 5; ++time) {
    SampleRecord record = sample.record;
    (*unwinder)->Complete(0, &record, time);
    if (time <= 3) continue;
    ++cut;
    EXPECT_TRUE(record.stack->is_cut);
    EXPECT_EQ(EntriesOf(record).back(), captured.state.registers[kProgramCounter]);
  }
  const StackUnwinder::Skipped skipped = (*unwinder)->TakeSkipped();
  EXPECT_EQ(skipped.count, cut);
  EXPECT_EQ(skipped.first, 4U);
  EXPECT_EQ(skipped.last, 5U);
  EXPECT_EQ((*unwinder)->TakeSkipped().count, 0U);
  // There is room again.
  EXPECT_TRUE((*unwinder)->Begin(0, sample.record, 6, OwnCode));
}

TEST(StackUnwinder, LeavesSamplesOfTheKernelUnchanged) {
  auto unwinder = StackUnwinder::Start(kMaxFrames);
  ASSERT_TRUE(unwinder.ok());
  SampleRecord record;
  record.stack.emplace().copy.emplace();
  EXPECT_TRUE((*unwinder)->Begin(0, record, 1, OwnCode));
  EXPECT_EQ((*unwinder)->FindOldest(), StackUnwinder::kNone);
  (*unwinder)->Complete(0, &record, 1);
  EXPECT_FALSE(record.stack->is_cut);
  EXPECT_TRUE(record.stack->entries.empty());
  EXPECT_EQ((*unwinder)->TakeSkipped().count, 0U);
}

}  // namespace
}  // namespace collector
