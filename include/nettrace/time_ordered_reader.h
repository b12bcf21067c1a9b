// A stream's events in the order of time. They are sorted within each interval between sequence
// points; the format guarantees that this is enough.
#ifndef NETTRACE_TIME_ORDERED_READER_H_
#define NETTRACE_TIME_ORDERED_READER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "nettrace/reader.h"

namespace nettrace {

struct TimeOrderOptions {
  // An interval of more bytes, by estimate, is sorted in parts of this size.
  std::size_t max_interval_bytes = std::size_t{256} << 20;
};

// Takes the steps of a Reader in another order: in each interval first the events by time (events
// of one time in file order), then the removed threads, then the sequence point. Not thread-safe.
class TimeOrderedReader {
 public:
  using Step = Reader::Step;

  explicit TimeOrderedReader(std::unique_ptr<Reader> reader, const TimeOrderOptions& options = {});

  Step Next();
  const Event& event() const { return event_; }
  const RemovedThread& removed_thread() const { return removed_thread_; }
  const SequencePoint& sequence_point() const { return reader_->sequence_point(); }
  // The reader below, for facts about the whole stream. Its statistics are ahead of the events
  // delivered.
  const Reader& reader() const { return *reader_; }
  Reader& reader() { return *reader_; }
  // True once an interval was too long to be sorted as a whole.
  bool sorted_in_parts() const { return sorted_in_parts_; }
  // True while the current interval is sorted in parts: until its end an event may be earlier than
  // those before it.
  bool in_parts() const { return in_parts_; }

 private:
  struct Kept {
    Event event;  // its payload and stack are at `start` in bytes_
    std::size_t start = 0;
    std::size_t payload_size = 0;
    std::size_t stack_size = 0;
  };
  void ReadInterval();
  void Keep(const Event& event);
  void Deliver(const Kept& kept);

  std::unique_ptr<Reader> reader_;
  const TimeOrderOptions options_;
  std::vector<Kept> kept_;
  std::vector<std::byte> bytes_;
  std::deque<Labels> labels_;  // of V4 and V5 events
  std::vector<RemovedThread> removed_;
  std::size_t next_ = 0;
  std::size_t next_removed_ = 0;
  bool at_boundary_ = false;  // the reader's step, boundary_, was not delivered yet
  Step boundary_ = Step::kEnd;
  Event event_;
  RemovedThread removed_thread_;
  bool sorted_in_parts_ = false;
  bool in_parts_ = false;
};

}  // namespace nettrace

#endif  // NETTRACE_TIME_ORDERED_READER_H_
