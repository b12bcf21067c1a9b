#include "libnettrace-writer/write/put_rows.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/block_layout.h"
#include "libnettrace-writer/core/date_time.h"
#include "libnettrace-writer/write/block_output.h"
#include "nettrace/format.h"

namespace nettrace::internal {
namespace {

template <typename Kind>
void PutKind(Kind kind, ByteWriter* out) {
  out->Fixed(static_cast<std::uint8_t>(kind));
}

// Reserves a 16-bit size, and then sets it to the number of bytes appended after it.
class SizePrefix {
 public:
  explicit SizePrefix(ByteWriter* out) : out_(out), at_(out->Reserve(sizeof(std::uint16_t))) {}

  absl::Status Close(std::string_view what) {
    const std::size_t size = out_->size() - at_ - sizeof(std::uint16_t);
    if (size > kMaxRowSize) {
      return absl::OutOfRangeError(absl::StrCat(absl::string_view(what.data(), what.size()), " of ",
                                                size, " bytes; the maximum is ", kMaxRowSize));
    }
    out_->FixedAt(at_, static_cast<std::uint16_t>(size));
    return absl::OkStatus();
  }

 private:
  ByteWriter* out_;
  std::size_t at_;
};

absl::Status PutFields(const std::vector<Field>& fields, ByteWriter* out);

absl::Status PutType(const Type& type, ByteWriter* out) {
  PutKind(type.code, out);
  for (const Type& element : type.element) {
    if (absl::Status status = PutType(element, out); !status.ok()) return status;
  }
  if (type.code == TypeCode::kFixedLengthArray) out->Fixed(type.count);
  return type.code == TypeCode::kObject ? PutFields(type.fields, out) : absl::OkStatus();
}

absl::Status PutFields(const std::vector<Field>& fields, ByteWriter* out) {
  out->Fixed(static_cast<std::uint16_t>(fields.size()));
  for (const Field& field : fields) {
    SizePrefix size(out);
    out->String(field.name);
    if (absl::Status status = PutType(field.type, out); !status.ok()) return status;
    if (absl::Status status = size.Close("a field's description"); !status.ok()) return status;
  }
  return absl::OkStatus();
}

template <typename Kind>
void PutKeyValues(Kind kind, const KeyValues& key_values, ByteWriter* out) {
  for (const auto& [key, value] : key_values) {
    PutKind(kind, out);
    out->String(key);
    out->String(value);
  }
}

absl::Status PutOptionalMetadata(const EventMetadata& metadata, ByteWriter* out) {
  SizePrefix size(out);  // written even if no optional metadata follow: TraceEvent needs it
  if (metadata.opcode) {
    PutKind(MetadataKind::kOpcode, out);
    out->Fixed(*metadata.opcode);
  }
  if (metadata.keywords) {
    PutKind(MetadataKind::kKeyword, out);
    out->Fixed(*metadata.keywords);
  }
  if (metadata.message_template) {
    PutKind(MetadataKind::kMessageTemplate, out);
    out->String(*metadata.message_template);
  }
  if (metadata.description) {
    PutKind(MetadataKind::kDescription, out);
    out->String(*metadata.description);
  }
  PutKeyValues(MetadataKind::kKeyValue, metadata.key_values, out);
  if (metadata.provider_guid) {
    PutKind(MetadataKind::kProviderGuid, out);
    out->Bytes(*metadata.provider_guid);
  }
  if (metadata.level) {
    PutKind(MetadataKind::kLevel, out);
    out->Fixed(*metadata.level);
  }
  if (metadata.version) {
    PutKind(MetadataKind::kVersion, out);
    out->Fixed(*metadata.version);
  }
  return size.Close("optional metadata");
}

}  // namespace

absl::Status PutStreamStart(const TraceInfo& info, ByteWriter* out) {
  if (info.pointer_size != 4 && info.pointer_size != 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("pointer_size: ", info.pointer_size, " is neither 4 nor 8"));
  }
  if (info.ticks_per_second <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ticks_per_second: ", info.ticks_per_second, " is not greater than 0"));
  }
  const DateTime sync_time = FromTime(info.sync_time);
  if (!IsValid(sync_time)) {
    return absl::InvalidArgumentError("sync_time: the year must be from 1 to 9999");
  }
  out->Bytes(std::as_bytes(std::span(std::string_view(kMagic))));
  for (const std::uint32_t version_word : {0, 6, 0}) out->Fixed(version_word);

