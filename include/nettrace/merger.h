// Writes events of one or more streams as one V6 stream. A program can thus copy the intact part of
// a damaged stream, select events of a stream, or combine several streams.
//
//   Merger merger;
//   merger.AddInput(*Reader::Open(std::make_unique<MemorySource>(bytes)));
//   absl::Status status = merger.Run(std::make_unique<MemorySink>());
//   if (!merger.input(0).status().ok()) ...  // cut or damaged: all earlier events were written
//
// The output is in time order. It keeps the threads, labels, stacks and counts of lost events of
// the inputs. It differs from the inputs in the following points:
//
// - Metadata: Equal rows of several inputs become one row. A row gets a new EventId if TraceEvent
//   could not distinguish its events from those of another row. V4 and V5 types become V6 types.
// - Hosts: If the inputs differ in the keys HostName or BootId of their Trace blocks, each thread
//   row gets the keys of its input, so that readers can distinguish equal process ids of several
//   hosts.
// - Code: Events of the provider Universal.System assign ids to mapped files and functions. If
//   there are several inputs, these ids are replaced, so that ids of different inputs are never
//   equal.
// - Times: The sync time of the output is no later than the first event, unless the format cannot
//   represent that time. If an event of an input follows a sequence point with a later time, the
//   event gets the time of that sequence point (NotAsItWas::moved).
//
// Memory holds the buffers of the time-ordered readers and of a Writer. It also holds the metadata
// and threads of the output, and its labels and stacks since the last sequence point. Not
// thread-safe. Nothing here throws, prints or aborts.
#ifndef NETTRACE_MERGER_H_
#define NETTRACE_MERGER_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/writer.h"

namespace nettrace {

// An event in the output that no input contains.
struct AddedEvent {
  EventMetadata metadata;
  std::vector<std::byte> payload;
  // Name of a thread that Run() defines only for this event. Events of add_after do not use it,
  // because they have the thread of the event that they follow.
  std::string thread = {};
};

struct MergerOptions {
  // Returns whether to write this event of `input`. If the function is empty, all events are
  // written. Events for which the function returns false do not count as lost.
  std::function<bool(const Reader& input, const Event& event)> filter = {};
  // Events before this time that pass the filter get this time as their timestamp. Their original
  // timestamp is in the label kLabelOriginalTimestamp. No value: events keep their timestamps.
  std::optional<absl::Time> start = std::nullopt;
  // Run() calls this function once for each input, when the input's status() is final. This is
  // after Run() has read all inputs, or, for an input that Run() opens itself, when it has read
  // that input. Run() writes the returned events at the end of the output, on capture threads that
  // have no other events. Run() does not write these events, and does not fail, if a sequence
  // point of an input is so late (less than 10 below 2^63 - 1) that no event can be after it.
  std::function<std::vector<AddedEvent>(const Reader& input)> add_at_end = {};
  // Run() calls this function for each event of `input` that it has written. It writes the returned
  // events directly after this event, with the same time, thread and capture thread.
  std::function<std::vector<AddedEvent>(const Reader& input, const Event& event)> add_after = {};
  TimeOrderOptions time_order = {};
};

class Merger {
 public:
  explicit Merger(MergerOptions options = {});
  ~Merger();
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  // Adds an input whose events have not been read yet. The output has the clock of the first input,
  // but the sync time and tick 0 of the output may be earlier.
  void AddInput(std::unique_ptr<Reader> input);

  // A function that opens an input, and returns a reader at the beginning of the input.
  using OpenReader = std::function<absl::StatusOr<std::unique_ptr<Reader>>()>;
  // Adds an input that is open only while it is needed. If many inputs follow one another in time,
  // only a few of them then use memory at a time. Run() calls `open` twice: first to find when the
  // input begins, and again when the output has reached that time. Run() returns the errors of
  // `open`. input() must not be called for this input.
  void AddInput(OpenReader open);

  // Reads all inputs and writes the output. Call it only once. Returns the sink's errors and those
  // of the temporary file for sorting long intervals (see TimeOrderOptions). Returns
  // ResourceExhausted if a provider has more than 65,533 schemas, or if there are more than 2^20
  // threads at a time. Returns InvalidArgument if there is no input, or if there are several inputs
  // and the sync time of one is not a valid date. Also fails if the writer refuses an event of
  // add_at_end or add_after. A damaged input does not make Run() fail: input(i).status() reports
  // the damage.
  absl::Status Run(std::unique_ptr<Sink> sink);

  // Returns the reader that was passed to AddInput. Inputs are counted from 0, in the order of
  // AddInput.
  const Reader& input(std::size_t index) const;
  // Returns Reader::status() of input `index`. Valid after Run().
  const absl::Status& status(std::size_t index) const;
  // Returns whether the sync time of input `index` is a valid date. If there is only one input and
  // its sync time is no valid date, the sync time of the output is 1970-01-01.
  bool has_date(std::size_t index) const;
  // Counts the events of an input that the output does not contain unchanged.
  struct NotAsItWas {
    // Events that follow a sequence point with a later time in the input. They get the time of that
    // sequence point as their timestamp. Their original timestamp, in the output's ticks, is in the
    // label kLabelOriginalTimestamp.
    std::uint64_t moved = 0;
    // Events that a V6 stream cannot represent. They count as lost events of the output.
    std::uint64_t not_kept = 0;
    // Reason for which the first event of not_kept was not written; empty if there is none.
    std::string why_not_kept;
  };
  NotAsItWas not_as_it_was(std::size_t index) const;

  // Returns the index of the input that caused the error of Run(); no value if the error concerns
  // no single input.
  std::optional<std::size_t> failed_input() const;

  // Returns the counts of the output; all 0 before Run().
  const Writer::Stats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_MERGER_H_
