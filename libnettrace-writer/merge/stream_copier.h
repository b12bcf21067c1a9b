// Copies the events of one stream to a Writer, with everything that they refer to.
#ifndef LIBNETTRACE_WRITER_MERGE_STREAM_COPIER_H_
#define LIBNETTRACE_WRITER_MERGE_STREAM_COPIER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libnettrace-writer/merge/code_ids.h"
#include "libnettrace-writer/merge/metadata_copies.h"
#include "nettrace/ids.h"
#include "nettrace/reader.h"
#include "nettrace/writer.h"

namespace nettrace::internal {

class StreamCopier {
 public:
  // `trace` is the Trace block of the stream, and `clock` the Trace block of the copy. Timestamps
  // are converted to `clock`; timestamps before `start` become `start`. Thread rows get the keys of
  // `thread_keys` that they do not have. `writer` and `metadata` must outlive this object.
  StreamCopier(const TraceInfo& trace, const TraceInfo& clock, std::uint64_t start,
               KeyValues thread_keys, const CodeIds& code_ids, Writer* writer,
               MetadataCopies* metadata);

  // Converts a timestamp of the stream to the copy's clock. Returns `start` for earlier times.
  std::uint64_t Convert(std::uint64_t ticks) const;

  // Copies an event. An event before `not_before` is written at `not_before`, with its own time as
  // a label. If a V6 stream cannot represent the event, counts it in not_kept() and returns OK.
  // Returns other errors of the writer, such as those of the sink.
  absl::Status CopyEvent(const Event& event, std::uint64_t not_before);
  // Writes an event whose metadata row in the copy is `metadata_id`. The event gets the time,
  // thread and capture thread of `event`, which must have been copied with the same `not_before`.
  absl::Status AddAfter(const Event& event, std::uint64_t not_before, MetadataId metadata_id,
                        std::span<const std::byte> payload);
  // Copies only the number of events that were lost before this event, not the event.
  absl::Status SkipEvent(const Event& event);
  absl::Status CopyRemovedThread(const RemovedThread& removed);
  // Copies the losses of the sequence point, and applies its flushes of threads and metadata. Does
  // not write a sequence point.
  absl::Status CopySequencePoint(const SequencePoint& point);

  // Returns the number of events that were written at `not_before` because their time, converted to
  // the clock of the output, is earlier.
  std::uint64_t moved() const { return moved_; }
  // Returns the number of events that were not copied because a V6 stream cannot represent them.
  // The copy counts them as lost.
  std::uint64_t not_kept() const { return not_kept_; }
  // Returns why the first event that not_kept() counts was not copied.
  const std::string& why_not_kept() const { return why_not_kept_; }

 private:
  struct ThreadCopy {
    ThreadIndex index = kNoThread;
    std::uint64_t last_timestamp = 0;  // time of its last event as a capture thread
  };
  absl::StatusOr<MetadataId> MetadataOf(const Event& event);
  absl::StatusOr<ThreadCopy*> ThreadOf(const ThreadInfo* thread);
  absl::StatusOr<ThreadIndex> AddThread(const ThreadInfo& thread);
  absl::StatusOr<ThreadCopy*> CaptureThreadOf(const ThreadInfo* thread, std::uint64_t timestamp);
  absl::StatusOr<LabelListId> LabelsOf(const Event& event, std::uint64_t timestamp);
  absl::StatusOr<StackId> StackOf(std::span<const std::byte> stack);
  absl::Status WriteCopy(const Event& event, std::uint64_t not_before);
  absl::Status EndThread(const ThreadInfo* thread);
  absl::Status AddLost(const ThreadInfo* thread, std::uint64_t count);

  const TraceInfo trace_;
  const TraceInfo clock_;
  const std::uint64_t start_;
  const KeyValues thread_keys_;
  CodeIds code_ids_;
  Writer* writer_;
  MetadataCopies* metadata_;
  std::unordered_map<MetadataId, absl::StatusOr<MetadataId>> metadata_ids_;
  // Copies of the stream's threads. The keys are rows, not indices, because several threads may
  // have the same index one after the other.
  std::unordered_map<const ThreadInfo*, ThreadCopy> threads_;
  std::vector<std::uint64_t> frames_;
  std::uint64_t moved_ = 0;
  std::uint64_t not_kept_ = 0;
  std::string why_not_kept_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_STREAM_COPIER_H_
