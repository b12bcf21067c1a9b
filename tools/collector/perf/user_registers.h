// The registers that samples with a copy of the stack contain (StackOptions::copied_bytes), in the
// order of perf.
#ifndef TOOLS_COLLECTOR_PERF_USER_REGISTERS_H_
#define TOOLS_COLLECTOR_PERF_USER_REGISTERS_H_

#include <linux/perf_event.h>

#if defined(__x86_64__) || defined(__aarch64__)
#include <asm/perf_regs.h>
#endif

#include <array>
#include <cstddef>
#include <cstdint>

namespace collector {

#if defined(__x86_64__)
// For each register of a sample, its number in DWARF.
inline constexpr std::array<std::uint8_t, 17> kUserRegisters = {0, 3, 2,  1,  4,  5,  6,  7, 16,
                                                                8, 9, 10, 11, 12, 13, 14, 15};
// Bits of attr.sample_regs_user.
inline constexpr std::uint64_t kUserRegisterMask =
    ((std::uint64_t{1} << (PERF_REG_X86_IP + 1)) - 1) | (std::uint64_t{0xff} << PERF_REG_X86_R8);
// Numbers in DWARF.
inline constexpr std::size_t kProgramCounter = 16;
inline constexpr std::size_t kStackPointer = 7;
inline constexpr std::size_t kFramePointer = 6;
#elif defined(__aarch64__)
inline constexpr std::array<std::uint8_t, 33> kUserRegisters = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
    17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
inline constexpr std::uint64_t kUserRegisterMask =
    (std::uint64_t{1} << (PERF_REG_ARM64_PC + 1)) - 1;
inline constexpr std::size_t kProgramCounter = 32;
inline constexpr std::size_t kStackPointer = 31;
inline constexpr std::size_t kFramePointer = 29;
#else
// Stacks cannot be copied on this machine; see CanCopyStacks.
inline constexpr std::array<std::uint8_t, 0> kUserRegisters = {};
inline constexpr std::uint64_t kUserRegisterMask = 0;
inline constexpr std::size_t kProgramCounter = 2;
inline constexpr std::size_t kStackPointer = 1;
inline constexpr std::size_t kFramePointer = 0;
#endif

// Returns whether the collector can unwind copied stacks on this machine.
constexpr bool CanCopyStacks() { return kUserRegisterMask != 0; }

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_USER_REGISTERS_H_
