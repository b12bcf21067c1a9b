// Reads any bytes as a program. Its catalogue must be an error, or valid event sets and events.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "eventheader/decoder.h"
#include "eventheader/tracepoint_name.h"
#include "tests/support/eventheader/memory_file.h"
#include "tools/eventheader/elf_catalog.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tests::MemoryFile file(std::as_bytes(std::span(data, size)));
  const absl::StatusOr<tools::Catalog> catalog = tools::ReadCatalog(file.path());
  if (!catalog.ok()) return 0;
  for (const std::string& tracepoint : catalog->tracepoints) {
    if (!eh::ParseTracepointName(tracepoint)) std::abort();
  }
  for (const tools::CatalogEvent& event : catalog->events) {
    eh::EventView view;
    if (eh::ParseEvent(event.head, &view) != eh::ParseError::kNone) std::abort();
    eh::MetadataReader metadata(view.metadata, view.little_endian);
    if (metadata.event_name() != event.name) std::abort();
  }
  return 0;
}
