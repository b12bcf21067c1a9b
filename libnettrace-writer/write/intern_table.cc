#include "libnettrace-writer/write/intern_table.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace nettrace::internal {
namespace {

constexpr std::size_t kChunkSize = 64 * 1024;

absl::string_view View(std::span<const std::byte> key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace

std::uint32_t InternTable::Find(std::span<const std::byte> key) {
  // Tries the last key first, because consecutive events often have the same labels or the same
  // stack.
  if (last_id_ != 0 && View(key) == last_key_) return last_id_;
  const auto found = ids_.find(View(key));
  if (found == ids_.end()) return 0;
  last_key_ = found->first;
  last_id_ = found->second;
  return last_id_;
}

std::byte* InternTable::Allocate(std::size_t size) {
  if (size > free_size_) {
    free_size_ = std::max(size, kChunkSize);
    free_ = chunks_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(free_size_)).get();
  }
  std::byte* const allocated = free_;
  free_ += size;
  free_size_ -= size;
  return allocated;
}

std::uint32_t InternTable::Insert(std::span<const std::byte> key) {
  std::byte* const copy = Allocate(key.size());
  if (!key.empty()) std::memcpy(copy, key.data(), key.size());
  bytes_ += key.size();
  const auto id = static_cast<std::uint32_t>(ids_.size() + 1);
  last_key_ = View({copy, key.size()});
  last_id_ = id;
  ids_.emplace(last_key_, id);
  return id;
}

std::string InternTable::Limits() const {
  return absl::StrCat("at most ", max_entries_, " of them, with ", max_bytes_, " bytes");
}

void InternTable::Clear() {
  ids_.clear();
  last_key_ = {};
  last_id_ = 0;
  chunks_.clear();
  free_ = nullptr;
  free_size_ = 0;
  bytes_ = 0;
}

}  // namespace nettrace::internal
