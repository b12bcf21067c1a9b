// The event sets and kinds of events that a program or shared object may write, as the ELF notes in
// it say (eventheader/internal/catalog_note.h). Nothing of the file is run or loaded. It is
// hostile: what is read is bounds-checked, and the cost is bounded by the file's size and
// kMaxCatalogEvents.
#ifndef TOOLS_EVENTHEADER_ELF_CATALOG_H_
#define TOOLS_EVENTHEADER_ELF_CATALOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"

namespace tools {

// More event sets, or events, than a provider and its tracepoints can have.
inline constexpr std::size_t kMaxCatalogEvents = 16384;

struct CatalogEvent {
  std::string tracepoint;
  std::string name;  // without attributes
  // The event as it is written, without its payload: eh::ParseEvent reads it, and
  // eh::MetadataReader its fields.
  std::vector<std::byte> head;

  friend bool operator<(const CatalogEvent& a, const CatalogEvent& b) {
    return std::tie(a.tracepoint, a.name, a.head) < std::tie(b.tracepoint, b.name, b.head);
  }
};

struct Catalog {
  std::vector<std::string> tracepoints;  // of the event sets: sorted, each once
  std::vector<CatalogEvent> events;      // sorted by tracepoint and name, each once
  // Why some notes cannot be followed.
  std::vector<std::string> unclear;

  bool empty() const { return tracepoints.empty() && unclear.empty(); }
};

// Reads the catalogue of the ELF file `path`; empty if it has none. NotFound, PermissionDenied: it
// cannot be opened. InvalidArgument: no program or shared object. Unimplemented: one of a machine
// for which there are no notes. ResourceExhausted: over kMaxCatalogEvents. Thread-safe.
absl::StatusOr<Catalog> ReadCatalog(const std::string& path);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_ELF_CATALOG_H_
