#include "tools/collector/convert/code_writer.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/format.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

// The mapping that stands for the kernel and its modules. For TraceEvent, its size must be less
// than 2^63. 32-bit kernels, and kernels in a separate address space (s390x), have lower addresses,
// so their functions are not named.
constexpr std::uint64_t kKernelFirst = 0xffff800000000000;
constexpr std::uint64_t kKernelLast = ~std::uint64_t{0};
constexpr char kKernelName[] = "vmlinux";

nettrace::Field Number(const char* name) {
  return {name, nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)};
}
nettrace::Field Text(const char* name) { return nettrace::MakeField<std::string_view>(name); }

// Returns `text` with U+FFFD in place of bytes that are not UTF-8, because a path may contain any
// bytes.
std::string Utf8(std::string_view text) {
  std::string valid;
  nettrace::internal::AppendUtf8AsValid(std::as_bytes(std::span(text)), &valid);
  return valid;
}

}  // namespace

CodeWriter::CodeWriter(nettrace::Writer* writer, CodeTracker* code, std::uint64_t start)
    : writer_(writer), code_(code), interval_start_(start) {
  rows_.reserve(3);  // the rows must not move, because their encoders refer to their fields
  rows_.emplace_back(
      3, "ProcessMapping",
      std::vector<nettrace::Field>{Number("Id"), Number("StartAddress"), Number("EndAddress"),
                                   Number("FileOffset"), Text("FileName"), Number("MetadataId")});
  rows_.emplace_back(
      4, "ProcessSymbol",
      std::vector<nettrace::Field>{Number("Id"), Number("MappingId"), Number("StartAddress"),
                                   Number("EndAddress"), Text("Name")});
  rows_.emplace_back(
      5, "ProcessMappingMetadata",
      std::vector<nettrace::Field>{Number("Id"), Text("SymbolMetadata"), Text("VersionMetadata")});
}

void CodeWriter::Use(const EventStack& stack, nettrace::StackId id, std::uint64_t timestamp,
                     nettrace::ThreadIndex thread) {
  const std::uint64_t changes = code_->CountChanges(stack.pid);
  Noted& noted = noted_[{stack.pid, id}];
  // Does nothing for a stack that was noted in this interval, unless the code at its addresses has
  // changed since then, or may have been different at `timestamp`.
  if (noted.until != 0 && noted.changes == changes && noted.from <= timestamp &&
      timestamp < noted.until) {
    return;
  }
  noted = {changes, 0, CodeTracker::kNever};
  for (const std::uint64_t address : stack.frames) {
    const CodeTracker::Found found = code_->Find(stack.pid, address, timestamp);
    noted.from = std::max(noted.from, found.from);
    noted.until = std::min(noted.until, found.until);
    if (address >= kKernelFirst) {
      UseKernel(address, found.program_from, stack.pid, thread);
    } else if (found.mapping != nullptr) {
      UseMapping(*found.mapping, found.program_from, stack.pid, thread);
    }
  }
}

void CodeWriter::UseMapping(const CodeMapping& mapping, std::uint64_t program_from,
                            std::uint32_t pid, nettrace::ThreadIndex thread) {
  if (!mappings_.emplace(pid, program_from, mapping.id).second) return;
  // A forked process has its parent's mappings from its start on. At the event of the start,
  // readers drop all mappings that they know for the pid, because they may be of an earlier
  // process. The mappings of this process therefore get a time after that event.
  const std::uint64_t from = std::max(mapping.from, program_from + 1);
  waiting_.push_back({std::max(from, interval_start_), thread, mapping, {}});
}

// Describes the kernel separately for each process. If a kernel function was described only for
// another process, and before this process began, TraceEvent 4.0.0 finds no module for the function
// in stacks of this process.
void CodeWriter::UseKernel(std::uint64_t address, std::uint64_t program_from, std::uint32_t pid,
                           nettrace::ThreadIndex thread) {
  if (code_->kernel_symbols().empty()) return;
  const auto [known, is_new] = kernels_.try_emplace({pid, program_from}, 0);
  if (is_new) {
    static const auto kFile = std::make_shared<const CodeFile>(CodeFile{kKernelName, ""});
    known->second = code_->MakeId();
    UseMapping({kKernelFirst, kKernelLast, 0, 0, known->second, kFile}, program_from, pid, thread);
  }
  const auto symbol = code_->kernel_symbols().FindRange(address);
  if (!symbol || !functions_.emplace(known->second, symbol->first).second) return;
  const std::uint64_t timestamp = std::max(program_from + 1, interval_start_);
  waiting_.push_back({timestamp, thread,
                      CodeMapping{symbol->first, symbol->last, 0, 0, known->second, nullptr},
                      symbol->name});
}

