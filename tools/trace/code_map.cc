#include "tools/trace/code_map.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/base/text.h"
#include "tools/trace/code_events.h"
#include "tools/trace/function_name.h"

namespace trace {
namespace {

// Estimated bytes of a function or range without its name, of an image, and of a process.
constexpr std::size_t kEntrySize = 128;

std::string_view LastPart(std::string_view path) {
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
}

// On x86-64, arm64 and most other 64-bit architectures, the kernel has the upper half of the
// addresses.
bool IsKernelAddress(std::uint64_t address) { return address >> 63 != 0; }

}  // namespace

void CodeMap::OnEvent(const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  if (metadata.provider != nettrace::internal::traceevent::kUniversalSystem) return;
  if (!event.thread->process_id) return;
  const std::uint64_t pid = *event.thread->process_id;
  if (metadata.name == "ProcessExit" || metadata.name == "ProcessCreate") return ForgetProcess(pid);
  std::optional<CodeEvent> code = ReadCodeEvent(event);
  if (!code) return;
  if (code->kind == CodeEvent::Kind::kMapping) {
    AddMapping(pid, code->first, {code->last, code->id, code->offset}, code->name);
  } else if (code->kind == CodeEvent::Kind::kFunction) {
    AddFunction(code->mapping_id, code->first, code->last, ReadableFunction(std::move(code->name)));
  }
}

bool CodeMap::HasRoom(std::size_t bytes) {
  if (bytes_ + bytes <= kMaxBytes) return true;
  if (unused_ == 0) return false;
  unused_ = 0;
  absl::erase_if(images_, [this](const auto& entry) {
    if (entry.second.ranges != 0) return false;
    bytes_ -= entry.second.bytes;
    return true;
  });
  return bytes_ + bytes <= kMaxBytes;
}

void CodeMap::AddMapping(std::uint64_t pid, std::uint64_t first, const Range& range,
                         std::string_view path) {
  const std::string_view module = LastPart(path);
  // A mapping splits one range at most, so it adds two ranges at most. An image counts as one.
  if (!HasRoom(4 * kEntrySize + module.size())) return;
  const auto [process, is_new] = processes_.try_emplace(pid);
  if (is_new) bytes_ += kEntrySize;
  MakeRoom(&process->second, first, range.last);
  const auto [image, is_first] = images_.try_emplace(range.id);
  if (is_first) {
    image->second.bytes = kEntrySize + module.size();
    image->second.module = std::string(module);
    bytes_ += image->second.bytes;
    ++unused_;
  }
  AddRange(&process->second, first, range);
}

void CodeMap::AddRange(Ranges* ranges, std::uint64_t first, const Range& range) {
  ranges->emplace(first, range);
  if (images_[range.id].ranges++ == 0) --unused_;
  bytes_ += kEntrySize;
}

void CodeMap::MakeRoom(Ranges* ranges, std::uint64_t first, std::uint64_t last) {
  auto next = ranges->upper_bound(first);
  if (next != ranges->begin() && std::prev(next)->second.last >= first) --next;
  while (next != ranges->end() && next->first <= last) {
    const auto [old_first, old] = *next;
    next = ranges->erase(next);
    if (old_first < first) {
      AddRange(ranges, old_first, {first - 1, old.id, old.offset});
    }
    if (old.last > last) {
      AddRange(ranges, last + 1, {old.last, old.id, old.offset + (last + 1 - old_first)});
    }
    ForgetRange(old);
  }
}

void CodeMap::ForgetRange(const Range& range) {
  bytes_ -= kEntrySize;
  if (--images_[range.id].ranges == 0) ++unused_;
}

void CodeMap::ForgetProcess(std::uint64_t pid) {
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  for (const auto& [first, range] : process->second) ForgetRange(range);
  processes_.erase(process);
  bytes_ -= kEntrySize;
}

void CodeMap::AddFunction(std::uint64_t id, std::uint64_t first, std::uint64_t last,
                          std::string name) {
  const auto image = images_.find(id);
  if (image == images_.end() || name.empty()) return;
  const auto known = image->second.functions.find(first);
  if (known != image->second.functions.end()) return;
  const std::size_t bytes = kEntrySize + name.size();
  if (bytes_ + bytes > kMaxBytes) return;
  bytes_ += bytes;
  image->second.bytes += bytes;
  image->second.functions.emplace(first, Function{last, std::move(name)});
}

void CodeMap::AppendCode(std::optional<std::uint64_t> pid, std::uint64_t address, bool is_return,
                         std::string* out) const {
  const std::uint64_t code = is_return && address != 0 ? address - 1 : address;
  const auto process = pid ? processes_.find(*pid) : processes_.end();
  if (process == processes_.end()) return base::AppendHexNumber(address, out);
  const auto after = process->second.upper_bound(code);
  if (after == process->second.begin() || std::prev(after)->second.last < code) {
    return base::AppendHexNumber(address, out);
  }
  const auto& [first, range] = *std::prev(after);
  const Image& image = images_.find(range.id)->second;
  out->append(image.module);
  const auto next = image.functions.upper_bound(code);
  if (next == image.functions.begin() || std::prev(next)->second.last < code) {
    *out += '+';
    return base::AppendHexNumber(address - first + range.offset, out);
  }
  *out += '!';
  out->append(std::prev(next)->second.name);
  *out += '+';
  base::AppendHexNumber(address - std::prev(next)->first, out);
}

std::vector<std::uint64_t> StackAddresses(const nettrace::Event& event, std::int32_t pointer_size) {
  std::vector<std::uint64_t> addresses;
  const auto size = static_cast<std::size_t>(pointer_size);
  for (std::span<const std::byte> stack = event.stack; stack.size() >= size;
       stack = stack.subspan(size)) {
    std::uint64_t address = 0;
    std::memcpy(&address, stack.data(), size);
    addresses.push_back(nettrace::internal::LittleEndian(address));
  }
  return addresses;
}

bool IsReturnAddress(std::span<const std::uint64_t> stack, std::size_t index) {
  if (index == 0) return false;
  return !IsKernelAddress(stack[index - 1]) || IsKernelAddress(stack[index]);
}

}  // namespace trace
