// The last of a stream, in memory until somebody asks for it.
#ifndef TOOLS_COLLECTOR_OUTPUT_FLIGHT_RECORDER_H_
#define TOOLS_COLLECTOR_OUTPUT_FLIGHT_RECORDER_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "tools/collector/output/file_set.h"
#include "tools/collector/output/files_settings.h"

namespace collector {

struct FlightRecorderOptions {
  FilesSettings files;  // of the snapshots
  std::string session;
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;  // of memory
  absl::Duration keep_time = absl::InfiniteDuration();
  // If what is recorded comes from a ZstdSink: its level. So are the snapshots then.
  std::optional<int> compressed;
};

// Keeps the prologue and the last sections, whole ones, as they come: compressed if they are. A
// section is dropped when another one has begun and it has ended more than keep_time ago, or when
// memory would pass keep_bytes, that of the open section included. So that little is dropped at a
// time, it wants a section whenever the open one has an eighth of the bytes or of the time. If the
// open section alone comes to have keep_bytes, it is dropped, and what comes until the next one.
//
// While a snapshot is written, what it has of them stays in memory even if it is dropped: so long,
// there may be as much again.
//
// All functions may be called by any thread; only one writes by the sink, see FlightSink.
class FlightRecorder {
 public:
  // Errors: those of FileSet::Create, and InvalidArgument if keep_bytes is below kMinKeepBytes.
  static absl::StatusOr<std::shared_ptr<FlightRecorder>> Create(
      const FlightRecorderOptions& options);

  static constexpr std::uint64_t kMinKeepBytes = 1 << 20;

  struct Snapshot {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t sections = 0;
    absl::Time since;  // all that was recorded from then on, until...
    absl::Time until;  // ...then, is in it
  };
  // Writes a file of all that is kept. It ends with the section that is open, and so wants another
  // one; if none begins within `patience`, it has only what comes before the open one. Returns when
  // the file is complete; recording goes on meanwhile. FailedPrecondition if there is nothing yet.
  absl::StatusOr<Snapshot> WriteSnapshot(absl::Duration patience);

  struct State {
    std::uint64_t memory_bytes = 0;  // including what snapshots that are being written have
    std::uint64_t sections = 0;      // that are kept, the open one included
    absl::Time since = absl::InfiniteFuture();  // what is kept begins there
    std::uint64_t bytes = 0;                    // recorded since the start
    std::uint64_t discarded = 0;                // of sections that alone had keep_bytes
    std::uint64_t snapshots = 0;                // written since the start
    FilesState files;                           // the snapshots
  };
  State state() const;

 private:
  friend class FlightSink;

  // Bytes of a section. Those of a section that has ended do not change any more.
  class Chunk;
  struct Section {
    std::vector<std::shared_ptr<Chunk>> chunks;
    absl::Time began;
    absl::Time ended;
    // The same by a clock that nobody sets.
    absl::Duration up_began;
    absl::Duration up_ended;
  };

  FlightRecorder(const FlightRecorderOptions& options, std::unique_ptr<FileSet> files,
                 std::vector<std::byte> end);

  void Append(std::span<const std::byte> bytes);
  void BeginSection();
  void Finish();
  bool WantsSection() const;
  // These need the mutex.
  void EndSection();
  void DropAged();
  void DropFront();
  bool MakeRoom(std::size_t bytes);

  // Needs files_mutex_. `has_end`: the last section has the end of the stream.
  absl::Status WriteFile(std::span<const std::byte> prologue, const std::deque<Section>& sections,
                         bool has_end, Snapshot* snapshot);

  const std::uint64_t keep_bytes_;
  const absl::Duration keep_time_;
  const std::vector<std::byte> end_;  // the block that ends a stream

  mutable std::mutex mutex_;
  std::condition_variable section_begun_;
  std::vector<std::byte> prologue_;
  std::deque<Section> sections_;  // the last one is open, unless finished_
  std::uint64_t kept_ = 0;        // bytes of memory of these
  std::uint64_t open_bytes_ = 0;  // of these, of the open one
  std::uint64_t begun_ = 0;       // sections since the start
  std::size_t waiting_ = 0;       // snapshots, for the next section
  bool discarding_ = false;       // until the next section
  bool finished_ = false;
  State state_;  // the counts of it
  // Bytes of memory, including what snapshots have of sections that were dropped.
  const std::shared_ptr<std::atomic<std::uint64_t>> memory_;

  std::mutex files_mutex_;  // before mutex_, if both are locked
  const std::unique_ptr<FileSet> files_;
};

// By way of which a Writer records; it may end before or after the recorder, which it keeps.
class FlightSink : public nettrace::Sink {
 public:
  explicit FlightSink(std::shared_ptr<FlightRecorder> recorder) : recorder_(std::move(recorder)) {}

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  absl::Status Finish() override;
  absl::Status BeginSection() override;
  bool WantsSection() const override;

 private:
  const std::shared_ptr<FlightRecorder> recorder_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_FLIGHT_RECORDER_H_
