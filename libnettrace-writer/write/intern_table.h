// Assigns the numbers 1, 2, … to distinct byte strings, in bounded memory.
#ifndef LIBNETTRACE_WRITER_WRITE_INTERN_TABLE_H_
#define LIBNETTRACE_WRITER_WRITE_INTERN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace nettrace::internal {

class InternTable {
 public:
  InternTable(std::size_t max_entries, std::size_t max_bytes)
      : max_entries_(max_entries), max_bytes_(max_bytes) {}

  // Returns the number of `key`, or 0 if it has none. Fastest for the key that was found or
  // inserted last.
  std::uint32_t Find(std::span<const std::byte> key);
  bool HasRoom(std::size_t key_size) const {
    return ids_.size() < max_entries_ && key_size <= max_bytes_ - bytes_;
  }
  // Assigns the next number to `key`, which must be new, and for which there must be room.
  std::uint32_t Insert(std::span<const std::byte> key);
  void Clear();

  std::size_t size() const { return ids_.size(); }

  // Returns the two limits as text, for an error message.
  std::string Limits() const;

 private:
  std::byte* Allocate(std::size_t size);

  std::size_t max_entries_;
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;                                      // bytes of all keys
  absl::flat_hash_map<absl::string_view, std::uint32_t> ids_;  // keys point into chunks_
  absl::string_view last_key_;                                 // points into chunks_
  std::uint32_t last_id_ = 0;                                  // 0: no key was found or inserted
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* free_ = nullptr;  // start of the free part of the last chunk
  std::size_t free_size_ = 0;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_INTERN_TABLE_H_
