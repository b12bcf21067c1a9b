#include "tools/collector/unwind/stack_walk.h"

#include <cstring>
#include <optional>

#include "tools/collector/perf/user_registers.h"

namespace collector {
namespace {

using elf::FrameRule;
using FindModule = absl::FunctionRef<const Module*(const CodeMapping& mapping)>;

// Removes the signature of pointer authentication from a return address.
std::uint64_t WithoutSignature(std::uint64_t address) {
#if defined(__aarch64__)
  constexpr unsigned kAddressBits = 48;
  return address & ((std::uint64_t{1} << kAddressBits) - 1);
#else
  return address;
#endif
}

class Walker {
 public:
  Walker(const ThreadState& thread, const CodeSnapshot& code, FindModule find_module)
      : thread_(thread), code_(code), find_module_(find_module) {
    for (std::size_t i = 0; i < elf::kFrameRegisters; ++i) registers_[i] = thread.registers[i];
  }

  enum class Step { kCaller, kEnd, kUnknown };
  // Replaces the registers with those of the caller. Returns kEnd if there is no caller, and
  // kUnknown if the caller cannot be found.
  Step Up();
  // Returns the address of the frame for the stack. Programs that show a stack take each address
  // but the first for a return address, and look up the byte before it. Therefore, the address of
  // an interrupted frame is the one after its program counter.
  std::uint64_t FrameAddress() const { return is_exact_ && !is_innermost_ ? pc_ + 1 : pc_; }
  // A signal handler returns to code that ends the handling of the signal. Returns whether the last
  // Up() left the frame of such code, at its first instruction. The address of this frame must also
  // be increased by one, because no call instruction is before it.
  bool has_left_signal_code() const { return has_left_signal_code_; }

 private:
  using Registers = std::array<std::optional<std::uint64_t>, elf::kFrameRegisters>;

  std::optional<std::uint64_t> Get(std::uint64_t number) const {
    if (number >= registers_.size()) return std::nullopt;
    return registers_[static_cast<std::size_t>(number)];
  }
  std::optional<std::uint64_t> Load(std::uint64_t address) const {
    const std::uint64_t start = thread_.registers[kStackPointer];
    const std::size_t size = thread_.stack.size();
    if (address < start || size < 8 || address - start > size - 8) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, thread_.stack.data() + (address - start), sizeof value);
    return value;
  }
  std::optional<std::uint64_t> Evaluate(std::span<const std::byte> expression,
                                        std::optional<std::uint64_t> start) {
    return elf::EvaluateExpression(
        expression, start, [this](std::uint64_t number) { return Get(number); },
        [this](std::uint64_t address) { return Load(address); }, &budget_);
  }
  std::optional<std::uint64_t> Apply(const FrameRule& rule, std::size_t number, std::uint64_t cfa);
  // Returns the mapping that contained `address` at the time of the stack; null if none did.
  const CodeMapping* FindMapping(std::uint64_t address) const {
    return code_.Find(address, thread_.timestamp);
  }
  Step UpByRules(const elf::FrameRules& rules);
  Step UpByFramePointer();
  // Replaces the registers with those of a caller whose stack pointer is `sp`.
  Step Finish(const Registers& caller, std::optional<std::uint64_t> address, std::uint64_t sp,
              bool is_signal);

