// Reads the events of a stream in time order. The reader sorts only the events between two sequence
// points, because the format guarantees the order of events before and after a sequence point.
//
// Memory use is that of the reader plus about TimeOrderOptions::max_memory, even for long
// intervals: the events that exceed max_memory are sorted in a temporary file.
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
  // Maximum bytes of events in memory. Further events of an interval go to the temporary file, in
  // sorted parts. Reading the file needs additional memory: up to a quarter of max_memory, or 16
  // KiB for each sorted part if that is more.
  std::size_t max_memory = std::size_t{32} << 20;
  // Folder of the temporary file, which is unnamed. Empty: $TMPDIR, else /var/tmp.
  std::string temporary_directory = {};
};

// Returns the steps of a Reader in another order. Each interval begins with its events in the order
// of their times. Events with equal times are in file order. The removed threads follow, then the
// sequence point. Not thread-safe.
class TimeOrderedReader {
 public:
  using Step = Reader::Step;

  explicit TimeOrderedReader(std::unique_ptr<Reader> reader, const TimeOrderOptions& options = {});
  TimeOrderedReader(TimeOrderedReader&&) noexcept;
  ~TimeOrderedReader();

  // Moves to the next step. event() is valid until the next call. Returns kEnd at the end of the
  // stream and after errors: then check sort_status() and reader().status().
  Step Next();
  const Event& event() const { return event_; }
  const RemovedThread& removed_thread() const { return removed_thread_; }
  const SequencePoint& sequence_point() const { return reader_->sequence_point(); }
  // Returns the underlying reader, for facts about the whole stream. Its statistics also count
  // events that it has read but TimeOrderedReader has not returned yet.
  const Reader& reader() const { return *reader_; }
  Reader& reader() { return *reader_; }

  // After kEnd: returns OK, or the error of the temporary file that ended the events early. The
  // message names the folder of the file. ResourceExhausted means that the disk is full.
  const absl::Status& sort_status() const { return sort_status_; }
  // Returns the bytes written to the temporary file so far.
  std::uint64_t spilled_bytes() const;

 private:
  void ReadInterval();

  std::unique_ptr<Reader> reader_;
  std::unique_ptr<internal::EventSorter> sorter_;
  std::vector<RemovedThread> removed_;
  std::size_t next_removed_ = 0;
  bool at_boundary_ = false;  // the interval was read, and boundary_ is the step that ended it
  Step boundary_ = Step::kEnd;
  Event event_;
  RemovedThread removed_thread_;
  absl::Status sort_status_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_TIME_ORDERED_READER_H_
