// Copies the events of one stream into a Writer, with all they refer to.
#ifndef LIBNETTRACE_WRITER_MERGE_STREAM_COPIER_H_
#define LIBNETTRACE_WRITER_MERGE_STREAM_COPIER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libnettrace-writer/merge/metadata_copies.h"
#include "nettrace/ids.h"
#include "nettrace/reader.h"
#include "nettrace/writer.h"

namespace nettrace::internal {

class StreamCopier {
 public:
  // `clock` is the copy's; the reader's timestamps are converted to it. `reader`, `writer` and
  // `metadata` outlive this object.
  StreamCopier(const Reader* reader, const TraceInfo& clock, Writer* writer,
               MetadataCopies* metadata);

  // A timestamp of the reader's in the copy's clock.
  std::uint64_t Convert(std::uint64_t ticks) const;

  absl::Status CopyEvent(const Event& event);
  // Leaves the event out, but for the lost events that it tells of.
  absl::Status SkipEvent(const Event& event);
  absl::Status CopyRemovedThread(const RemovedThread& removed);
  // Copies the losses and flushes of the point, not the point itself.
  absl::Status CopySequencePoint(const SequencePoint& point);

  // Events that were not copied, as they are out of the order of time: lost events of the copy.
  std::uint64_t out_of_order() const { return out_of_order_; }

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
  std::uint64_t out_of_order_ = 0;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_MERGE_STREAM_COPIER_H_
