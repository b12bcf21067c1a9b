// Tests that code that passes an id of the wrong type, or a bare number, does not compile.
#include <type_traits>
#include <utility>

#include "nettrace/ids.h"
#include "nettrace/reader.h"
#include "nettrace/writer.h"

namespace nettrace {
namespace {

template <typename From, typename To>
inline constexpr bool kTakenFor =
    std::is_convertible_v<From, To> || std::is_assignable_v<To&, From>;

template <typename Id, typename... Others>
inline constexpr bool kTakenForNone =
    !(kTakenFor<Id, Others> || ...) && !(kTakenFor<Others, Id> || ...) && !kTakenFor<Id, int> &&
    !kTakenFor<std::uint32_t, Id> && !kTakenFor<std::uint64_t, Id>;

static_assert(kTakenForNone<MetadataId, ThreadIndex, StackId, LabelListId>);
static_assert(kTakenForNone<ThreadIndex, StackId, LabelListId>);
static_assert(kTakenForNone<StackId, LabelListId>);
static_assert(kTakenFor<StackId, StackId>);  // kTakenFor can be true.

template <typename Id>
inline constexpr bool kIsRemovable =
    std::is_invocable_v<decltype(&Writer::RemoveThread), Writer&, Id>;
static_assert(kIsRemovable<ThreadIndex> && !kIsRemovable<MetadataId> && !kIsRemovable<int>);

template <typename Id>
concept IsStackOfARow = requires(EventRow row, Id id) {
  row.stack_id = id;
};
static_assert(IsStackOfARow<StackId> && !IsStackOfARow<MetadataId> && !IsStackOfARow<LabelListId>);

template <typename Id>
concept IsMetadataOfAnEvent = requires(const Event& event, Id id) {
  event.metadata_id == id;
};
static_assert(IsMetadataOfAnEvent<MetadataId> && !IsMetadataOfAnEvent<StackId> &&
              !IsMetadataOfAnEvent<int>);

// Ids have the same size as the numbers in the file.
static_assert(sizeof(MetadataId) == 4 && sizeof(ThreadIndex) == 8 && sizeof(StackId) == 4 &&
              sizeof(LabelListId) == 4 && ToNumber(ThreadIndex{7}) == 7);

}  // namespace
}  // namespace nettrace
