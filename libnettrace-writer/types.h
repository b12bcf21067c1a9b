// What the types of fields are like, for those who write them and those who verify them.
#ifndef LIBNETTRACE_WRITER_TYPES_H_
#define LIBNETTRACE_WRITER_TYPES_H_

#include <cstdint>
#include <optional>

#include "nettrace/schema.h"

namespace nettrace::internal {

// The reference reader throws at the metadata row of a fixed array of more.
inline constexpr std::uint64_t kMaxFixedArrayBytes = 65514;

// Whether it has an element type.
bool IsArray(const Type& type);
bool IsCodeUnit(const Type& type);

// The bytes every value of `type` takes in a payload, not counting what it locates elsewhere;
// nullopt if they vary. All its arrays have their element type.
std::optional<std::uint64_t> FixedSize(const Type& type);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_TYPES_H_
