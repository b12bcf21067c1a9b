#include "libnettrace-writer/read/parse_rows.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/date_time.h"

namespace nettrace::internal {
namespace {

// Maximum number of key/values in the Trace block and of labels in a list. Such an entry can take
// as little as 2 bytes in the file, but many times that in memory.
constexpr int kMaxEntries = 65536;
constexpr char kTooManyKeyValues[] =
    "the number of key/values is not in 0..65536, the range of this reader";
constexpr char kTooManyLabels[] =
    "a label list has more than 65536 labels, the limit of this reader";
static_assert(kMaxEntries == 65536);

const char* ParseFields(ByteReader* reader, int depth, std::vector<Field>* fields);

void TakeKeyValue(ByteReader* reader, KeyValues* key_values) {
  std::string key(reader->String());
  std::string value(reader->String());
  if (reader->ok()) key_values->emplace_back(std::move(key), std::move(value));
}

const char* ParseType(ByteReader* reader, int depth, Type* type) {
  if (depth > kMaxTypeDepth) return kTypesTooDeep;
  const auto code = reader->Number<std::uint8_t>();
  type->code = static_cast<TypeCode>(code);
  switch (type->code) {
    case TypeCode::kArray:
    case TypeCode::kFixedLengthArray:
    case TypeCode::kRelLoc:
    case TypeCode::kDataLoc: {
      type->element.emplace_back();
      const char* error = ParseType(reader, depth + 1, &type->element.back());
      if (error != nullptr) return error;
      if (type->code == TypeCode::kFixedLengthArray) type->count = reader->Number<std::uint16_t>();
      break;
    }
    case TypeCode::kObject:
      return ParseFields(reader, depth + 1, &type->fields);
    default:
      if (!reader->ok()) break;
      if (code < 3 || code > static_cast<std::uint8_t>(TypeCode::kBoolean8)) {
        return "a type code is unknown";
      }
      break;
  }
  return reader->ok() ? nullptr : "a type is cut short";
}

const char* ParseFields(ByteReader* reader, int depth, std::vector<Field>* fields) {
  const auto count = reader->Number<std::uint16_t>();
  for (std::uint16_t i = 0; i < count; ++i) {
    ByteReader row = reader->Part(reader->Number<std::uint16_t>());
    Field field;
    field.name = std::string(row.String());
    if (const char* error = ParseType(&row, depth, &field.type)) return error;
    fields->push_back(std::move(field));
  }
  return reader->ok() ? nullptr : "the fields are cut short";
}

const char* TakeTraceFields(ByteReader* block, TraceInfo* info) {
  info->sync_time = ToTime(ReadDateTime(block));
  info->sync_ticks = block->Number<std::int64_t>();
  info->ticks_per_second = block->Number<std::int64_t>();
  info->pointer_size = block->Number<std::int32_t>();
  if (!block->ok()) return "the block is cut short";
  if (info->ticks_per_second <= 0) return "the tick frequency is not positive";
  if (info->pointer_size != 4 && info->pointer_size != 8) return "the pointer size is not 4 or 8";
  return nullptr;
}

}  // namespace

const char* ParseTraceBlock(ByteReader block, TraceInfo* info) {
  if (const char* error = TakeTraceFields(&block, info)) return error;
  const auto count = block.Number<std::int32_t>();
  if (count < 0 || count > kMaxEntries) return kTooManyKeyValues;
  for (std::int32_t i = 0; block.ok() && i < count; ++i) TakeKeyValue(&block, &info->key_values);
  return block.ok() ? nullptr : "the block is cut short";
}

const char* ParseLegacyTraceBlock(ByteReader block, TraceInfo* info) {
  if (const char* error = TakeTraceFields(&block, info)) return error;
  for (const char* key : {kKeyProcessId, kKeyHardwareThreadCount, kKeyExpectedCpuSamplingRate}) {
    info->key_values.emplace_back(key, absl::StrCat(block.Number<std::int32_t>()));
  }
  return block.ok() ? nullptr : "the block is cut short";
}

const char* ParseMetadataRow(ByteReader* block, MetadataId* id, EventMetadata* metadata) {
  ByteReader row = block->Part(block->Number<std::uint16_t>());
  *id = MetadataId{row.VarUInt32()};
  metadata->provider = std::string(row.String());
  metadata->event_id = row.VarUInt32();
  metadata->name = std::string(row.String());
  if (const char* error = ParseFields(&row, 0, &metadata->fields)) return error;
  ByteReader optional = row.Part(row.Number<std::uint16_t>());
  while (optional.ok() && !optional.empty()) {
    switch (static_cast<MetadataKind>(optional.Number<std::uint8_t>())) {
      case MetadataKind::kOpcode:
        metadata->opcode = optional.Number<std::uint8_t>();
        break;
      case MetadataKind::kKeyword:
        metadata->keywords = optional.Number<std::uint64_t>();
        break;
      case MetadataKind::kMessageTemplate:
        metadata->message_template = std::string(optional.String());
        break;
      case MetadataKind::kDescription:
        metadata->description = std::string(optional.String());
        break;
      case MetadataKind::kKeyValue:
        TakeKeyValue(&optional, &metadata->key_values);
        break;
      case MetadataKind::kProviderGuid:
        metadata->provider_guid = optional.Id128();
        break;
      case MetadataKind::kLevel:
        metadata->level = optional.Number<std::uint8_t>();
        break;
      case MetadataKind::kVersion:
        metadata->version = optional.Number<std::uint8_t>();
        break;
      default:
        return "a kind of optional metadata is unknown";
    }
  }
  return row.ok() && optional.ok() ? nullptr : "a metadata row is cut short";
}

const char* ParseThreadRow(ByteReader* block, ThreadIndex* index, ThreadInfo* thread) {
  ByteReader row = block->Part(block->Number<std::uint16_t>());
  *index = ThreadIndex{row.VarUInt64()};
  while (row.ok() && !row.empty()) {
    switch (static_cast<ThreadInfoKind>(row.Number<std::uint8_t>())) {
      case ThreadInfoKind::kName:
        thread->name = std::string(row.String());
        break;
      case ThreadInfoKind::kOsProcessId:
        thread->process_id = row.VarUInt64();
        break;
      case ThreadInfoKind::kOsThreadId:
        thread->thread_id = row.VarUInt64();
        break;
      case ThreadInfoKind::kKeyValue:
        TakeKeyValue(&row, &thread->key_values);
        break;
      default:
        return "a kind of thread information is unknown";
    }
  }
  return row.ok() ? nullptr : "a thread row is cut short";
}

const char* ParseLabelList(ByteReader* block, Labels* labels) {
  int count = 0;
  for (bool last = false; !last;) {
    const auto kind = block->Number<std::uint8_t>();
    if (!block->ok()) return "a label list is cut short";
    if (++count > kMaxEntries) return kTooManyLabels;
    last = (kind & kLastLabel) != 0;
    switch (static_cast<LabelKind>(kind & ~kLastLabel)) {
      case LabelKind::kActivityId:
        labels->activity_id = block->Id128();
        break;
      case LabelKind::kRelatedActivityId:
        labels->related_activity_id = block->Id128();
        break;
      case LabelKind::kTraceId:
        labels->trace_id = block->Id128();
        break;
      case LabelKind::kSpanId:
        labels->span_id = block->Number<std::uint64_t>();
        break;
      case LabelKind::kKeyString:
        TakeKeyValue(block, &labels->strings);
        break;
      case LabelKind::kKeyInteger: {
        std::string key(block->String());
        const std::int64_t value = block->VarInt64();
        labels->integers.emplace_back(std::move(key), value);
        break;
      }
      case LabelKind::kOpcode:
        labels->opcode = block->Number<std::uint8_t>();
        break;
      case LabelKind::kKeywords:
        labels->keywords = block->Number<std::uint64_t>();
        break;
      case LabelKind::kLevel:
        labels->level = block->Number<std::uint8_t>();
        break;
      case LabelKind::kVersion:
        labels->version = block->Number<std::uint8_t>();
        break;
      default:
        return "a kind of label is unknown";
    }
  }
  return block->ok() ? nullptr : "a label list is cut short";
}

SequencePointHeader ParseSequencePointHeader(ByteReader* block, bool legacy) {
  SequencePointHeader header;
  header.timestamp = block->Number<std::uint64_t>();
  header.flags = legacy ? 0 : block->Number<std::uint32_t>();
  header.threads = block->Number<std::uint32_t>();
  return header;
}

ThreadSequence ParseThreadSequence(ByteReader* block, bool legacy) {
  ThreadSequence entry;
  entry.thread = ThreadIndex{legacy ? block->Number<std::uint64_t>() : block->VarUInt64()};
  entry.sequence = legacy ? block->Number<std::uint32_t>() : block->VarUInt32();
  return entry;
}

}  // namespace nettrace::internal
