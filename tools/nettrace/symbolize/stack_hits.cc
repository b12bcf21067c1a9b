#include "tools/nettrace/symbolize/stack_hits.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/elf/elf_file.h"
#include "tools/trace/code_map.h"

namespace tools::symbolize {
namespace {

// Estimated bytes of a mapping, file or function without its text, and of an address.
constexpr std::size_t kEntrySize = 256;
constexpr std::size_t kAddressSize = 48;

constexpr std::size_t kMaxSeen = std::size_t{1} << 20;

// Returns a number that is JSON's, or hexadecimal or decimal text.
std::optional<std::uint64_t> NumberOf(const rapidjson::Value& value) {
  if (value.IsUint64()) return value.GetUint64();
  if (!value.IsString()) return std::nullopt;
  const absl::string_view text(value.GetString(), value.GetStringLength());
  std::uint64_t number = 0;
  const bool is_hex = text.substr(0, 2) == "0x";
  if (is_hex ? absl::SimpleHexAtoi(text, &number) : absl::SimpleAtoi(text, &number)) return number;
  return std::nullopt;
}

bool IsHex(absl::string_view text) {
  return text.size() % 2 == 0 && std::all_of(text.begin(), text.end(), absl::ascii_isxdigit);
}

// Removes the ranges that overlap [first, last]. A collector writes another mapping for what is
// left of them.
template <typename Ranges>
void MakeRoom(Ranges* ranges, std::uint64_t first, std::uint64_t last) {
  auto next = ranges->upper_bound(first);
  if (next != ranges->begin() && std::prev(next)->second.last >= first) --next;
  while (next != ranges->end() && next->first <= last) next = ranges->erase(next);
}

}  // namespace

MappedFile ParseSymbolMetadata(const std::string& json) {
  MappedFile file;
  rapidjson::Document document;
  // Iterative parsing uses no stack for nested values.
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return file;
  if (document.HasMember("build_id") && document["build_id"].IsString()) {
    const rapidjson::Value& id = document["build_id"];
    const absl::string_view digits(id.GetString(), id.GetStringLength());
    if (digits.size() <= 2 * elf::kMaxBuildId && IsHex(digits)) {
      file.build_id = absl::HexStringToBytes(digits);
    }
  }
  if (document.HasMember("p_vaddr")) file.address = NumberOf(document["p_vaddr"]);
  return file;
}

bool StackHits::Spend(std::size_t bytes) {
  if (bytes_ + bytes > kMaxBytes) {
    ++ignored_;
    return false;
  }
  bytes_ += bytes;
  return true;
}

void StackHits::OnEvent(const nettrace::Reader& reader, const nettrace::Event& event) {
  if (!event.thread->process_id) return;
  const std::uint64_t pid = *event.thread->process_id;
  const nettrace::EventMetadata& metadata = *event.metadata;
  if (metadata.provider == nettrace::internal::traceevent::kUniversalSystem) {
    if (metadata.name == "ProcessExit" || metadata.name == "ProcessCreate") processes_.erase(pid);
    std::optional<trace::CodeEvent> code = trace::ReadCodeEvent(event);
    if (code) return OnCode(reader, event, *std::move(code));
  }
  if (event.stack.empty()) return;
  const auto process = processes_.find(pid);
  if (process == processes_.end()) return;
  if (seen_.size() >= kMaxSeen) seen_.clear();
  if (!seen_.emplace(pid, event.stack.data()).second) return;
  AddStack(process->second, event, reader.trace().pointer_size);
}

void StackHits::OnCode(const nettrace::Reader& reader, const nettrace::Event& event,
                       trace::CodeEvent code) {
  using Kind = trace::CodeEvent::Kind;
  if (code.kind == Kind::kFile) {
    if (!files_.contains(code.id) && Spend(kEntrySize)) {
      files_.emplace(code.id, ParseSymbolMetadata(code.json));
    }
    return;
  }
  max_id_ = std::max(max_id_, code.id);
  if (code.kind == Kind::kFunction) {
    auto& functions = functions_[code.mapping_id];
    if (!functions.contains(code.first) && Spend(kEntrySize)) {
      functions.emplace(code.first, code.last);
    }
    return;
  }
  // A stack that was seen may contain other code now.
  seen_.clear();
  AddMapping(*event.thread->process_id, reader.TimeOf(event.timestamp), std::move(code));
}

void StackHits::AddMapping(std::uint64_t pid, absl::Time time, trace::CodeEvent code) {
  if (!Spend(2 * kEntrySize + code.name.size())) return;
  const auto [known, is_new] = mappings_.try_emplace(code.id);
  HitMapping& mapping = known->second;
  if (is_new) {
    mapping.id = code.id;
    mapping.pid = pid;
    mapping.first = code.first;
    mapping.last = code.last;
    mapping.offset = code.offset;
    mapping.time = time;
    mapping.path = std::move(code.name);
    metadata_ids_[code.id] = code.metadata_id;
  } else if (mapping.first != code.first || mapping.last != code.last) {
    return;  // the file is not valid
  }
  Ranges& ranges = processes_[pid];
  MakeRoom(&ranges, code.first, code.last);
  ranges.emplace(code.first, Range{code.last, code.id});
}

void StackHits::AddStack(const Ranges& ranges, const nettrace::Event& event,
                         std::int32_t pointer_size) {
  const std::vector<std::uint64_t> stack = trace::StackAddresses(event, pointer_size);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const bool is_call = stack[i] != 0 && trace::IsReturnAddress(stack, i);
    const std::uint64_t address = is_call ? stack[i] - 1 : stack[i];
    const auto after = ranges.upper_bound(address);
    if (after == ranges.begin() || std::prev(after)->second.last < address) continue;
    const std::pair hit(std::prev(after)->second.id, address);
    if (!hits_.contains(hit) && Spend(kAddressSize)) hits_.insert(hit);
  }
}

std::vector<HitMapping> StackHits::Finish() {
  for (const auto& [id, address] : hits_) {
    const auto functions = functions_.find(id);
    if (functions != functions_.end()) {
      const auto after = functions->second.upper_bound(address);
      if (after != functions->second.begin() && std::prev(after)->second >= address) continue;
    }
    mappings_[id].addresses.push_back(address);
  }
  std::vector<HitMapping> hit;
  for (auto& [id, mapping] : mappings_) {
    if (mapping.addresses.empty()) continue;
    std::sort(mapping.addresses.begin(), mapping.addresses.end());
    const auto file = files_.find(metadata_ids_[id]);
    if (file != files_.end()) mapping.file = file->second;
    hit.push_back(std::move(mapping));
  }
  std::sort(hit.begin(), hit.end(),
            [](const HitMapping& a, const HitMapping& b) { return a.id < b.id; });
  return hit;
}

}  // namespace tools::symbolize
