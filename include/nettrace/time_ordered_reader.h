// A stream's events in the order of time. They are sorted within each interval between sequence
// points; the format guarantees that this is enough.
//
// Memory: the reader's, and TimeOrderOptions::max_memory, however long an interval is: what does
// not fit is sorted by way of a temporary file.
#ifndef NETTRACE_TIME_ORDERED_READER_H_
#define NETTRACE_TIME_ORDERED_READER_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/reader.h"

namespace nettrace {

namespace internal {
class EventSorter;
}

struct TimeOrderOptions {
  // Bytes of events that are kept in memory; what an interval has beyond them goes to the temporary
  // file. Merging that back takes a quarter more, and at least 16 KiB for each such part.
  std::size_t max_memory = std::size_t{32} << 20;
  // The folder of the temporary file, which has no name in it; empty: $TMPDIR, else /var/tmp.
  std::string temporary_directory = {};
};

// Takes the steps of a Reader in another order: in each interval first the events by time (events
// of one time in file order), then the removed threads, then the sequence point. Not thread-safe.
class TimeOrderedReader {
 public:
  using Step = Reader::Step;

  explicit TimeOrderedReader(std::unique_ptr<Reader> reader, const TimeOrderOptions& options = {});
  TimeOrderedReader(TimeOrderedReader&&) noexcept;
  ~TimeOrderedReader();

  Step Next();
  const Event& event() const { return event_; }
  const RemovedThread& removed_thread() const { return removed_thread_; }
  const SequencePoint& sequence_point() const { return reader_->sequence_point(); }
  // The reader below, for facts about the whole stream. Its statistics are ahead of the events
  // delivered.
  const Reader& reader() const { return *reader_; }
  Reader& reader() { return *reader_; }

  // After kEnd: OK if all that the reader reads was delivered; else the temporary file's error,
  // with its folder. ResourceExhausted says that the disk is full.
  const absl::Status& sort_status() const { return sort_status_; }
  // Bytes that were written to the temporary file so far.
  std::uint64_t spilled_bytes() const;

 private:
  void ReadInterval();

  std::unique_ptr<Reader> reader_;
  std::unique_ptr<internal::EventSorter> sorter_;
  std::vector<RemovedThread> removed_;
  std::size_t next_removed_ = 0;
  bool at_boundary_ = false;  // the interval is read: boundary_ comes after it
  Step boundary_ = Step::kEnd;
  Event event_;
  RemovedThread removed_thread_;
  absl::Status sort_status_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_TIME_ORDERED_READER_H_
