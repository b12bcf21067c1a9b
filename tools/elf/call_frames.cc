#include "tools/elf/call_frames.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace elf {
namespace {

// Encodings of addresses (DW_EH_PE_*).
constexpr std::uint8_t kFormatMask = 0x0f;
constexpr std::uint8_t kAppliedMask = 0x70;
constexpr std::uint8_t kRelativeToPlace = 0x10;
constexpr std::uint8_t kIndirect = 0x80;

// Maximum number of values on the stack of an expression.
constexpr std::size_t kMaxValues = 32;

// Subtracts 1 from the budget. Returns false if the budget is used up.
bool Spend(std::size_t* budget) {
  if (*budget == 0) return false;
  --*budget;
  return true;
}

}  // namespace

// Reads numbers from a part of the table. After a read past the end, all further reads fail.
class CallFrames::Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::size_t at, std::size_t end)
      : bytes_(bytes), at_(at), end_(std::min(end, bytes.size())), ok_(at <= end_) {}

  bool ok() const { return ok_; }
  std::size_t at() const { return at_; }
  bool at_end() const { return !ok_ || at_ >= end_; }
  void Fail() { ok_ = false; }

  template <typename T>
  T Read() {
    T value = {};
    if (!ok_ || sizeof value > end_ - at_) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::uint64_t ReadUnsigned() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; ok_; shift += 7) {
      const auto byte = Read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }
  std::int64_t ReadSigned() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; ok_;) {
      const auto byte = Read<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      break;
    }
    return static_cast<std::int64_t>(value);
  }
  std::span<const std::byte> ReadBytes(std::uint64_t size) {
    if (!ok_ || size > end_ - at_) {
      ok_ = false;
      return {};
    }
    at_ += static_cast<std::size_t>(size);
    return bytes_.subspan(at_ - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
  }
  // Reads an address. `table` is the virtual address of the first byte of the table.
  std::uint64_t ReadAddress(std::uint8_t encoding, std::uint64_t table) {
    const std::uint64_t place = table + at_;
    std::uint64_t value = 0;
    switch (encoding & kFormatMask) {
      case 0x00:  // DW_EH_PE_absptr
      case 0x04:  // DW_EH_PE_udata8
      case 0x0c:  // DW_EH_PE_sdata8
        value = Read<std::uint64_t>();
        break;
      case 0x01:  // DW_EH_PE_uleb128
        value = ReadUnsigned();
        break;
      case 0x02:  // DW_EH_PE_udata2
        value = Read<std::uint16_t>();
        break;
      case 0x03:  // DW_EH_PE_udata4
        value = Read<std::uint32_t>();
        break;
      case 0x09:  // DW_EH_PE_sleb128
        value = static_cast<std::uint64_t>(ReadSigned());
        break;
      case 0x0a:  // DW_EH_PE_sdata2
        value = static_cast<std::uint64_t>(std::int64_t{Read<std::int16_t>()});
        break;
      case 0x0b:  // DW_EH_PE_sdata4
        value = static_cast<std::uint64_t>(std::int64_t{Read<std::int32_t>()});
        break;
      default:
        ok_ = false;
    }
    const std::uint8_t applied = encoding & kAppliedMask;
    if (applied == kRelativeToPlace) {
      value += place;
    } else if (applied != 0) {
      ok_ = false;
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_;
  std::size_t end_;
  bool ok_;
};

// Executes the instructions of a function up to an address.
class CallFrames::Machine {
 public:
  Machine(const CallFrames& frames, const Common& common, std::uint64_t first)
      : frames_(frames), common_(common), at_(first) {
    rules_.return_register = common.return_register;
    rules_.is_signal = common.is_signal;
  }

  // Executes the instructions from `begin` to `end` that apply to `address`. Returns false if they
  // are malformed, or if the budget is used up.
  bool Run(std::size_t begin, std::size_t end, std::uint64_t address, std::size_t* budget);
  // Makes the current rules those that DW_CFA_restore restores.
  void KeepInitial() { initial_ = rules_; }
  const FrameRules& rules() const { return rules_; }

 private:
  void Set(std::uint64_t number, const FrameRule& rule) {
    if (number < kFrameRegisters) rules_.registers[static_cast<std::size_t>(number)] = rule;
  }
  void Restore(std::uint64_t number) {
    if (number < kFrameRegisters) {
      Set(number, initial_.registers[static_cast<std::size_t>(number)]);
    }
  }
  void SetOffset(std::uint64_t number, std::int64_t factored, FrameRule::Kind kind) {
    // Multiplies unsigned numbers, because the product may overflow if the table is malformed.
    const std::uint64_t offset =
        static_cast<std::uint64_t>(factored) * static_cast<std::uint64_t>(common_.data_factor);
    Set(number, {kind, static_cast<std::int64_t>(offset)});
  }
  // Executes an instruction whose upper two bits are 0. Returns false if it is not known or is
  // malformed.
  bool Extended(std::uint8_t instruction, Cursor* cursor);
  void Advance(std::uint64_t delta) { at_ += delta * common_.code_factor; }

  const CallFrames& frames_;
  const Common& common_;
  std::uint64_t at_;  // address to which the rules apply
  FrameRules rules_;
  FrameRules initial_;
  std::vector<FrameRules> states_;
};

bool CallFrames::Machine::Run(std::size_t begin, std::size_t end, std::uint64_t address,
                              std::size_t* budget) {
  Cursor cursor(frames_.table_, begin, end);
  while (!cursor.at_end() && at_ <= address) {
    if (!Spend(budget)) return false;
    const auto instruction = cursor.Read<std::uint8_t>();
    const std::uint8_t operand = instruction & 0x3f;
    switch (instruction & 0xc0) {
      case 0x40:  // DW_CFA_advance_loc
        Advance(operand);
        break;
      case 0x80:  // DW_CFA_offset
        SetOffset(operand, static_cast<std::int64_t>(cursor.ReadUnsigned()),
                  FrameRule::Kind::kOffset);
        break;
      case 0xc0:  // DW_CFA_restore
        Restore(operand);
        break;
      default:
        if (!Extended(instruction, &cursor)) return false;
    }
  }
  return cursor.ok();
}

bool CallFrames::Machine::Extended(std::uint8_t instruction, Cursor* cursor) {
  using Kind = FrameRule::Kind;
  const auto set_cfa = [this](std::uint64_t number, std::int64_t offset) {
    rules_.cfa_register = number;
    rules_.cfa_offset = offset;
    rules_.cfa_expression = {};
  };
  const auto factored = [this](std::int64_t offset) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(offset) *
                                     static_cast<std::uint64_t>(common_.data_factor));
  };
  std::uint64_t number = 0;
  switch (instruction) {
    case 0x00:  // DW_CFA_nop
      break;
    case 0x01:  // DW_CFA_set_loc
      at_ = cursor->ReadAddress(common_.encoding, frames_.address_);
      break;
    case 0x02:  // DW_CFA_advance_loc1
      Advance(cursor->Read<std::uint8_t>());
      break;
    case 0x03:  // DW_CFA_advance_loc2
      Advance(cursor->Read<std::uint16_t>());
      break;
    case 0x04:  // DW_CFA_advance_loc4
      Advance(cursor->Read<std::uint32_t>());
      break;
    case 0x05:  // DW_CFA_offset_extended
      number = cursor->ReadUnsigned();
      SetOffset(number, static_cast<std::int64_t>(cursor->ReadUnsigned()), Kind::kOffset);
      break;
    case 0x06:  // DW_CFA_restore_extended
      Restore(cursor->ReadUnsigned());
      break;
    case 0x07:  // DW_CFA_undefined
      Set(cursor->ReadUnsigned(), {Kind::kUndefined});
      break;
    case 0x08:  // DW_CFA_same_value
      Set(cursor->ReadUnsigned(), {Kind::kSame});
      break;
    case 0x09:  // DW_CFA_register
      number = cursor->ReadUnsigned();
      Set(number, {Kind::kRegister, static_cast<std::int64_t>(cursor->ReadUnsigned())});
      break;
    case 0x0a:  // DW_CFA_remember_state
      if (states_.size() >= kMaxStates) return false;
      states_.push_back(rules_);
      break;
    case 0x0b:  // DW_CFA_restore_state
      if (states_.empty()) return false;
      rules_ = states_.back();
      states_.pop_back();
      break;
    case 0x0c:  // DW_CFA_def_cfa
      number = cursor->ReadUnsigned();
      set_cfa(number, static_cast<std::int64_t>(cursor->ReadUnsigned()));
      break;
    case 0x0d:  // DW_CFA_def_cfa_register
      set_cfa(cursor->ReadUnsigned(), rules_.cfa_offset);
      break;
    case 0x0e:  // DW_CFA_def_cfa_offset
      set_cfa(rules_.cfa_register, static_cast<std::int64_t>(cursor->ReadUnsigned()));
      break;
    case 0x0f:  // DW_CFA_def_cfa_expression
      rules_.cfa_expression = cursor->ReadBytes(cursor->ReadUnsigned());
      break;
    case 0x10:  // DW_CFA_expression
      number = cursor->ReadUnsigned();
      Set(number, {Kind::kExpression, 0, cursor->ReadBytes(cursor->ReadUnsigned())});
      break;
    case 0x11:  // DW_CFA_offset_extended_sf
      number = cursor->ReadUnsigned();
      SetOffset(number, cursor->ReadSigned(), Kind::kOffset);
      break;
    case 0x12:  // DW_CFA_def_cfa_sf
      number = cursor->ReadUnsigned();
      set_cfa(number, factored(cursor->ReadSigned()));
      break;
    case 0x13:  // DW_CFA_def_cfa_offset_sf
      set_cfa(rules_.cfa_register, factored(cursor->ReadSigned()));
      break;
    case 0x14:  // DW_CFA_val_offset
      number = cursor->ReadUnsigned();
      SetOffset(number, static_cast<std::int64_t>(cursor->ReadUnsigned()), Kind::kValOffset);
      break;
    case 0x15:  // DW_CFA_val_offset_sf
      number = cursor->ReadUnsigned();
      SetOffset(number, cursor->ReadSigned(), Kind::kValOffset);
      break;
    case 0x16:  // DW_CFA_val_expression
      number = cursor->ReadUnsigned();
      Set(number, {Kind::kValue, 0, cursor->ReadBytes(cursor->ReadUnsigned())});
      break;
    case 0x2d:  // DW_CFA_AARCH64_negate_ra_state: the caller removes signatures from addresses
      break;
    case 0x2e:  // DW_CFA_GNU_args_size
      cursor->ReadUnsigned();
      break;
    default:
      return false;
  }
  return cursor->ok();
}

