// Remembers how the events of .NET processes are described.
//
// Input: events of tracepoints for .NET (dotnet_event.h), and of streams (EventPipe). In a
// tracepoint, only the first event of a kind from a process contains the description of the kind. A
// stream provides the description with each event. Output: the metadata row of each event.
// Processes with the same description share a row. Memory and the rate of new descriptions are
// limited in the same way as for EventHeader events (schema_shares.h). An event whose description
// is unknown, for example because the event that contained it was lost, has no row.
#ifndef TOOLS_COLLECTOR_CONVERT_DOTNET_SCHEMAS_H_
#define TOOLS_COLLECTOR_CONVERT_DOTNET_SCHEMAS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "nettrace/schema.h"
#include "tools/collector/convert/dotnet_event.h"
#include "tools/collector/convert/schema_shares.h"
#include "tools/collector/system/slots.h"

namespace collector {

// An event of an EventPipe stream, without its payload.
struct DotnetStreamEvent {
  std::uint32_t stream = 0;  // number of the stream, at least 1, unique in the session
  std::uint32_t kind = 0;    // id of `metadata` in the stream
  const nettrace::EventMetadata* metadata = nullptr;
  const nettrace::Labels* labels = nullptr;
};

// Holds the descriptions of all tracepoints for .NET. Not thread-safe.
class DotnetSchemas {
 public:
  struct Row {
    nettrace::EventMetadata metadata;
    Slot form;             // identifies the row for the writer of the file
    std::size_t uses = 0;  // number of entries of known_ with this row
  };

  // Takes the slots of rows (Row::form) from `forms`, which must outlive this object.
  DotnetSchemas(SlotAllocator* forms, const SchemaShares::Limits& limits);
  ~DotnetSchemas();
  DotnetSchemas(const DotnetSchemas&) = delete;
  DotnetSchemas& operator=(const DotnetSchemas&) = delete;

  // Adds a tracepoint, or an id that stands for all streams of a session.
  void AddTracepoint(int id, std::string_view name);
  // Removes a tracepoint and the descriptions of its events. Does nothing if it was not added.
  void RemoveTracepoint(int id);

  // Returns the row of an event of the process `pid`. If the event contains a description, Find()
  // stores the row that it describes. Returns null, and the reason in `*reason`, if there is no
  // row. `now` is in ns. The row is valid until the next call of Find(), FindOfStream() or
  // RemoveTracepoint().
  const Row* Find(int tracepoint, std::uint32_t pid, const DotnetEvent& event, std::uint64_t now,
                  std::string_view* reason);
  // Does the work of Find for an event of a stream.
  const Row* FindOfStream(int tracepoint, std::uint32_t pid, const DotnetStreamEvent& event,
                          std::uint64_t now, std::string_view* reason);

 private:
  using Rows = absl::flat_hash_map<std::string, std::unique_ptr<Row>>;  // by description
  struct Key {
    int tracepoint = 0;
    std::uint32_t stream = 0;  // 0: none
    std::uint32_t pid = 0;
    std::uint32_t id = 0;  // id of the event, or its kind in the stream
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.tracepoint, a.stream, a.pid, a.id) <
             std::tie(b.tracepoint, b.stream, b.pid, b.id);
    }
  };
  struct Known : SchemaShares::Entry {
    Key key;
    std::string metadata;  // the description, a key of rows_
    Row* row = nullptr;
    std::uint64_t age = 0;  // SchemaShares::age() when the entry was last marked as used
  };
  using KnownRows = std::map<Key, std::unique_ptr<Known>>;

  const Row* Use(Known* known);
  // Adds an entry with the description `metadata`. `make` makes the row if the description is new.
  const Row* Learn(const Key& key, std::string metadata,
                   absl::FunctionRef<absl::StatusOr<nettrace::EventMetadata>()> make,
                   std::uint64_t now, std::string_view* reason);
  // Removes an entry of known_, and its row if no other entry has the row. Returns the next entry.
  KnownRows::iterator Remove(KnownRows::iterator known);

  SlotAllocator* forms_;
  SchemaShares shares_;
  std::map<int, SchemaShares::Provider*> tracepoints_;
  Rows rows_;
  KnownRows known_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_DOTNET_SCHEMAS_H_
