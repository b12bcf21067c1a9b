#include "intern_table.h"

#include <algorithm>
#include <cstring>

namespace nettrace::internal {
namespace {

constexpr std::size_t kChunkSize = 64 * 1024;

absl::string_view View(std::span<const std::byte> key) {
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

}  // namespace

std::uint32_t InternTable::Find(std::span<const std::byte> key) const {
  const auto found = ids_.find(View(key));
  return found == ids_.end() ? 0 : found->second;
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
  ids_.emplace(View({copy, key.size()}), id);
  return id;
}

void InternTable::Clear() {
  ids_.clear();
  chunks_.clear();
  free_ = nullptr;
  free_size_ = 0;
  bytes_ = 0;
}

}  // namespace nettrace::internal