std::optional<CallFrames::Common> CallFrames::ParseCommon(std::size_t at, std::size_t end) const {
  Cursor cursor(table_, at, end);
  Common common;
  const auto version = cursor.Read<std::uint8_t>();
  if (version != 1 && version != 3) return std::nullopt;
  std::array<char, 8> augmentation = {};
  std::size_t letters = 0;
  for (char c = cursor.Read<char>(); c != '\0'; c = cursor.Read<char>()) {
    if (!cursor.ok() || letters == augmentation.size()) return std::nullopt;
    augmentation[letters++] = c;
  }
  common.code_factor = cursor.ReadUnsigned();
  common.data_factor = cursor.ReadSigned();
  common.return_register = version == 1 ? cursor.Read<std::uint8_t>() : cursor.ReadUnsigned();
  common.program_end = end;
  std::size_t program = cursor.at();
  for (std::size_t i = 0; i < letters; ++i) {
    switch (augmentation[i]) {
      case 'z': {
        if (i != 0) return std::nullopt;
        common.has_augmentation = true;
        const std::uint64_t size = cursor.ReadUnsigned();
        if (!cursor.ok() || size > end - cursor.at()) return std::nullopt;
        program = cursor.at() + static_cast<std::size_t>(size);
        break;
      }
      case 'R':
        common.encoding = cursor.Read<std::uint8_t>();
        break;
      case 'P': {
        const auto encoding = cursor.Read<std::uint8_t>();
        cursor.ReadAddress(encoding & static_cast<std::uint8_t>(kFormatMask), 0);
        break;
      }
      case 'L':
        cursor.Read<std::uint8_t>();
        break;
      case 'S':
        common.is_signal = true;
        break;
      case 'B':  // arm64: return addresses are signed with key B instead of key A
        break;
      default:
        return std::nullopt;
    }
  }
  common.program = common.has_augmentation ? program : cursor.at();
  const bool is_valid = cursor.ok() && common.program <= end && (common.encoding & kIndirect) == 0;
  return is_valid ? std::optional(common) : std::nullopt;
}

