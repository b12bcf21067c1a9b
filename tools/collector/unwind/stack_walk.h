// Finds the frames of a thread's stack from its registers and a copy of the stack, also in code
// without frame pointers.
#ifndef TOOLS_COLLECTOR_UNWIND_STACK_WALK_H_
#define TOOLS_COLLECTOR_UNWIND_STACK_WALK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "tools/collector/identity/code_tracker.h"
#include "tools/collector/unwind/module_cache.h"
#include "tools/elf/call_frames.h"

namespace collector {

// A thread in user space at a moment.
struct ThreadState {
  std::uint32_t pid = 0;
  std::uint64_t timestamp = 0;  // session clock, ns
  // Values of the registers. The index of a register is its number in DWARF; the program counter is
  // at kProgramCounter (tools/collector/perf/user_registers.h).
  std::array<std::uint64_t, elf::kFrameRegisters> registers = {};
  std::span<const std::byte> stack;  // the bytes from the stack pointer on
};

// Maximum number of instructions of tables of call frames that a walk executes. A stack of 100
// frames needs about 2,000. The limit bounds the work that a hostile file causes.
inline constexpr std::size_t kWalkBudget = 65536;

// Appends the addresses of the thread's frames to `*frames`, innermost first, until it has
// `max_frames` elements. Returns whether the last frame is the outermost: it has no caller, like
// the first function of a thread. Otherwise, the stack is cut: the copy is too short, the code of a
// frame is not known, or the maximum is reached. `code` are the mappings of the process.
//
// The address of a caller is a return address. The address of a frame that a signal interrupted,
// and of the code that ends the signal's handler, is increased by one. Readers look up the byte
// before each of these addresses, which is then in the instruction that runs next.
//
// The rules of a frame come from the file of its code. Code without rules, such as that of JIT
// compilers, is assumed to have frame pointers. The stack is cut at this code if the caller that
// the frame pointer leads to is not in mapped code. `find_module` returns the file of a mapping, or
// null; the result must be valid until the next call.
bool WalkStack(const ThreadState& thread, const CodeSnapshot& code, std::size_t max_frames,
               absl::FunctionRef<const Module*(const CodeMapping& mapping)> find_module,
               std::vector<std::uint64_t>* frames);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_UNWIND_STACK_WALK_H_
