// Reads the event sets and kinds of events that a program or shared object may write, from its ELF
// notes (eventheader/internal/catalog_note.h). The file is not run or loaded, and may be hostile.
// All reads are bounds-checked, and the cost is bounded by the file's size and kMaxCatalogEvents.
#ifndef TOOLS_EVENTHEADER_ELF_CATALOG_H_
#define TOOLS_EVENTHEADER_ELF_CATALOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"

namespace tools {

// Maximum number of kinds of events of a file. Its notes may describe at most twice as many event
// sets and events in total.
inline constexpr std::size_t kMaxCatalogEvents = 16384;

struct CatalogEvent {
  std::string tracepoint;
  std::string name;  // without attributes
  // The event without its payload, in the form in which it is written. eh::ParseEvent reads it, and
  // eh::MetadataReader reads its fields.
  std::vector<std::byte> head;

  friend bool operator<(const CatalogEvent& a, const CatalogEvent& b) {
    return std::tie(a.tracepoint, a.name, a.head) < std::tie(b.tracepoint, b.name, b.head);
  }
};

struct Catalog {
  std::vector<std::string> tracepoints;  // one for each event set; sorted and unique
  std::vector<CatalogEvent> events;      // sorted by tracepoint and name; unique
  // Reasons why some notes, or (from CatalogsOf) the whole file, cannot be read.
  std::vector<std::string> unclear;

  bool empty() const { return tracepoints.empty() && unclear.empty(); }
};

// Reads the catalogue of the ELF file `path`; it is empty if the file has none. Thread-safe.
// Returns the error of open(2), such as NotFound or PermissionDenied, if the file cannot be opened,
// and InvalidArgument if it is not a program or shared object. Returns Unimplemented for machines
// without catalogues, and ResourceExhausted if the limits of kMaxCatalogEvents are exceeded.
absl::StatusOr<Catalog> ReadCatalog(const std::string& path);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_ELF_CATALOG_H_
