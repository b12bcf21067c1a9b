#include "tools/collector/convert/process_writer.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/format.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

constexpr const char* kNames[] = {"ExistingProcess", "ProcessCreate", "ProcessExit"};
static_assert(static_cast<int>(ProcessEvent::Kind::kExists) == 0);
static_assert(static_cast<int>(ProcessEvent::Kind::kCreated) == 1);
static_assert(static_cast<int>(ProcessEvent::Kind::kExited) == 2);

// Returns the name as UTF-8. TraceEvent shows the part of a name after its last slash or backslash,
// which is correct for paths. In other names, such as kworker/0:1 of a kernel thread, dashes
// replace slashes and backslashes.
std::string ShownName(std::string_view name) {
  std::string shown;  // a path may contain bytes that are not valid UTF-8
  nettrace::internal::AppendUtf8AsValid(std::as_bytes(std::span(name)), &shown);
  if (name.substr(0, 1) == "/") return shown;
  for (char& c : shown) {
    if (c == '/' || c == '\\') c = '-';
  }
  return shown;
}

}  // namespace

ProcessWriter::ProcessWriter(nettrace::Writer* writer, std::uint64_t start)
    : writer_(writer),
      fields_{{"NamespaceId", nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)},
              nettrace::MakeField<std::string_view>("Name"),
              nettrace::MakeField<std::string_view>("NamespaceName")},
      payload_(&fields_),
      start_(start),
      earliest_(start) {}

absl::StatusOr<nettrace::MetadataId> ProcessWriter::MetadataRow(ProcessEvent::Kind kind) {
  const auto id = static_cast<std::size_t>(kind);
  if (rows_[id] == nettrace::kNoMetadata) {
    nettrace::EventMetadata metadata;
    metadata.provider = std::string(nettrace::internal::traceevent::kUniversalSystem);
    metadata.name = kNames[id];
    metadata.event_id = static_cast<std::uint32_t>(id);
    metadata.opcode = 0;
    if (kind != ProcessEvent::Kind::kExited) metadata.fields = fields_;
    ASSIGN_OR_RETURN(rows_[id], writer_->AddMetadata(metadata));
  }
  return rows_[id];
}

absl::Status ProcessWriter::Write(const ProcessEvent& event, nettrace::ThreadIndex thread) {
  // If a process was created before the trace begins, the event is written as ExistingProcess.
  const bool existed = event.kind == ProcessEvent::Kind::kCreated && event.timestamp < start_;
  ASSIGN_OR_RETURN(const nettrace::MetadataId metadata_id,
                   MetadataRow(existed ? ProcessEvent::Kind::kExists : event.kind));
  if (capture_thread_ == nettrace::kNoThread) {
    nettrace::ThreadInfo info;
    info.name = "processes";
    ASSIGN_OR_RETURN(capture_thread_, writer_->AddThread(info));
    writer_->CountApart(capture_thread_);
  }
  nettrace::EventRow row;
  row.metadata_id = metadata_id;
  row.capture_thread = capture_thread_;
  row.processor = nettrace::kNoProcessor;
  row.timestamp = std::max(event.timestamp, earliest_);
  earliest_ = row.timestamp;
  row.thread = thread;
  std::span<const std::byte> bytes;
  if (event.kind != ProcessEvent::Kind::kExited) {
    ASSIGN_OR_RETURN(
        bytes, payload_.UInt(event.namespace_pid).Utf8(ShownName(event.name)).Utf8("").Finish());
  }
  RETURN_IF_ERROR(writer_->WriteEvent(row, bytes));
  ++written_;
  return absl::OkStatus();
}

}  // namespace collector
