// Reads the events and losses of a stream, for the programs that show or convert it.
#ifndef TOOLS_TRACE_EVENT_STREAM_H_
#define TOOLS_TRACE_EVENT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/time_ordered_reader.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/process_names.h"

namespace trace {

// Missing events of one capture thread.
struct Loss {
  // Capture thread to which the missing events belong.
  nettrace::ThreadIndex capture_thread_index = nettrace::kNoThread;
  const nettrace::ThreadInfo* capture_thread = nullptr;
  std::uint64_t count = 0;
  // Time of the event or sequence point after the loss. If the thread was removed, time of the last
  // event or sequence point before its removal.
  absl::Time time;
  const nettrace::Event* next = nullptr;  // the event after the loss; null if there is none
};

struct EventStreamOptions {
  // Selects events. Null selects all events. Must outlive the stream.
  const EventFilter* filter = nullptr;
  // Receives the names of processes. Next() stores a name before it returns the event that states
  // the name. May be null. Must outlive the stream.
  ProcessNames* names = nullptr;
  // Whether steps come in the order of the file, not in the order of time.
  bool file_order = false;
};

// Reads a stream in steps:
//
//   for (auto step = stream.Next(); step != EventStream::Step::kEnd; step = stream.Next()) ...
//   if (!stream.sort_status().ok()) ...      // the temporary file for sorting failed
//   if (!stream.reader().status().ok()) ...  // the stream is cut or damaged
//
// Not thread-safe.
class EventStream {
 public:
  enum class Step : std::uint8_t {
    kEvent,       // an event that passes the filter
    kOtherEvent,  // an event that does not pass the filter, or is a record of ring positions
    // Events were lost before the next event or sequence point, or before their thread was
    // removed. The contents of lost events are unknown, so the filter selects a loss only by its
    // time.
    kLoss,
    kSequencePoint,  // pointers to metadata and threads of earlier events become invalid
    kEnd,
  };

  explicit EventStream(std::unique_ptr<nettrace::Reader> reader,
                       const EventStreamOptions& options = {});
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  Step Next();
  const nettrace::Event& event() const { return *event_; }  // valid after kEvent and kOtherEvent
  const Loss& loss() const { return loss_; }                // valid after kLoss
  const nettrace::SequencePoint& sequence_point() const {   // valid after kSequencePoint
    return ordered_.sequence_point();
  }
  // Return the time of the event or sequence point that Next() has read last, in ticks and in UTC.
  // Before the first one, they return 0 and absl::InfinitePast.
  std::uint64_t ticks() const { return ticks_.value_or(0); }
  absl::Time time() const { return ticks_ ? reader().TimeOf(*ticks_) : absl::InfinitePast(); }

  // Returns the reader of the stream. Unless the steps come in file order, the reader has read a
  // whole interval to sort it, so its statistics are ahead of the steps.
  const nettrace::Reader& reader() const { return ordered_.reader(); }
  // Returns the result of TimeOrderedReader::sort_status(). Must be called after kEnd.
  const absl::Status& sort_status() const { return ordered_.sort_status(); }

 private:
  void ReadStep();
  // Sets loss_ to the next loss of read_, and returns kLoss.
  Step NextLoss();

  const EventStreamOptions options_;
  nettrace::TimeOrderedReader ordered_;
  nettrace::Reader::Step read_ = nettrace::Reader::Step::kEnd;  // last step of the reader
  bool has_step_ = false;                   // whether Next() must still return a part of read_
  std::size_t losses_left_ = 0;             // losses of read_ that Next() has not returned yet
  const nettrace::Event* event_ = nullptr;  // the last event
  const nettrace::RemovedThread* removed_ = nullptr;  // the last removed thread
  Loss loss_;
  std::optional<std::uint64_t> ticks_;
};

}  // namespace trace

#endif  // TOOLS_TRACE_EVENT_STREAM_H_
