#include "tools/nettrace/symbolize/stack_hits.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <limits>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "tools/elf/elf_file.h"

namespace tools::symbolize {
namespace {

// Estimated bytes of a mapping or file without its name, and of an address.
constexpr std::size_t kEntrySize = 256;
constexpr std::size_t kAddressSize = 48;

constexpr std::size_t kMaxSeen = std::size_t{1} << 20;

// Returns the number in a JSON value: a number, or text with decimal digits or with 0x and
// hexadecimal digits. Returns nullopt for other values.
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
  code_.OnEvent(event);
  if (const std::optional<trace::CodeEvent> code = trace::ReadCodeEvent(event)) {
    return OnCode(reader, event, *code);
  }
  const std::uint64_t version = event.stack.empty() ? 0 : code_.VersionOf(*event.thread);
  if (version == 0) return;
  if (seen_.size() >= kMaxSeen) seen_.clear();
  if (!seen_.emplace(version, event.stack.data()).second) return;
  AddStack(event, reader.trace().pointer_size);
}

void StackHits::OnCode(const nettrace::Reader& reader, const nettrace::Event& event,
                       const trace::CodeEvent& code) {
  using Kind = trace::CodeEvent::Kind;
  if (code.kind == Kind::kFile) {
    const auto known = files_.find(code.id);
    if (known != files_.end()) {
      // `nettrace symbolize` has added a second event, which has the address, and the build id if
      // the first event has none.
      const MappedFile again = ParseSymbolMetadata(code.json);
      const std::string& build_id = known->second.build_id;
      if ((build_id.empty() || again.build_id == build_id) && again.address) known->second = again;
    } else if (Spend(kEntrySize)) {
      files_.emplace(code.id, ParseSymbolMetadata(code.json));
    }
    return;
  }
  max_id_ = std::max(max_id_, code.id);
  if (code.kind == Kind::kFunction || !event.thread->process_id) return;
  if (mappings_.contains(code.id) || !Spend(2 * kEntrySize + code.name.size())) return;
  HitMapping& mapping = mappings_[code.id];
  mapping.id = code.id;
  mapping.pid = *event.thread->process_id;
  mapping.first = code.first;
  mapping.last = code.last;
  mapping.offset = code.offset;
  mapping.time = reader.TimeOf(event.timestamp);
  mapping.path = code.name;
  mapping.metadata_id = code.metadata_id;
}

void StackHits::AddStack(const nettrace::Event& event, std::int32_t pointer_size) {
  const std::vector<std::uint64_t> stack = trace::StackAddresses(event, pointer_size);
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const bool is_call = stack[i] != 0 && trace::IsReturnAddress(stack, i);
    const std::uint64_t address = is_call ? stack[i] - 1 : stack[i];
    const trace::CodeMap::Code code = code_.Find(*event.thread, address, /*is_return=*/false);
    const auto mapping = code.is_known ? mappings_.find(code.mapping) : mappings_.end();
    // Mappings of different processes may share an id, but mappings_ has only the first of them.
    // Skips an address outside of this mapping.
    if (mapping == mappings_.end() || address < mapping->second.first ||
        address > mapping->second.last) {
      continue;
    }
    const std::pair hit(code.mapping, address);
    if (!hits_.contains(hit) && Spend(kAddressSize)) hits_.insert(hit);
  }
}

std::vector<HitMapping> StackHits::Finish() {
  for (const auto& [id, address] : hits_) {
    if (!code_.FindFunction(id, address)) mappings_[id].addresses.push_back(address);
  }
  std::vector<HitMapping> hit;
  for (auto& [id, mapping] : mappings_) {
    if (mapping.addresses.empty()) continue;
    std::sort(mapping.addresses.begin(), mapping.addresses.end());
    const auto file = files_.find(mapping.metadata_id);
    if (file != files_.end()) mapping.file = file->second;
    hit.push_back(std::move(mapping));
  }
  std::sort(hit.begin(), hit.end(),
            [](const HitMapping& a, const HitMapping& b) { return a.id < b.id; });
  return hit;
}

}  // namespace tools::symbolize
