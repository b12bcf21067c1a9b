// The ids and indices by which the rows of a stream refer to one another. Each kind is a separate
// type, so that code that passes the wrong kind does not compile.
#ifndef NETTRACE_IDS_H_
#define NETTRACE_IDS_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstdint>
#include <type_traits>

namespace nettrace {

enum class MetadataId : std::uint32_t {};
enum class ThreadIndex : std::uint64_t {};  // in V4 and V5: the OS thread id
enum class StackId : std::uint32_t {};
enum class LabelListId : std::uint32_t {};

// Ids that mean no row. A Writer never assigns them.
inline constexpr MetadataId kNoMetadata{0};
inline constexpr ThreadIndex kNoThread{0};
inline constexpr StackId kNoStack{0};
inline constexpr LabelListId kNoLabels{0};

// Returns the id as written in the file.
template <typename Id>
constexpr std::underlying_type_t<Id> ToNumber(Id id) {
  return static_cast<std::underlying_type_t<Id>>(id);
}

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_IDS_H_