  const ThreadState& thread_;
  const CodeSnapshot& code_;
  FindModule find_module_;
  Registers registers_;
  std::uint64_t pc_ = thread_.registers[kProgramCounter];
  // Whether pc_ is not a return address, because the frame is the innermost or was interrupted by a
  // signal.
  bool is_exact_ = true;
  bool is_innermost_ = true;
  bool has_left_signal_code_ = false;
  std::size_t budget_ = kWalkBudget;
};

std::optional<std::uint64_t> Walker::Apply(const FrameRule& rule, std::size_t number,
                                           std::uint64_t cfa) {
  const auto offset = static_cast<std::uint64_t>(rule.offset);
  switch (rule.kind) {
    case FrameRule::Kind::kSame:
      return registers_[number];
    case FrameRule::Kind::kUndefined:
      return std::nullopt;
    case FrameRule::Kind::kOffset:
      return Load(cfa + offset);
    case FrameRule::Kind::kValOffset:
      return cfa + offset;
    case FrameRule::Kind::kRegister:
      return Get(offset);
    case FrameRule::Kind::kExpression: {
      const std::optional<std::uint64_t> address = Evaluate(rule.expression, cfa);
      return address ? Load(*address) : std::nullopt;
    }
    case FrameRule::Kind::kValue:
      return Evaluate(rule.expression, cfa);
  }
  return std::nullopt;
}

Walker::Step Walker::Up() {
  has_left_signal_code_ = false;
  const std::uint64_t address = is_exact_ ? pc_ : pc_ - 1;
  const CodeMapping* const mapping = FindMapping(address);
  if (mapping == nullptr) return Step::kUnknown;
  const Module* const module = find_module_(*mapping);
  if (module != nullptr) {
    const std::optional<elf::FrameRules> rules =
        module->Find(address - mapping->first + mapping->offset, &budget_);
    if (rules) return UpByRules(*rules);
  }
  return UpByFramePointer();
}

Walker::Step Walker::UpByRules(const elf::FrameRules& rules) {
  if (rules.return_register >= elf::kFrameRegisters) return Step::kUnknown;
  const auto return_register = static_cast<std::size_t>(rules.return_register);
  if (rules.registers[return_register].kind == FrameRule::Kind::kUndefined) return Step::kEnd;
  std::optional<std::uint64_t> cfa;
  if (rules.cfa_expression.empty()) {
    cfa = Get(rules.cfa_register);
    if (cfa) *cfa += static_cast<std::uint64_t>(rules.cfa_offset);
  } else {
    cfa = Evaluate(rules.cfa_expression, std::nullopt);
  }
  if (!cfa) return Step::kUnknown;
  Registers caller;
  for (std::size_t i = 0; i < elf::kFrameRegisters; ++i) {
    caller[i] = Apply(rules.registers[i], i, *cfa);
  }
  const std::optional<std::uint64_t> address = caller[return_register];
  // Unless a rule defines the caller's stack pointer, it is the canonical frame address (CFA).
  std::uint64_t sp = *cfa;
  if (rules.registers[kStackPointer].kind != FrameRule::Kind::kSame) {
    if (!caller[kStackPointer]) return Step::kUnknown;
    sp = *caller[kStackPointer];
  }
  return Finish(caller, address, sp, rules.is_signal);
}

Walker::Step Walker::UpByFramePointer() {
  const std::optional<std::uint64_t> frame = registers_[kFramePointer];
  if (!frame) return Step::kUnknown;
  // By the ABI, the outermost frame has the frame pointer 0.
  if (*frame == 0) return Step::kEnd;
  const std::optional<std::uint64_t> address = Load(*frame + 8);
  if (!address || FindMapping(WithoutSignature(*address) - 1) == nullptr) return Step::kUnknown;
  Registers caller = registers_;
  caller[kFramePointer] = Load(*frame);
  return Finish(caller, address, *frame + 16, /*is_signal=*/false);
}

Walker::Step Walker::Finish(const Registers& caller, std::optional<std::uint64_t> address,
                            std::uint64_t sp, bool is_signal) {
  if (!address) return Step::kUnknown;
  const std::uint64_t pc = WithoutSignature(*address);
  if (pc == 0) return Step::kEnd;
  // The stack grows downwards, so the stack pointer of a caller is not lower. It is equal if a leaf
  // function has no frame on the stack; the program counter must then differ.
  const std::optional<std::uint64_t> before = registers_[kStackPointer];
  if (!before || sp < *before || (sp == *before && pc == pc_)) return Step::kUnknown;
  registers_ = caller;
  registers_[kStackPointer] = sp;
  registers_[kProgramCounter] = pc;
  pc_ = pc;
  has_left_signal_code_ = is_signal && !is_exact_;
  is_exact_ = is_signal;
  is_innermost_ = false;
  return FindMapping(is_exact_ ? pc_ : pc_ - 1) == nullptr ? Step::kUnknown : Step::kCaller;
}

}  // namespace

bool WalkStack(const ThreadState& thread, const CodeSnapshot& code, std::size_t max_frames,
               FindModule find_module, std::vector<std::uint64_t>* frames) {
  Walker walker(thread, code, find_module);
  for (;;) {
    if (frames->size() >= max_frames) return false;
    frames->push_back(walker.FrameAddress());
    const Walker::Step step = walker.Up();
    if (walker.has_left_signal_code()) ++frames->back();
    switch (step) {
      case Walker::Step::kCaller:
        break;
      case Walker::Step::kEnd:
        return true;
      case Walker::Step::kUnknown:
        return false;
    }
  }
}

}  // namespace collector
