#include "libnettrace-writer/merge/metadata_copies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/write/put_rows.h"

namespace nettrace::internal {
namespace {

// Replaces types that only V4 and V5 have, or that have another meaning in V4 and V5, by V6 types
// for the same bytes.
void ConvertTypes(std::vector<Field>* fields, PayloadEncoding encoding);

void ConvertType(Type* type, PayloadEncoding encoding) {
  if (type->code == TypeCode::kDateTime && encoding == PayloadEncoding::kLegacy) {
    type->code = TypeCode::kUInt64;  // a FILETIME: units of 100 ns since 1601
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

// Gives `copy` another EventId, and keeps the original EventId as a key/value.
void Renumber(std::uint32_t id, EventMetadata* copy) {
  const bool has_own_id =
      std::any_of(copy->key_values.begin(), copy->key_values.end(),
                  [](const auto& entry) { return entry.first == traceevent::kOwnIdKey; });
  if (!has_own_id) {
    copy->key_values.emplace_back(traceevent::kOwnIdKey, absl::StrCat(copy->event_id));
  }
  copy->event_id = id;
}

}  // namespace

absl::Status MetadataCopies::ChooseEventId(EventMetadata* copy) {
  // TraceEvent recognizes the events of this provider by their EventIds, so the copy must keep the
  // EventId.
  if (copy->provider == traceevent::kUniversalSystem) return absl::OkStatus();
  if (const std::optional<std::uint32_t> id = event_ids_.IdOfName(*copy)) {
    if (*id != copy->event_id) Renumber(*id, copy);
    if (event_ids_.Find(*copy) == EventIdTable::Clash::kNone) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        copy->provider, "/", copy->name,
        ": another row with this name has different fields or a different opcode; "
        "TraceEvent identifies events of this provider by name, so only one of the rows can be "
        "copied"));
  }
  if (event_ids_.Find(*copy) == EventIdTable::Clash::kNone &&
      traceevent::IsEventId(copy->event_id)) {
    return absl::OkStatus();
  }
  const std::optional<std::uint32_t> id = event_ids_.FreeId(*copy);
  if (!id) {
    return absl::ResourceExhaustedError(absl::StrCat("provider ", copy->provider, " has more than ",
                                                     kMaxGivenEventId,
                                                     " kinds of events; copy fewer of them"));
  }
  Renumber(*id, copy);
  return absl::OkStatus();
}

absl::StatusOr<MetadataId> MetadataCopies::IdOf(const EventMetadata& metadata,
                                                PayloadEncoding encoding) {
  EventMetadata copy = metadata;
  ConvertTypes(&copy.fields, encoding);
  ByteWriter row;
  if (absl::Status status = PutMetadataRow(kNoMetadata, copy, &row); !status.ok()) return status;
  const std::string key(reinterpret_cast<const char*>(row.bytes().data()), row.size());
  if (const auto found = copies_.find(key); found != copies_.end()) return found->second;
  if (absl::Status status = ChooseEventId(&copy); !status.ok()) return status;
  const auto id = writer_->AddMetadata(copy);
  if (!id.ok()) return id.status();
  event_ids_.Add(copy);
  copies_.emplace(key, *id);
  return *id;
}

}  // namespace nettrace::internal
