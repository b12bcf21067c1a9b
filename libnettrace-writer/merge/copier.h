// Copies what is read from one or more streams into a Writer: the ground of repair, cut and merge.
#ifndef LIBNETTRACE_WRITER_MERGE_COPIER_H_
#define LIBNETTRACE_WRITER_MERGE_COPIER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/reader.h"
#include "nettrace/writer.h"

namespace nettrace::internal {

// Options for a Writer that takes all a Reader can deliver: what bounds the memory is the reader.
WriterOptions CopyWriterOptions();

// The clock for a copy of several streams, which are not none: the first one's, but that it counts
// from when the clock that began first did, if that was a second or more before.
TraceInfo CommonClock(std::span<const TraceInfo> traces);

// The kinds of events that a copy has. Each gets a row of its own, and an EventId of its own within
// its provider, as the reference reader needs: its own one, or, where that is taken or no good, a
// free one, the own one being kept as key/value "EventHeader.Id".
class MetadataCopies {
 public:
  explicit MetadataCopies(Writer* writer) : writer_(writer) {}
  absl::StatusOr<MetadataId> IdOf(const EventMetadata& metadata, PayloadEncoding encoding);

 private:
  struct Copy {
    EventMetadata original;
    MetadataId id;
  };
  struct Provider {
    std::map<std::uint32_t, bool> taken;        // EventIds
    std::multimap<std::uint32_t, Copy> copies;  // by the original's EventId
    std::uint32_t next_free = traceevent::kMaxEventId;
  };
  Writer* writer_;
  std::map<std::string, Provider> providers_;
};

struct CopyStats {
  std::uint64_t events = 0;
  // Not copied, for they are out of the order of time; they are lost events in the copy.
  std::uint64_t refused = 0;
};

// Copies one stream. `reader`, `writer` and `metadata` must outlive it.
class Copier {
 public:
  // `clock` is the copy's; the reader's timestamps are converted to it by both sync times.
  Copier(const Reader* reader, const TraceInfo& clock, Writer* writer, MetadataCopies* metadata);

  // A timestamp of the reader's in the copy's clock; 0 for what is before that one's beginning.
  std::uint64_t Convert(std::uint64_t ticks) const;

  absl::Status CopyEvent(const Event& event);
  // What an event tells beside itself: those lost before it. For events that are left out.
  absl::Status SkipEvent(const Event& event);
  absl::Status CopyRemovedThread(const RemovedThread& removed);
  // Its losses and flushes, not the point itself.
  absl::Status CopySequencePoint(const SequencePoint& point);

  const CopyStats& stats() const { return stats_; }

 private:
  absl::StatusOr<ThreadIndex> ThreadOf(const ThreadInfo* thread);
  absl::StatusOr<StackId> StackOf(std::span<const std::byte> stack);
  absl::Status AddLost(const ThreadInfo* thread, std::uint64_t count);

  const Reader* reader_;
  const TraceInfo clock_;
  Writer* writer_;
  MetadataCopies* metadata_;
  std::unordered_map<MetadataId, MetadataId> metadata_ids_;
  // By their rows: an index may stand for several threads, one after the other.
  std::unordered_map<const ThreadInfo*, ThreadIndex> threads_;
  std::vector<std::uint64_t> frames_;
  CopyStats stats_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_COPIER_H_
