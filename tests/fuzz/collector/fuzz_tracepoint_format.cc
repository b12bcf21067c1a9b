// Parses any bytes as the format of a tracepoint that another process has defined, and the bytes
// after a NUL as a record of it. A format that is parsed must make payloads of bounded size that a
// writer accepts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/tracepoint_schema.h"

// libtraceevent 1.7.1 leaks a token when it rejects a line. AddressSanitizer defines this
// function's name.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() { return "leak:libtraceevent.so"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\0');
  const std::string format(all.substr(0, end));
  const auto record = end == std::string_view::npos
                          ? std::span<const std::byte>()
                          : std::as_bytes(std::span(data, size)).subspan(end + 1);
  const auto schema = collector::ParseTracepointFormat("user_events", "event", 7, format);
  if (!schema.ok()) return 0;
  auto writer = nettrace::Writer::Create(std::make_unique<nettrace::MemorySink>(), {});
  if (!writer.ok()) std::abort();
  std::uint32_t id = 0;
  for (const auto form : {collector::TextForm::kBytes, collector::TextForm::kUtf16}) {
    std::vector<std::byte> out;
    std::span<const std::byte> payload;
    const auto outcome = schema->program.Run(record, form, &out, &payload);
    // The program rejects a payload that is too large for an event only after the field that makes
    // it too large, so `out` may exceed the maximum.
    if (out.size() > 4 * 65536) std::abort();
    if (!outcome.fits) continue;
    nettrace::EventMetadata metadata = schema->MetadataFor(form);
    metadata.event_id = ++id;
    const auto row = (*writer)->AddMetadata(metadata);
    if (!row.ok()) continue;  // A name that is too long, or occurs twice.
    const auto thread = (*writer)->AddThread({});
    nettrace::EventRow event;
    event.metadata_id = *row;
    event.capture_thread = event.thread = *thread;
    if (!(*writer)->WriteEvent(event, payload).ok()) std::abort();
  }
  return 0;
}
