// Writes the events of one or more streams as one V6 stream: the whole part of a damaged one, the
// chosen events of one, or all of several.
//
//   Merger merger;
//   merger.AddInput(*Reader::Open(std::make_unique<MemorySource>(bytes)));
//   absl::Status status = merger.Run(std::make_unique<MemorySink>());
//   if (!merger.input(0).status().ok()) ...  // cut or damaged: all before the damage was written
//
// The output is in the order of time. Threads, labels, stacks and the counts of lost events are
// kept; metadata rows of several inputs that are alike become one, and get EventIds by which
// TraceEvent can tell them apart where theirs are not enough. The sync time is no later than the
// first event. V4 and V5 types become those of V6. Where an input's sequence points are not between
// the events that they should part, its events are put in order all the same.
//
// Memory: that of the time-ordered readers and of the copies' metadata, threads, labels and stacks.
// Not thread-safe. Nothing here throws, prints or aborts.
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
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/writer.h"

namespace nettrace {

// An event that the output has beside those of its inputs.
struct AddedEvent {
  EventMetadata metadata;
  std::vector<std::byte> payload;
  std::string thread;  // the name of the one that it is about
};

struct MergerOptions {
  // Says which events of an input are written; empty: all. An event that is left out is not lost.
  std::function<bool(const Reader& input, const Event& event)> filter = {};
  // Events before this time that pass the filter are written at this time, with their own in the
  // label kLabelOriginalTimestamp.
  std::optional<absl::Time> start = std::nullopt;
  // Called for each input once all are at their ends, and so their status() is known: the events
  // are written at the output's end, on a capture thread that has no others.
  std::function<std::vector<AddedEvent>(const Reader& input)> add_at_end = {};
  TimeOrderOptions time_order = {};
};

class Merger {
 public:
  explicit Merger(MergerOptions options = {});
  ~Merger();
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  // Adds a stream of which nothing was read yet. The first one's clock is the output's.
  void AddInput(std::unique_ptr<Reader> input);

  // Reads all inputs and writes the output; to be called once. Errors: the sink's; those of the
  // temporary file by way of which long intervals are sorted; ResourceExhausted for more than
  // 65,533 schemas of a provider or too many threads; InvalidArgument without an input, or if one
  // of several has a sync time that is no date. Damage of an input is no error here: see its
  // status().
  absl::Status Run(std::unique_ptr<Sink> sink);

  // These count inputs from 0, in the order of AddInput.
  const Reader& input(std::size_t index) const;
  // Whether the sync time of that input is a date. Where an only input has none, the output's is
  // 1970-01-01.
  bool has_date(std::size_t index) const;
  struct NotAsItWas {
    // Events that came after a sequence point which is later than they are. They have the time of
    // that, and their own in the label kLabelOriginalTimestamp, in the output's ticks.
    std::uint64_t moved = 0;
    // Events that no V6 stream can have. They are lost events of the output.
    std::uint64_t not_kept = 0;
    std::string why_not_kept;  // of the first of those
  };
  NotAsItWas not_as_it_was(std::size_t index) const;

  // After an error of Run that is about one input: which.
  std::optional<std::size_t> failed_input() const;

  // Counts of the output, after Run.
  const Writer::Stats& stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_MERGER_H_
