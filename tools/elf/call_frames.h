// Reads the table of call frames (.eh_frame) of an ELF file: how to find the caller of a function
// at each address of its code. Code without frame pointers can be unwound only with this table.
//
// The table may be hostile. Every offset is checked. The work and memory of CallFrames::Parse are
// bounded by the size of the table, and the work of the other functions by a budget of the caller.
#ifndef TOOLS_ELF_CALL_FRAMES_H_
#define TOOLS_ELF_CALL_FRAMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"

namespace elf {

// Number of registers whose rules are kept. The numbers of registers are those of DWARF: on x86-64,
// 0 to 15 are general and 16 is the return address; on arm64, 0 to 30 are general and 31 is the
// stack pointer.
inline constexpr std::size_t kFrameRegisters = 33;

// A rule that gives the value of one of the caller's registers.
struct FrameRule {
  enum class Kind : std::uint8_t {
    kSame,        // the register has the caller's value
    kUndefined,   // the value is not known; for the return address: there is no caller
    kOffset,      // the value is in memory, at the address of the frame plus `offset`
    kValOffset,   // the value is the address of the frame plus `offset`
    kRegister,    // the value is in the register with the number `offset`
    kExpression,  // the value is in memory, at the address that the expression computes
    kValue,       // the value is the result of the expression
  };
  Kind kind = Kind::kSame;
  std::int64_t offset = 0;
  std::span<const std::byte> expression = {};  // refers to the table
};

// The rules at one address of code.
struct FrameRules {
  // The address of the frame: register `cfa_register` plus `cfa_offset`, or the result of
  // `cfa_expression` if that is not empty.
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  std::span<const std::byte> cfa_expression = {};
  std::array<FrameRule, kFrameRegisters> registers = {};
  std::uint64_t return_register = 0;  // number of the register with the return address
  bool is_signal = false;  // the code returns from a signal handler: its caller was interrupted
};

// The table of one file. Not changed after Parse, so threads may share it.
class CallFrames {
 public:
  // Maximum bytes of a table, which ElfFile::ReadCallFrames checks.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{32} << 20;
  // Maximum number of remembered states (DW_CFA_remember_state) at a time.
  static constexpr std::size_t kMaxStates = 16;

  // Parses `table`, the bytes of .eh_frame, whose first byte has the virtual address `address`.
  // Stops at the entry of size 0 that ends the table, or at an entry that exceeds the table. The
  // entries before it can be used. Leaves out other malformed entries.
  static CallFrames Parse(std::vector<std::byte> table, std::uint64_t address);

  // Returns the rules at a virtual address, as in the file's symbols. `*budget` is the number of
  // instructions that may be executed; those executed are subtracted. Returns no value if the
  // budget is used up, if the table has no entry for the address, or if the entry is malformed or
  // has an unknown instruction.
  std::optional<FrameRules> Find(std::uint64_t address, std::size_t* budget) const;

  // Number of functions in the table.
  std::size_t size() const { return functions_.size(); }
  // Estimated memory, in bytes.
  std::size_t bytes() const;

 private:
  struct Common {  // a CIE
    std::uint64_t code_factor = 1;
    std::int64_t data_factor = 1;
    std::uint64_t return_register = 0;
    std::uint8_t encoding = 0;  // encoding of the addresses in FDEs (DW_EH_PE_*)
    bool has_augmentation = false;
    bool is_signal = false;
    std::size_t program = 0;  // offset and end of the initial instructions
    std::size_t program_end = 0;
  };
  struct Function {  // an FDE
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint32_t program = 0;  // offset and end of the instructions
    std::uint32_t program_end = 0;
    std::uint32_t common = 0;  // index in commons_
  };
  class Cursor;
  class Machine;

  std::optional<Common> ParseCommon(std::size_t at, std::size_t end) const;

  std::vector<std::byte> table_;
  std::uint64_t address_ = 0;
  std::vector<Common> commons_;
  std::vector<Function> functions_;  // sorted by address
};

// Computes the result of an expression of the table. `get(number)` returns the value of a register,
// and `load(address)` the 8 bytes at an address. `start` is the first value on the stack, if the
// rule defines one. `*budget` is the number of operations that may be executed; those executed are
// subtracted. Returns no value if the budget is used up, if `get` or `load` returns none, or if the
// expression is malformed or has an unknown operation.
std::optional<std::uint64_t> EvaluateExpression(
    std::span<const std::byte> expression, std::optional<std::uint64_t> start,
    absl::FunctionRef<std::optional<std::uint64_t>(std::uint64_t number)> get,
    absl::FunctionRef<std::optional<std::uint64_t>(std::uint64_t address)> load,
    std::size_t* budget);

}  // namespace elf

#endif  // TOOLS_ELF_CALL_FRAMES_H_
