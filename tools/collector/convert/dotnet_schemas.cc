#include "tools/collector/convert/dotnet_schemas.h"

#include <utility>

#include "absl/status/statusor.h"
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
  for (auto known = known_.lower_bound({id, 0, 0});
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
  const Key key = {tracepoint, pid, event.id};
  const auto found = known_.find(key);
  const std::string_view metadata(reinterpret_cast<const char*>(event.metadata.data()),
                                  event.metadata.size());
  if (!metadata.empty() && (found == known_.end() || found->second->metadata != metadata)) {
    // Replaces the description of another process that had the pid before.
    if (found != known_.end()) Remove(found);
    return Learn(key, event, now, reason);
  }
  if (found == known_.end()) {
    *reason = kUndescribed;
    return nullptr;
  }
  Known& known = *found->second;
  if (known.age != shares_.age()) {
    shares_.Use(&known);
    known.age = shares_.age();
  }
  return known.row;
}

const DotnetSchemas::Row* DotnetSchemas::Learn(const Key& key, const DotnetEvent& event,
                                               std::uint64_t now, std::string_view* reason) {
  if (!shares_.MayAdd(key.pid, event.metadata.size(), now)) {
    *reason = kTooManyKinds;
    return nullptr;
  }
  auto known = std::make_unique<Known>();
  known->key = key;
  known->metadata.assign(reinterpret_cast<const char*>(event.metadata.data()),
                         event.metadata.size());
  if (const auto row = rows_.find(known->metadata); row != rows_.end()) {
    known->row = row->second.get();
  } else {
    absl::StatusOr<nettrace::EventMetadata> parsed = ParseDotnetMetadata(event.metadata, event.id);
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
              kPartsOfRow * event.metadata.size() + kEntryBytes);
  entry->age = shares_.age();
  return entry->row;
}

}  // namespace collector
