// Unwinds a stack with any registers, any copy of the stack and any table of call frames. The code
// of the process is one mapping, and some addresses have no code. Checks the number of frames, that
// only the last frame can be outside of the mapping, and that the work is bounded.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tools/collector/perf/user_registers.h"
#include "tools/collector/unwind/stack_walk.h"

namespace {

constexpr std::uint64_t kCode = 0x10000;  // address of the mapping
constexpr std::uint64_t kCodeSize = 0x10000;
constexpr std::uint64_t kTable = 0x8000;  // address of the table in the file
constexpr std::size_t kMaxFrames = 64;

void Require(bool promise) {
  if (!promise) std::abort();
}

// Removes the first `size` bytes, or all if there are fewer.
std::span<const std::byte> Take(std::size_t size, std::span<const std::byte>* rest) {
  const std::span<const std::byte> taken = rest->first(std::min(size, rest->size()));
  *rest = rest->subspan(taken.size());
  return taken;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::span<const std::byte> rest = std::as_bytes(std::span(bytes, size));
  collector::ThreadState thread;
  thread.timestamp = 1;
  const std::span<const std::byte> first = Take(1, &rest);
  const std::size_t stack_size = first.empty() ? 0 : std::to_integer<std::size_t>(first[0]) * 8;
  for (std::uint64_t& value : thread.registers) {
    const std::span<const std::byte> part = Take(4, &rest);
    std::memcpy(&value, part.data(), part.size());
  }
  thread.stack = Take(stack_size, &rest);
  collector::Module module;
  module.code.push_back({0, kCodeSize, 0});
  module.frames = elf::CallFrames::Parse(std::vector<std::byte>(rest.begin(), rest.end()), kTable);
  Require(module.frames.size() <= rest.size());

  collector::CodeSnapshot code;
  code.now.push_back(
      {{kCode, kCode + kCodeSize - 1, 0, 0, 1, std::make_shared<const collector::CodeFile>()},
       collector::CodeTracker::kNever});
  std::vector<std::uint64_t> frames;
  std::size_t lookups = 0;
  collector::WalkStack(
      thread, code, kMaxFrames,
      [&](const collector::CodeMapping& mapping) -> const collector::Module* {
        Require(mapping.first == kCode);
        ++lookups;
        return &module;
      },
      &frames);
  Require(!frames.empty() && frames.size() <= kMaxFrames && lookups <= frames.size());
  Require(frames.front() == thread.registers[collector::kProgramCounter]);
  for (std::size_t i = 1; i + 1 < frames.size(); ++i) {
    // A return address may be just after the mapping. The walk adds 1 to the address of a frame
    // that a signal interrupted.
    Require(frames[i] >= kCode && frames[i] <= kCode + kCodeSize + 1);
  }
  return 0;
}
