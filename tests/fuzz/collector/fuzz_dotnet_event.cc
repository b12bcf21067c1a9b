// Parses any bytes as an event of a tracepoint for .NET, and compiles the event's description of
// its fields to a metadata row. A second event without a description must get the same row if it
// comes from the same process, and no row if it comes from another one. A writer must accept the
// row.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "nettrace/writer.h"
#include "tools/collector/convert/dotnet_schemas.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

// Takes all bytes.
struct NoSink : nettrace::Sink {
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = bytes.size();
    return absl::OkStatus();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  collector::DotnetEvent event;
  if (collector::ParseDotnetEvent(std::as_bytes(std::span(data, size)), &event) != nullptr) {
    return 0;
  }
  constexpr int kTracepoint = 7;
  constexpr std::uint32_t kPid = 100;
  collector::SlotAllocator forms;
  collector::DotnetSchemas schemas(&forms, {});
  schemas.AddTracepoint(kTracepoint, "tracepoint");
  std::string_view reason;
  const auto* row = schemas.Find(kTracepoint, kPid, event, 1, &reason);
  if (row == nullptr) {
    Require(!reason.empty());
    return 0;
  }
  const collector::Slot form = row->form;
  collector::IsDotnetPayload(row->metadata.fields, event.payload);
  // The row may be too long for a file, but it must have no other fault.
  auto writer = nettrace::Writer::Create(std::make_unique<NoSink>(), {});
  Require(writer.ok());
  const auto added = (*writer)->AddMetadata(row->metadata);
  Require(added.ok() || !absl::IsInternal(added.status()));
  event.metadata = {};
  row = schemas.Find(kTracepoint, kPid, event, 2, &reason);
  Require(row != nullptr && row->form == form);
  Require(schemas.Find(kTracepoint, kPid + 1, event, 3, &reason) == nullptr);
  schemas.RemoveTracepoint(kTracepoint);
  return 0;
}
