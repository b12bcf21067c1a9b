// Keeps the last part of a stream in memory, and writes it to a file on request.
#ifndef TOOLS_OUTPUT_FLIGHT_RECORDER_H_
#define TOOLS_OUTPUT_FLIGHT_RECORDER_H_

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
#include "tools/output/file_set.h"
#include "tools/output/files_settings.h"

namespace output {

struct FlightRecorderOptions {
  FilesSettings files;  // settings of the snapshots
  std::string session;
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;  // bytes of memory
  absl::Duration keep_time = absl::InfiniteDuration();
  // Level of the ZstdSink that the data comes from, if any. Snapshots are then compressed, too.
  std::optional<int> compressed;
};

// Keeps the prologue and the last sections of a stream, in the form in which Append receives them:
// compressed if a ZstdSink comes before.
//
// A section is dropped if it ended more than keep_time ago and a later one has begun. The oldest
// sections are also dropped if memory, including that of the open section, would exceed keep_bytes.
// The recorder requests a new section when the open one reaches an eighth of keep_bytes or
// keep_time, so that little is dropped at a time. If the open section alone would exceed
// keep_bytes, it is dropped, and all data until the next section is discarded.
//
// A snapshot keeps its sections while it is written, so memory use may double for that time.
//
// Thread-safe, except that only one thread may write, through a FlightSink.
class FlightRecorder {
 public:
  // Fails as FileSet::Create does, and with InvalidArgument if keep_bytes is below kMinKeepBytes.
  static absl::StatusOr<std::shared_ptr<FlightRecorder>> Create(
      const FlightRecorderOptions& options);

  static constexpr std::uint64_t kMinKeepBytes = 1 << 20;

  struct Snapshot {
    std::string path;
    std::uint64_t bytes = 0;
    std::uint64_t sections = 0;
    absl::Time since;  // start of the time span that the file contains
    absl::Time until;  // end of the time span
  };
  // Writes all sections in memory to a file, and returns when the file is complete. Recording
  // continues during the call. First requests a new section, so that the section that is open now
  // becomes complete and is written too. If no section begins within `patience`, the open one is
  // left out. Fails with FailedPrecondition if nothing has been recorded yet.
  absl::StatusOr<Snapshot> WriteSnapshot(absl::Duration patience);

  struct State {
    std::uint64_t memory_bytes = 0;  // bytes, including those of snapshots that are being written
    std::uint64_t sections = 0;      // sections that are kept, including the open one
    absl::Time since = absl::InfiniteFuture();  // time at which the oldest of these began
    std::uint64_t bytes = 0;                    // bytes recorded since the start
    std::uint64_t discarded = 0;                // bytes of sections that alone reached keep_bytes
    std::uint64_t snapshots = 0;                // snapshots written since the start
    FilesState files;                           // state of the snapshots
  };
  State state() const;

 private:
  friend class FlightSink;

  // Bytes of a section. They do not change any more when the section has ended.
  class Chunk;
  struct Section {
    std::vector<std::shared_ptr<Chunk>> chunks;
    absl::Time began;
    absl::Time ended;
    // Uptime() when the section began and ended.
    absl::Duration up_began;
    absl::Duration up_ended;
  };

  FlightRecorder(const FlightRecorderOptions& options, std::unique_ptr<FileSet> files,
                 std::vector<std::byte> end);

  void Append(std::span<const std::byte> bytes);
  void BeginSection();
  void Finish();
  bool WantsSection() const;
  // The following functions require mutex_.
  void EndSection();
  void DropAged();
  void DropFront();
  bool MakeRoom(std::size_t bytes);

  // Requires files_mutex_. `has_end`: the last section contains the end of the stream.
  absl::Status WriteFile(std::span<const std::byte> prologue, const std::deque<Section>& sections,
                         bool has_end, Snapshot* snapshot);

  const std::uint64_t keep_bytes_;
  const absl::Duration keep_time_;
  const std::vector<std::byte> end_;  // block that ends a stream

  mutable std::mutex mutex_;
  std::condition_variable section_begun_;
  std::vector<std::byte> prologue_;
  std::deque<Section> sections_;  // the last one is open, unless finished_
  std::uint64_t kept_ = 0;        // bytes of memory of these sections
  std::uint64_t open_bytes_ = 0;  // bytes in the open section
  std::uint64_t begun_ = 0;       // sections begun since the start
  std::size_t waiting_ = 0;       // snapshots that wait for the next section
  bool discarding_ = false;       // data is discarded until the next section
  bool finished_ = false;
  State state_;  // only its counts are current
  // Bytes of memory, including those of dropped sections that snapshots still use.
  const std::shared_ptr<std::atomic<std::uint64_t>> memory_;

  std::mutex files_mutex_;  // locked before mutex_ if both are locked
  const std::unique_ptr<FileSet> files_;
};

// The sink through which a Writer records. It shares ownership of the recorder, so either may be
// destroyed first.
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

}  // namespace output

#endif  // TOOLS_OUTPUT_FLIGHT_RECORDER_H_
