#include "libnettrace-writer/read/row_cost.h"

#include <vector>

namespace nettrace::internal {
namespace {

std::size_t CountFields(const std::vector<Field>& fields);

std::size_t CountTypes(const Type& type) {
  std::size_t count = 1 + CountFields(type.fields);
  for (const Type& element : type.element) count += CountTypes(element);
  return count;
}

std::size_t CountFields(const std::vector<Field>& fields) {
  std::size_t count = 0;
  for (const Field& field : fields) count += CountTypes(field.type);
  return count;
}

std::size_t PairsCost(std::size_t pairs) { return pairs * sizeof(KeyValues::value_type); }

}  // namespace

std::size_t MetadataRowCost(const EventMetadata& row, std::size_t size) {
  return kRowCost + size + CountFields(row.fields) * sizeof(Field) +
         PairsCost(row.key_values.size());
}

std::size_t ThreadRowCost(const ThreadInfo& row, std::size_t size) {
  return kRowCost + size + PairsCost(row.key_values.size());
}

std::size_t LabelListCost(const Labels& list, std::size_t size) {
  return kRowCost + sizeof(Labels) + size + PairsCost(list.strings.size() + list.integers.size());
}

}  // namespace nettrace::internal
