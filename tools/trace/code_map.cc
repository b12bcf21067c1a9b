#include "tools/trace/code_map.h"

#include <rapidjson/document.h>

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

// Estimated bytes of each entry (a function, range, image or process) without its texts.
constexpr std::size_t kEntrySize = 128;

// Maximum digits of a build id. A longer build id is cut.
constexpr std::size_t kMaxBuildId = 128;

// Returns whether the address belongs to the kernel. On x86-64, arm64 and most other 64-bit
// architectures, the kernel has the upper half of the addresses.
bool IsKernelAddress(std::uint64_t address) { return address >> 63 != 0; }

// Returns the member build_id of the JSON object, or "" if there is none.
std::string BuildIdIn(std::string_view json) {
  rapidjson::Document document;
  // Parses iteratively, because hostile text may be nested deeply.
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return "";
  if (!document.HasMember("build_id") || !document["build_id"].IsString()) return "";
  const rapidjson::Value& id = document["build_id"];
  return std::string(id.GetString(), std::min<std::size_t>(id.GetStringLength(), kMaxBuildId));
}

}  // namespace

void CodeMap::OnEvent(const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  if (metadata.provider != nettrace::internal::traceevent::kUniversalSystem) return;
  if (!event.thread->process_id) return;
  const std::size_t host = hosts_.Add(*event.thread);
  if (host == Hosts::kOthers) return;
  const ProcessKey key(host, *event.thread->process_id);
  // dotnet-trace collect-linux writes the mappings of a process before its ProcessCreate event, so
  // this event must not remove them. The files of dotnet-trace are recognized by their metadata
  // rows, whose fields differ from those of the payloads.
  const bool are_mappings_first =
      &nettrace::internal::traceevent::FieldsOfPayload(metadata) != &metadata.fields;
  if (metadata.name == "ProcessExit" || (metadata.name == "ProcessCreate" && !are_mappings_first)) {
    return ForgetProcess(key);
  }
  std::optional<CodeEvent> code = ReadCodeEvent(event);
  if (!code) return;
  if (code->kind == CodeEvent::Kind::kMapping) {
    AddMapping(key, code->first, {code->last, code->id, code->offset}, code->name,
               code->metadata_id);
  } else if (code->kind == CodeEvent::Kind::kFile) {
    AddBuildId(code->id, code->json);
  } else {
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

void CodeMap::AddBuildId(std::uint64_t metadata, std::string_view json) {
  std::string id = BuildIdIn(json);
  const std::size_t bytes = kEntrySize + id.size();
  if (id.empty() || !HasRoom(bytes)) return;
  if (build_ids_.try_emplace(metadata, std::move(id)).second) bytes_ += bytes;
}

void CodeMap::AddMapping(const ProcessKey& key, std::uint64_t first, const Range& range,
                         std::string_view path, std::uint64_t metadata) {
  const auto known_id = build_ids_.find(metadata);
  const std::string_view build_id =
      known_id == build_ids_.end() ? std::string_view() : std::string_view(known_id->second);
  const std::size_t text = path.size() + build_id.size();
  // A mapping adds at most four entries: two ranges, because it may split a range, and its image
  // and process if they are new.
  if (!HasRoom(4 * kEntrySize + text)) {
    ++ignored_;
    return;
  }
  const auto [process, is_new] = processes_.try_emplace(key);
  if (is_new) bytes_ += kEntrySize;
  process->second.version = ++changes_;
  MakeRoom(&process->second.ranges, first, range.last);
  const auto [image, is_first] = images_.try_emplace(range.id);
  if (is_first) {
    image->second.bytes = kEntrySize + text;
    image->second.path = std::string(path);
    image->second.build_id = std::string(build_id);
    bytes_ += image->second.bytes;
    ++unused_;
  }
  AddRange(&process->second.ranges, first, range);
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

void CodeMap::ForgetProcess(const ProcessKey& key) {
  const auto process = processes_.find(key);
  if (process == processes_.end()) return;
  for (const auto& [first, range] : process->second.ranges) ForgetRange(range);
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
  if (bytes_ + bytes > kMaxBytes) {
    ++ignored_;
    return;
  }
  bytes_ += bytes;
  image->second.bytes += bytes;
  image->second.functions.emplace(first, Function{last, std::move(name)});
}

const CodeMap::Process* CodeMap::FindProcess(const nettrace::ThreadInfo& thread) const {
  if (!thread.process_id) return nullptr;
  const auto process = processes_.find({hosts_.Find(thread), *thread.process_id});
  return process == processes_.end() ? nullptr : &process->second;
}

std::uint64_t CodeMap::VersionOf(const nettrace::ThreadInfo& thread) const {
  const Process* const process = FindProcess(thread);
  return process == nullptr ? 0 : process->version;
}

CodeMap::Code CodeMap::Find(const nettrace::ThreadInfo& thread, std::uint64_t address,
                            bool is_return) const {
  const std::uint64_t code = is_return && address != 0 ? address - 1 : address;
  const Process* const process = FindProcess(thread);
  if (process == nullptr) return {};
  const auto after = process->ranges.upper_bound(code);
  if (after == process->ranges.begin() || std::prev(after)->second.last < code) return {};
  const auto& [first, range] = *std::prev(after);
  const Image& image = images_.find(range.id)->second;
  Code found{true, range.id, image.path, image.build_id, "", 0, first, range.offset};
  if (const std::optional<Symbol> symbol = FindFunction(range.id, code)) {
    found.function = symbol->name;
    found.function_start = symbol->start;
  }
  return found;
}

std::optional<CodeMap::Symbol> CodeMap::FindFunction(std::uint64_t mapping,
                                                     std::uint64_t address) const {
  const auto image = images_.find(mapping);
  if (image == images_.end()) return std::nullopt;
  // The last function that starts before the address may also end before it, and lie within the
  // function that contains the address. Up to kMaxWithin earlier functions are therefore tried too.
  constexpr int kMaxWithin = 8;
  const auto& functions = image->second.functions;
  auto function = functions.upper_bound(address);
  for (int i = 0; i <= kMaxWithin && function != functions.begin(); ++i) {
    --function;
    if (function->second.last >= address) return Symbol{function->second.name, function->first};
  }
  return std::nullopt;
}

void CodeMap::AppendCode(const nettrace::ThreadInfo& thread, std::uint64_t address, bool is_return,
                         std::string* out) const {
  const Code code = Find(thread, address, is_return);
  if (!code.is_known) return base::AppendHexNumber(address, out);
  out->append(ModuleName(code.path));
  if (code.function.empty()) {
    *out += '+';
    return base::AppendHexNumber(address - code.mapping_start + code.file_offset, out);
  }
  *out += '!';
  out->append(code.function);
  *out += '+';
  base::AppendHexNumber(address - code.function_start, out);
}

std::string_view ModuleName(std::string_view path) {
  return path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
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
