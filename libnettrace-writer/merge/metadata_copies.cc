#include "libnettrace-writer/merge/metadata_copies.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace nettrace::internal {
namespace {

// Makes V6 types of those that V4 and V5 have in addition, or mean otherwise, for the same bytes.
void ConvertTypes(std::vector<Field>* fields, PayloadEncoding encoding);

void ConvertType(Type* type, PayloadEncoding encoding) {
  if (type->code == TypeCode::kDateTime && encoding == PayloadEncoding::kLegacy) {
    type->code = TypeCode::kUInt64;  // a FILETIME
  }
  if (type->code == TypeCode::kDecimal) {
    *type = Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 16);
  }
  for (Type& element : type->element) ConvertType(&element, encoding);
  ConvertTypes(&type->fields, encoding);
}

void ConvertTypes(std::vector<Field>* fields, PayloadEncoding encoding) {
  for (Field& field : *fields) ConvertType(&field.type, encoding);
}

}  // namespace

absl::StatusOr<MetadataId> MetadataCopies::IdOf(const EventMetadata& metadata,
                                                PayloadEncoding encoding) {
  Provider& provider = providers_[metadata.provider];
  const auto [first, last] = provider.copies.equal_range(metadata.event_id);
  for (auto it = first; it != last; ++it) {
    if (it->second.original == metadata) return it->second.id;
  }
  EventMetadata copy = metadata;
  ConvertTypes(&copy.fields, encoding);
  if (!traceevent::IsEventId(copy.provider, copy.event_id) ||
      provider.taken.contains(copy.event_id)) {
    while (provider.next_free > 0 && provider.taken.contains(provider.next_free)) {
      --provider.next_free;
    }
    if (provider.next_free == 0) {
      return absl::ResourceExhaustedError(absl::StrCat("provider ", metadata.provider,
                                                       " has more than ", traceevent::kMaxEventId,
                                                       " metadata rows"));
    }
    const bool has_own_id =
        std::any_of(copy.key_values.begin(), copy.key_values.end(),
                    [](const auto& entry) { return entry.first == traceevent::kOwnIdKey; });
    if (!has_own_id)
      copy.key_values.emplace_back(traceevent::kOwnIdKey, absl::StrCat(copy.event_id));
    copy.event_id = provider.next_free;
  }
  const auto id = writer_->AddMetadata(copy);
  if (!id.ok()) return id.status();
  provider.taken.insert(copy.event_id);
  provider.copies.emplace(metadata.event_id, Copy{metadata, *id});
  return *id;
}

}  // namespace nettrace::internal
