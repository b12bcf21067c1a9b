#include "tools/collector/convert/dotnet_schemas.h"

#include <utility>

#include "libnettrace-writer/core/byte_writer.h"
#include "libnettrace-writer/write/put_rows.h"
#include "tools/base/byte_text.h"
#include "tools/collector/identity/proc_files.h"

namespace collector {
namespace {

constexpr char kUndescribed[] =
    "the event that describes this kind of event is not in the recording";
constexpr char kBadDescription[] = "the metadata is malformed";
constexpr char kTooManyKinds[] = "its process creates new kinds of events too fast";
// Approximate memory that tables and lists need for an entry, in bytes.
constexpr std::size_t kEntryBytes = 400;

}  // namespace

DotnetSchemas::DotnetSchemas(SlotAllocator* forms, const SchemaShares::Limits& limits)
    : forms_(forms),
      shares_(
          limits,
          [this](SchemaShares::Entry* entry) {
            Remove(known_.find(static_cast<Known*>(entry)->key));
          },
          ReadProcUser) {}

DotnetSchemas::~DotnetSchemas() {
  while (!tracepoints_.empty()) RemoveTracepoint(tracepoints_.begin()->first);
}

void DotnetSchemas::AddTracepoint(int id, std::string_view name) {
  tracepoints_.emplace(id, shares_.AddProvider(name));
}

void DotnetSchemas::RemoveTracepoint(int id) {
  const auto tracepoint = tracepoints_.find(id);
  if (tracepoint == tracepoints_.end()) return;
  for (auto known = known_.lower_bound({id, 0, 0, 0});
       known != known_.end() && known->first.tracepoint == id;) {
    known = Remove(known);
  }
  shares_.RemoveProvider(tracepoint->second);
  tracepoints_.erase(tracepoint);
}

DotnetSchemas::KnownRows::iterator DotnetSchemas::Remove(KnownRows::iterator known) {
  shares_.Remove(known->second.get());
  if (Row* const row = known->second->row; --row->uses == 0) {
    forms_->Release(&row->form);
    rows_.erase(known->second->metadata);
  }
  return known_.erase(known);
}

const DotnetSchemas::Row* DotnetSchemas::Find(int tracepoint, std::uint32_t pid,
                                              const DotnetEvent& event, std::uint64_t now,
                                              std::string_view* reason) {
  const Key key = {tracepoint, 0, pid, event.id};
  const auto found = known_.find(key);
  const std::string_view metadata = base::AsText(event.metadata);
  if (!metadata.empty() && (found == known_.end() || found->second->metadata != metadata)) {
    // Replaces the description of another process that had the pid before.
    if (found != known_.end()) Remove(found);
    return Learn(
        key, std::string(metadata),
        [&event] { return ParseDotnetMetadata(event.metadata, event.id); }, now, reason);
  }
  if (found == known_.end()) {
    *reason = kUndescribed;
    return nullptr;
  }
  return Use(found->second.get());
}

const DotnetSchemas::Row* DotnetSchemas::FindOfStream(int tracepoint, std::uint32_t pid,
                                                      const DotnetStreamEvent& event,
                                                      std::uint64_t now, std::string_view* reason) {
  const Key key = {tracepoint, event.stream, pid, event.kind};
  if (const auto found = known_.find(key); found != known_.end()) return Use(found->second.get());
  absl::StatusOr<nettrace::EventMetadata> row = ConvertDotnetMetadata(*event.metadata);
  nettrace::internal::ByteWriter description;
  if (!row.ok() ||
      !nettrace::internal::PutMetadataRow(nettrace::MetadataId{0}, *row, &description).ok()) {
    *reason = kBadDescription;
    return nullptr;
  }
  // The description is the key of the row in rows_. The NUL at its start keeps it different from
  // the descriptions in events of tracepoints, which have another form.
  std::string text(1, '\0');
  text += base::AsText(description.bytes());
  return Learn(
      key, std::move(text), [&row] { return std::move(row); }, now, reason);
}

const DotnetSchemas::Row* DotnetSchemas::Use(Known* known) {
  if (known->age != shares_.age()) {
    shares_.Use(known);
    known->age = shares_.age();
  }
  return known->row;
}

const DotnetSchemas::Row* DotnetSchemas::Learn(
    const Key& key, std::string metadata,
    absl::FunctionRef<absl::StatusOr<nettrace::EventMetadata>()> make, std::uint64_t now,
    std::string_view* reason) {
  if (!shares_.MayAdd(key.pid, metadata.size(), now)) {
    *reason = kTooManyKinds;
    return nullptr;
  }
  auto known = std::make_unique<Known>();
  known->key = key;
  known->metadata = std::move(metadata);
  if (const auto row = rows_.find(known->metadata); row != rows_.end()) {
    known->row = row->second.get();
  } else {
    absl::StatusOr<nettrace::EventMetadata> parsed = make();
    if (!parsed.ok()) {
      *reason = kBadDescription;
      return nullptr;
    }
    auto made = std::make_unique<Row>();
    made->metadata = *std::move(parsed);
    made->form = forms_->Take();
    known->row = made.get();
    rows_.emplace(known->metadata, std::move(made));
  }
  ++known->row->uses;
  // Memory of a parsed row, as a multiple of the size of its description.
  constexpr std::size_t kPartsOfRow = 8;
  Known* const entry = known.get();
  known_.emplace(key, std::move(known));
  shares_.Add(entry, tracepoints_.at(key.tracepoint),
              kPartsOfRow * entry->metadata.size() + kEntryBytes);
  entry->age = shares_.age();
  return entry->row;
}

}  // namespace collector
