#include "disassembly.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace {

struct Instruction {
  std::uint64_t address;
  std::string name;
  std::string operands;
};

std::string OutputOf(const std::string& command) {
  const auto close = [](std::FILE* file) { pclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command.c_str(), "re"), close);
  std::string output;
  char buffer[4096];
  while (pipe != nullptr) {
    const std::size_t got = std::fread(buffer, 1, sizeof(buffer), pipe.get());
    if (got == 0) break;
    output.append(buffer, got);
  }
  return output;
}

// Lines with instructions have the form "  address:\tname operands # comment".
std::vector<Instruction> Parse(std::string_view listing) {
  std::vector<Instruction> instructions;
  while (!listing.empty()) {
    const std::string_view line = listing.substr(0, listing.find('\n'));
    listing.remove_prefix(std::min(line.size() + 1, listing.size()));
    const std::size_t tab = line.find(":\t");
    if (tab == std::string_view::npos) continue;
    std::string_view text = line.substr(tab + 2);
    text = text.substr(0, text.find_first_of("#<"));
    const std::string_view name = text.substr(0, text.find(' '));
    text.remove_prefix(name.size());
    std::string operands;
    for (const char c : text) {
      if (c != ' ') operands += c;
    }
    instructions.push_back({std::strtoull(std::string(line.substr(0, tab)).c_str(), nullptr, 16),
                            std::string(name), operands});
  }
  return instructions;
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsEntry(const Instruction& instruction) {
  return IsOneOf(instruction.name, {"push", "endbr64"}) ||
         (instruction.name == "sub" && instruction.operands.ends_with(",%rsp"));
}

bool IsExit(const Instruction& instruction) {
  return IsOneOf(instruction.name, {"pop", "nop", "jmp", "ret"}) ||
         (instruction.name == "add" && instruction.operands.ends_with(",%rsp"));
}

// Returns the first operand. It ends at the last comma, because it may have commas itself, as in
// "(%rax,%rcx),%rdx".
std::string_view Source(const Instruction& instruction) {
  return std::string_view(instruction.operands).substr(0, instruction.operands.rfind(','));
}
std::string_view Target(const Instruction& instruction) {
  return std::string_view(instruction.operands).substr(instruction.operands.rfind(',') + 1);
}

class Walk {
 public:
  explicit Walk(const std::vector<Instruction>& code) : code_(code) {}

  // Returns "" or a message about what is wrong; sets `*count` to the number of instructions
  // between entry and exit.
  std::string Check(int* count) {
    while (HasNext() && IsEntry(Next())) ++at_;
    const std::size_t first = at_;
    if (!TakeLoadAndTest()) return "does not begin with a load of the provider's word and its test";
    if (!HasNext() || !IsOneOf(Next().name, {"je", "jne"})) return "has no branch after the test";
    *count = static_cast<int>(at_ + 1 - first);
    if (Next().name == "je") {
      if (!Jump()) return "branches out of the function when disabled";
    } else {
      ++at_;
    }
    for (std::size_t steps = 0; HasNext() && IsExit(Next()) && steps < code_.size(); ++steps) {
      if (Next().name == "ret") return "";
      if (Next().name != "jmp") {
        ++at_;
      } else if (!Jump()) {
        return "jumps out of the function when disabled";
      }
    }
    return "does more than return when disabled";
  }

 private:
  bool HasNext() const { return at_ < code_.size(); }
  const Instruction& Next() const { return code_[at_]; }

  bool TakeLoadAndTest() {
    if (code_.size() - at_ < 2) return false;
    const Instruction& load = code_[at_++];
    if (load.name == "cmpq") return Source(load) == "$0x0" && Target(load).ends_with("(%rip)");
    if (load.name != "mov" || !Source(load).ends_with("(%rip)")) return false;
    const Instruction& test = code_[at_++];
    return test.name == "test" && Source(test) == Target(load) && Target(test) == Target(load);
  }

  bool Jump() {
    const std::uint64_t to = std::strtoull(Next().operands.c_str(), nullptr, 16);
    for (at_ = 0; HasNext(); ++at_) {
      if (Next().address == to) return true;
    }
    return false;
  }

  const std::vector<Instruction>& code_;
  std::size_t at_ = 0;
};

}  // namespace

DisabledPath FindDisabledPath(const std::string& program, const std::string& function) {
  const std::string listing =
      OutputOf("objdump --disassemble=" + function + " --no-show-raw-insn '" + program + "'");
  const std::vector<Instruction> code = Parse(listing);
  DisabledPath path;
  const std::string fault = code.empty() ? "is not shown by objdump (is binutils installed?)"
                                         : Walk(code).Check(&path.instructions);
  if (!fault.empty()) path.error = function + " " + fault + "\n" + listing;
  return path;
}