absl::Status CodeWriter::EndInterval(std::uint64_t timestamp) {
  // At equal times, mappings come before functions, because a function refers to its mapping.
  std::stable_sort(waiting_.begin(), waiting_.end(), [](const Waiting& a, const Waiting& b) {
    return a.timestamp != b.timestamp ? a.timestamp < b.timestamp
                                      : a.function.empty() && !b.function.empty();
  });
  for (const Waiting& each : std::exchange(waiting_, {})) {
    RETURN_IF_ERROR(each.function.empty() ? WriteMapping(each) : WriteFunction(each));
  }
  noted_.clear();
  if (mappings_.size() > kMaxRemembered || functions_.size() > kMaxRemembered ||
      metadata_.size() > kMaxRemembered) {
    ForgetCode();
  }
  interval_start_ = timestamp;
  return absl::OkStatus();
}

void CodeWriter::ForgetCode() {
  mappings_.clear();
  kernels_.clear();
  functions_.clear();
  metadata_.clear();
}

absl::Status CodeWriter::WriteMapping(const Waiting& waiting) {
  ASSIGN_OR_RETURN(const std::uint64_t metadata, WriteMetadata(waiting));
  const CodeMapping& mapping = waiting.mapping;
  ASSIGN_OR_RETURN(const std::span<const std::byte> payload, rows_[kMapping]
                                                                 .payload.UInt(mapping.id)
                                                                 .UInt(mapping.first)
                                                                 .UInt(mapping.last)
                                                                 .UInt(mapping.offset)
                                                                 .Utf8(Utf8(mapping.file->path))
                                                                 .UInt(metadata)
                                                                 .Finish());
  return Write(kMapping, waiting.timestamp, waiting.thread, payload);
}

absl::Status CodeWriter::WriteFunction(const Waiting& waiting) {
  ASSIGN_OR_RETURN(const std::span<const std::byte> payload, rows_[kSymbol]
                                                                 .payload.UInt(code_->MakeId())
                                                                 .UInt(waiting.mapping.id)
                                                                 .UInt(waiting.mapping.first)
                                                                 .UInt(waiting.mapping.last)
                                                                 .Utf8(Utf8(waiting.function))
                                                                 .Finish());
  return Write(kSymbol, waiting.timestamp, waiting.thread, payload);
}

// Writes the build id with a type of metadata that TraceEvent does not know and therefore ignores.
// For a known type, TraceEvent would compute wrong addresses, because the collector does not read
// the addresses of the file's segments. `nettrace symbolize` adds these addresses, and build ids
// that are not known here.
absl::StatusOr<std::uint64_t> CodeWriter::WriteMetadata(const Waiting& waiting) {
  const CodeFile& file = *waiting.mapping.file;
  const bool is_known = !file.build_id.empty();
  // Memory without a file has names like "//anon" and "[heap]".
  if (!is_known && (!file.path.starts_with('/') || file.path.starts_with("//"))) return 0;
  // If the build id is not known, each mapping gets its own event, because several mappings of a
  // path may be of different files.
  const auto [known, is_new] =
      metadata_.try_emplace(is_known ? std::pair(file.path, file.build_id)
                                     : std::pair(absl::StrCat(waiting.mapping.id), std::string()),
                            0);
  if (!is_new) return known->second;
  known->second = code_->MakeId();
  const std::string json = is_known ? absl::StrCat(R"({"type":"build-id","build_id":")",
                                                   absl::BytesToHexString(file.build_id), R"("})")
                                    : R"({"type":"build-id"})";
  ASSIGN_OR_RETURN(const std::span<const std::byte> payload,
                   rows_[kMetadata].payload.UInt(known->second).Utf8(json).Utf8("{}").Finish());
  RETURN_IF_ERROR(Write(kMetadata, waiting.timestamp, waiting.thread, payload));
  return known->second;
}

absl::Status CodeWriter::Write(RowKind kind, std::uint64_t timestamp, nettrace::ThreadIndex thread,
                               std::span<const std::byte> payload) {
  Row& row = rows_[kind];
  if (row.id == nettrace::kNoMetadata) {
    nettrace::EventMetadata metadata;
    metadata.provider = std::string(nettrace::internal::traceevent::kUniversalSystem);
    metadata.name = row.name;
    metadata.event_id = row.event_id;
    metadata.opcode = 0;
    metadata.fields = row.fields;
    ASSIGN_OR_RETURN(row.id, writer_->AddMetadata(metadata));
  }
  if (capture_thread_ == nettrace::kNoThread) {
    nettrace::ThreadInfo info;
    info.name = "code";
    ASSIGN_OR_RETURN(capture_thread_, writer_->AddThread(info));
    writer_->CountApart(capture_thread_);
  }
  nettrace::EventRow event;
  event.metadata_id = row.id;
  event.capture_thread = capture_thread_;
  event.processor = nettrace::kNoProcessor;
  event.timestamp = timestamp;
  event.thread = thread;
  RETURN_IF_ERROR(writer_->WriteEvent(event, payload));
  ++written_;
  return absl::OkStatus();
}

}  // namespace collector