  const std::size_t block = out->Reserve(kBlockHeaderSize);
  for (const std::int16_t part : sync_time) out->Fixed(part);
  out->Fixed(info.sync_ticks);
  out->Fixed(info.ticks_per_second);
  out->Fixed(info.pointer_size);
  out->Fixed(static_cast<std::uint32_t>(info.key_values.size()));
  for (const auto& [key, value] : info.key_values) {
    out->String(key);
    out->String(value);
  }
  const std::size_t size = out->size() - block - kBlockHeaderSize;
  if (size > kMaxBlockSize) {
    return absl::OutOfRangeError(absl::StrCat("key_values: the Trace block would have ", size,
                                              " bytes; the maximum is ", kMaxBlockSize));
  }
  PutBlockHeader(out->mutable_bytes().subspan(block), BlockKind::kTrace);
  return absl::OkStatus();
}

absl::Status PutMetadataRow(MetadataId id, const EventMetadata& metadata, ByteWriter* out) {
  SizePrefix size(out);
  out->VarUInt(ToNumber(id));
  out->String(metadata.provider);
  out->VarUInt(metadata.event_id);
  out->String(metadata.name);
  if (absl::Status status = PutFields(metadata.fields, out); !status.ok()) return status;
  if (absl::Status status = PutOptionalMetadata(metadata, out); !status.ok()) return status;
  return size.Close("a metadata row");
}

absl::Status PutThreadRow(ThreadIndex index, const ThreadInfo& thread, ByteWriter* out) {
  SizePrefix size(out);
  out->VarUInt(ToNumber(index));
  if (thread.name) {
    PutKind(ThreadInfoKind::kName, out);
    out->String(*thread.name);
  }
  if (thread.process_id) {
    PutKind(ThreadInfoKind::kOsProcessId, out);
    out->VarUInt(*thread.process_id);
  }
  if (thread.thread_id) {
    PutKind(ThreadInfoKind::kOsThreadId, out);
    out->VarUInt(*thread.thread_id);
  }
  PutKeyValues(ThreadInfoKind::kKeyValue, thread.key_values, out);
  return size.Close("a thread row");
}

void PutLabelList(const Labels& labels, ByteWriter* out) {
  std::size_t last_kind = 0;
  const auto kind = [&](LabelKind label) {
    last_kind = out->size();
    PutKind(label, out);
  };
  const auto bytes = [&](LabelKind label, const auto& value) {
    if (!value) return;
    kind(label);
    out->Bytes(*value);
  };
  const auto number = [&](LabelKind label, const auto& value) {
    if (!value) return;
    kind(label);
    out->Fixed(*value);
  };
  bytes(LabelKind::kActivityId, labels.activity_id);
  bytes(LabelKind::kRelatedActivityId, labels.related_activity_id);
  bytes(LabelKind::kTraceId, labels.trace_id);
  number(LabelKind::kSpanId, labels.span_id);
  for (const auto& [key, value] : labels.strings) {
    kind(LabelKind::kKeyString);
    out->String(key);
    out->String(value);
  }
  for (const auto& [key, value] : labels.integers) {
    kind(LabelKind::kKeyInteger);
    out->String(key);
    out->VarInt(value);
  }
  number(LabelKind::kOpcode, labels.opcode);
  number(LabelKind::kKeywords, labels.keywords);
  number(LabelKind::kLevel, labels.level);
  number(LabelKind::kVersion, labels.version);

  std::byte& last = out->mutable_bytes()[last_kind];
  last |= std::byte{kLastLabel};
}

}  // namespace nettrace::internal
