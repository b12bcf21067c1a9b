#include "libnettrace-writer/read/traceevent_refusal.h"

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/traceevent.h"

namespace nettrace::internal {

void TraceEventRefusal::SeeRow(const EventMetadata& row) {
  if (!why_.empty()) return;
  if (traceevent::IsRefused(row.fields)) {
    why_ = absl::StrCat("a field of ", row.provider, "/", row.name,
                        " is a RelLoc or DataLoc of values of variable size, or a fixed-length "
                        "array of more than ",
                        traceevent::kMaxFixedArrayBytes, " bytes");
    return;
  }
  if (row.provider != traceevent::kUniversalEvents || universal_rows_ == kMaxUniversalEvents) {
    return;
  }
  ++universal_rows_;
  if (universal_events_.Find(row) == EventIdTable::Clash::kName) {
    why_ = absl::StrCat("two EventIds of ", row.provider, " have the name ", row.name);
  }
  universal_events_.Add(row);
}

void TraceEventRefusal::SeeEmptyEventBlock(std::uint64_t offset) {
  if (why_.empty()) why_ = absl::StrCat("the event block at offset ", offset, " has no events");
}

}  // namespace nettrace::internal
