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
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;  // maximum bytes of memory for sections
  // Time for which a section is kept after it has ended.
  absl::Duration keep_time = absl::InfiniteDuration();
  // Level of the ZstdSink that passes its output to the recorder, if there is one. Snapshots are
  // then compressed, too.
  std::optional<int> compressed;
};

// Keeps the prologue of a stream (the bytes before the first section) and the last sections, as
// Append receives them. They are compressed if a ZstdSink passes its output to the recorder.
//
// When a section begins or a snapshot is written, sections that ended more than keep_time ago are
// dropped. The oldest sections are also dropped if memory, including that of the open section,
// would exceed keep_bytes. The recorder requests a new section when the open section reaches an
// eighth of keep_bytes or keep_time, because sections are dropped as a whole. If the open section
// alone would exceed keep_bytes, it is dropped, and all data until the next section is discarded.
//
// A snapshot keeps its sections while it is written, so memory use may double for that time.
//
// Thread-safe, except that only one thread may write, through a FlightSink.
class FlightRecorder {
 public:
  // Fails with InvalidArgument if keep_bytes is below kMinKeepBytes or the file settings have an
  // invalid template or no directory. Fails with ResourceExhausted if there is not enough memory.
  static absl::StatusOr<std::shared_ptr<FlightRecorder>> Create(
      const FlightRecorderOptions& options);

  static constexpr std::uint64_t kMinKeepBytes = 1 << 20;

  struct Snapshot {
    std::string path;
    std::uint64_t bytes = 0;     // size of the file
    std::uint64_t sections = 0;  // sections in the file
    absl::Time since;            // time at which the first section of the file began
    absl::Time until;            // time at which the last section of the file ended
  };
  // Writes all sections in memory to a file, and returns when the file is complete. Recording
  // continues during the call. First requests a new section, so that the section that is open now
  // becomes complete and is written too. If no section begins within `patience` (at most 1 h), the
  // open section is left out. Fails with FailedPrecondition if no complete section is in memory,
  // and like FileSet if the file cannot be written.
  absl::StatusOr<Snapshot> WriteSnapshot(absl::Duration patience);

  struct State {
    // Bytes of memory in use, including the memory of snapshots that are being written.
    std::uint64_t memory_bytes = 0;
    std::uint64_t sections = 0;                 // sections that are kept, including the open one
    absl::Time since = absl::InfiniteFuture();  // time at which the oldest kept section began
    std::uint64_t bytes = 0;                    // bytes recorded since the start
    // Bytes that were discarded because a section alone reached keep_bytes: those of the section,
    // and all bytes after it until the next section.
    std::uint64_t discarded = 0;
    std::uint64_t snapshots = 0;  // snapshots written since the start
    FilesState files;             // state of the files of the snapshots
  };
  State state() const;

 private:
  friend class FlightSink;

  // A part of the bytes of a section. It does not change after the section has ended, so snapshots
  // can read it without a lock.
  class Chunk;
  struct Section {
    std::vector<std::shared_ptr<Chunk>> chunks;
    absl::Time began;
    absl::Time ended;
    // base::Uptime() when the section began and ended.
    absl::Duration up_began;
    absl::Duration up_ended;
  };

  FlightRecorder(const FlightRecorderOptions& options, std::unique_ptr<FileSet> files,
                 std::vector<std::byte> end);

  void Append(std::span<const std::byte> bytes);
  void BeginSection();
  void Finish();
  bool WantsSection() const;
  // The caller of the next four functions must hold mutex_.
  void EndSection();
  void DropAged();
  void DropFront();
  bool MakeRoom(std::size_t bytes);

  // Writes a snapshot to a file. The caller must hold files_mutex_. `has_end` is true if the last
  // section contains the end of the stream.
  absl::Status WriteFile(std::span<const std::byte> prologue, const std::deque<Section>& sections,
                         bool has_end, Snapshot* snapshot);

  const std::uint64_t keep_bytes_;
  const absl::Duration keep_time_;
  const std::vector<std::byte> end_;  // block that ends a stream

  mutable std::mutex mutex_;
  std::condition_variable section_begun_;
  std::vector<std::byte> prologue_;
  std::deque<Section> sections_;  // the last section is open, unless finished_
  std::uint64_t kept_ = 0;        // bytes of memory of the sections in sections_
  std::uint64_t open_bytes_ = 0;  // bytes in the open section
  std::uint64_t begun_ = 0;       // sections begun since the start
  std::size_t waiting_ = 0;       // snapshots that wait for the next section
  bool discarding_ = false;       // true if data is discarded until the next section
  bool finished_ = false;
  State state_;  // only bytes, discarded and snapshots are set; state() sets the others
  // Bytes of memory of all chunks, including dropped sections that snapshots still use.
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