CallFrames CallFrames::Parse(std::vector<std::byte> table, std::uint64_t address) {
  CallFrames frames;
  frames.table_ = std::move(table);
  frames.address_ = address;
  if (frames.table_.size() > kMaxBytes) return frames;
  // Index in commons_ of each CIE, by the offset of the CIE in the table; nullopt if malformed.
  absl::flat_hash_map<std::size_t, std::optional<std::uint32_t>> commons;
  for (std::size_t at = 0; at < frames.table_.size();) {
    Cursor entry(frames.table_, at, frames.table_.size());
    const std::uint64_t size = entry.Read<std::uint32_t>();
    // An entry of 4 GiB or more would have the size 0xffffffff; no table is so large.
    if (!entry.ok() || size == 0 || size > frames.table_.size() - entry.at()) break;
    const std::size_t begin = entry.at();
    const std::size_t end = begin + static_cast<std::size_t>(size);
    at = end;
    Cursor cursor(frames.table_, begin, end);
    const auto back = cursor.Read<std::uint32_t>();
    if (!cursor.ok() || back == 0 || back > begin) continue;  // a CIE, or malformed
    // In an FDE, this field is the distance in bytes from the start of its CIE to the field.
    const std::size_t common_at = begin - back;
    const auto [known, is_new] = commons.try_emplace(common_at);
    if (is_new) {
      Cursor common_entry(frames.table_, common_at, frames.table_.size());
      const std::uint64_t common_size = common_entry.Read<std::uint32_t>();
      const bool is_common = common_entry.Read<std::uint32_t>() == 0 && common_entry.ok() &&
                             common_size >= 4 &&
                             common_size <= frames.table_.size() - common_at - 4;
      const std::optional<Common> common =
          is_common ? frames.ParseCommon(common_at + 8,
                                         common_at + 4 + static_cast<std::size_t>(common_size))
                    : std::nullopt;
      if (common) {
        known->second = static_cast<std::uint32_t>(frames.commons_.size());
        frames.commons_.push_back(*common);
      }
    }
    if (!known->second) continue;
    const Common& common = frames.commons_[*known->second];
    Function function;
    function.common = *known->second;
    function.first = cursor.ReadAddress(common.encoding, address);
    const std::uint64_t length = cursor.ReadAddress(common.encoding & kFormatMask, 0);
    if (common.has_augmentation) cursor.ReadBytes(cursor.ReadUnsigned());
    if (!cursor.ok() || length == 0 || function.first + (length - 1) < function.first) continue;
    function.last = function.first + (length - 1);
    function.program = static_cast<std::uint32_t>(cursor.at());
    function.program_end = static_cast<std::uint32_t>(end);
    frames.functions_.push_back(function);
  }
  std::stable_sort(frames.functions_.begin(), frames.functions_.end(),
                   [](const Function& a, const Function& b) { return a.first < b.first; });
  frames.functions_.shrink_to_fit();
  return frames;
}

std::size_t CallFrames::bytes() const {
  return sizeof *this + table_.capacity() + commons_.capacity() * sizeof(Common) +
         functions_.capacity() * sizeof(Function);
}

std::optional<FrameRules> CallFrames::Find(std::uint64_t address, std::size_t* budget) const {
  const auto after = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](std::uint64_t wanted, const Function& function) { return wanted < function.first; });
  if (after == functions_.begin()) return std::nullopt;
  const Function& function = *std::prev(after);
  if (address > function.last) return std::nullopt;
  const Common& common = commons_[function.common];
  Machine machine(*this, common, function.first);
  // The initial instructions apply to all addresses of the function.
  if (!machine.Run(common.program, common.program_end, ~std::uint64_t{0}, budget)) {
    return std::nullopt;
  }
  machine.KeepInitial();
  if (!machine.Run(function.program, function.program_end, address, budget)) return std::nullopt;
  return machine.rules();
}

std::optional<std::uint64_t> EvaluateExpression(
    std::span<const std::byte> expression, std::optional<std::uint64_t> start,
    absl::FunctionRef<std::optional<std::uint64_t>(std::uint64_t number)> get,
    absl::FunctionRef<std::optional<std::uint64_t>(std::uint64_t address)> load,
    std::size_t* budget) {
  std::array<std::uint64_t, kMaxValues> values = {};
  std::size_t count = 0;
  std::size_t at = 0;
  bool ok = true;
  const auto push = [&](std::uint64_t value) {
    if (count == kMaxValues) {
      ok = false;
    } else {
      values[count++] = value;
    }
  };
  const auto pop = [&]() -> std::uint64_t {
    if (count == 0) {
      ok = false;
      return 0;
    }
    return values[--count];
  };
  const auto read = [&]<typename T>(T value) {
    if (sizeof value > expression.size() - at) {
      ok = false;
      return value;
    }
    std::memcpy(&value, expression.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  // Reads a number of variable length.
  const auto read_number = [&](bool is_signed) -> std::uint64_t {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (;;) {
      const auto byte = read(std::uint8_t{0});
      if (!ok) return 0;
      if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (is_signed && (byte & 0x40) != 0 && shift < 64) value |= ~std::uint64_t{0} << shift;
      return value;
    }
  };
  const auto push_if = [&](std::optional<std::uint64_t> value, std::uint64_t added) {
    ok = ok && value.has_value();
    if (ok) push(*value + added);
  };
  const auto jump = [&](std::int16_t distance) {
    const std::int64_t to = static_cast<std::int64_t>(at) + distance;
    ok = ok && to >= 0 && to <= static_cast<std::int64_t>(expression.size());
    if (ok) at = static_cast<std::size_t>(to);
  };

  if (start) push(*start);
  while (ok && at < expression.size()) {
    if (!Spend(budget)) return std::nullopt;
    const auto operation = read(std::uint8_t{0});
    if (operation >= 0x30 && operation <= 0x4f) {  // DW_OP_lit0 to DW_OP_lit31
      push(operation - 0x30U);
      continue;
    }
    if (operation >= 0x70 && operation <= 0x8f) {  // DW_OP_breg0 to DW_OP_breg31
      const std::uint64_t added = read_number(/*is_signed=*/true);
      push_if(get(operation - 0x70U), added);
      continue;
    }
    switch (operation) {
      case 0x06:  // DW_OP_deref
        push_if(load(pop()), 0);
        break;
      case 0x08:  // DW_OP_const1u
        push(read(std::uint8_t{0}));
        break;
      case 0x09:  // DW_OP_const1s
        push(static_cast<std::uint64_t>(std::int64_t{read(std::int8_t{0})}));
        break;
      case 0x0a:  // DW_OP_const2u
        push(read(std::uint16_t{0}));
        break;
      case 0x0b:  // DW_OP_const2s
        push(static_cast<std::uint64_t>(std::int64_t{read(std::int16_t{0})}));
        break;
      case 0x0c:  // DW_OP_const4u
        push(read(std::uint32_t{0}));
        break;
      case 0x0d:  // DW_OP_const4s
        push(static_cast<std::uint64_t>(std::int64_t{read(std::int32_t{0})}));
        break;
      case 0x0e:  // DW_OP_const8u
      case 0x0f:  // DW_OP_const8s
        push(read(std::uint64_t{0}));
        break;
      case 0x10:  // DW_OP_constu
        push(read_number(/*is_signed=*/false));
        break;
      case 0x11:  // DW_OP_consts
        push(read_number(/*is_signed=*/true));
        break;
      case 0x12: {  // DW_OP_dup
        const std::uint64_t value = pop();
        push(value);
        push(value);
        break;
      }
      case 0x13:  // DW_OP_drop
        pop();
        break;
      case 0x16: {  // DW_OP_swap
        const std::uint64_t upper = pop();
        const std::uint64_t lower = pop();
        push(upper);
        push(lower);
        break;
      }
      case 0x1f:  // DW_OP_neg
        push(std::uint64_t{0} - pop());
        break;
      case 0x20:  // DW_OP_not
        push(~pop());
        break;
      case 0x23:  // DW_OP_plus_uconst
        push(pop() + read_number(/*is_signed=*/false));
        break;
      case 0x28: {  // DW_OP_bra
        const auto distance = read(std::int16_t{0});
        if (pop() != 0) jump(distance);
        break;
      }
      case 0x2f:  // DW_OP_skip
        jump(read(std::int16_t{0}));
        break;
      case 0x92: {  // DW_OP_bregx
        const std::uint64_t number = read_number(/*is_signed=*/false);
        const std::uint64_t added = read_number(/*is_signed=*/true);
        push_if(get(number), added);
        break;
      }
      case 0x96:  // DW_OP_nop
        break;
      default: {
        // The operations with two operands.
        const std::uint64_t right = pop();
        const std::uint64_t left = pop();
        const auto is_less = static_cast<std::int64_t>(left) < static_cast<std::int64_t>(right);
        const bool is_equal = left == right;
        const auto shift = [right](std::uint64_t value) { return right < 64 ? value : 0; };
        switch (operation) {
          case 0x1a:  // DW_OP_and
            push(left & right);
            break;
          case 0x1c:  // DW_OP_minus
            push(left - right);
            break;
          case 0x1e:  // DW_OP_mul
            push(left * right);
            break;
          case 0x21:  // DW_OP_or
            push(left | right);
            break;
          case 0x22:  // DW_OP_plus
            push(left + right);
            break;
          case 0x24:  // DW_OP_shl
            push(shift(left << (right & 63)));
            break;
          case 0x25:  // DW_OP_shr
            push(shift(left >> (right & 63)));
            break;
          case 0x27:  // DW_OP_xor
            push(left ^ right);
            break;
          case 0x29:  // DW_OP_eq
            push(is_equal ? 1 : 0);
            break;
          case 0x2a:  // DW_OP_ge
            push(is_less ? 0 : 1);
            break;
          case 0x2b:  // DW_OP_gt
            push(is_less || is_equal ? 0 : 1);
            break;
          case 0x2c:  // DW_OP_le
            push(is_less || is_equal ? 1 : 0);
            break;
          case 0x2d:  // DW_OP_lt
            push(is_less ? 1 : 0);
            break;
          case 0x2e:  // DW_OP_ne
            push(is_equal ? 0 : 1);
            break;
          default:
            return std::nullopt;
        }
      }
    }
  }
  const std::uint64_t result = pop();
  return ok ? std::optional(result) : std::nullopt;
}

}  // namespace elf
