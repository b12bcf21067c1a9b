// A stream in files that follow one another, each of which is a whole stream.
#ifndef TOOLS_COLLECTOR_OUTPUT_FILE_SET_SINK_H_
#define TOOLS_COLLECTOR_OUTPUT_FILE_SET_SINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"
#include "tools/collector/output/file_set.h"
#include "tools/collector/output/files_settings.h"

namespace collector {

// The block that ends a stream, as a frame of its own if the stream is compressed, with the level.
// Empty if there is no memory for it.
std::vector<std::byte> StreamEnd(std::optional<int> compressed);

// What other threads may ask of a FileSetSink, during its life and after it.
class FileSetControl {
 public:
  // Called with the path of a file that has been completed, or with why there is none.
  using Done = std::function<void(absl::StatusOr<std::string> path)>;

  // Has the next section begin a file, and wants one. `done` is called when the file before it is
  // complete, by the sink's thread; at once, with Cancelled, if the sink is gone.
  void Rotate(Done done);
  FilesState state() const;

 private:
  friend class FileSetSink;

  mutable std::mutex mutex_;
  FileSet* files_ = nullptr;  // null when the sink is gone
  FilesState last_;           // the state then
  std::vector<Done> requests_;
};

// A file is the stream's prologue, one or more sections, and the block that ends a stream, so that
// it can be read by itself. A section begins a new file if the one before it has reached
// rotate_bytes (or a quarter of keep_bytes, so that there are always older files to delete) or
// rotate_every, or if somebody asked; WantsSection says so. What comes until the section begins is
// in the file, too: it may be as much larger.
//
// Where a file grows to all of keep_bytes before a section begins, it is given its name without an
// end, from which readers see that they know nothing of what follows, and what comes until the next
// section is discarded and counted.
//
// Bytes may be compressed, by a ZstdSink before this one; `compressed` is the level then.
//
// Finish completes the last file. If the sink is destroyed without it, that stays NAME.partial, and
// RecoverFiles repairs it.
class FileSetSink : public nettrace::Sink {
 public:
  // Errors: those of FileSet::Create.
  static absl::StatusOr<std::unique_ptr<FileSetSink>> Create(const FilesSettings& settings,
                                                             std::string_view session,
                                                             std::optional<int> compressed);
  ~FileSetSink() override;
  FileSetSink(const FileSetSink&) = delete;
  FileSetSink& operator=(const FileSetSink&) = delete;

  std::shared_ptr<FileSetControl> control() const { return control_; }

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Looks after the directory (FileSet::Check); makes the file durable if it is to be at each
  // interval.
  absl::Status Flush() override;
  absl::Status Sync() override;
  absl::Status Finish() override;
  absl::Status BeginSection() override;
  bool WantsSection() const override;

 private:
  FileSetSink(std::unique_ptr<FileSet> files, std::vector<std::byte> end);

  // Begins a file, with the prologue in it.
  absl::Status BeginFile();
  // Writes the end, and completes the file.
  absl::Status CompleteFile();
  // Completes the file as it is; what follows is discarded.
  absl::Status CutFile();
  void Answer(const absl::StatusOr<std::string>& path);

  const std::unique_ptr<FileSet> files_;
  const std::shared_ptr<FileSetControl> control_;
  const std::vector<std::byte> end_;  // the block that ends a stream
  const std::uint64_t rotate_bytes_;
  std::vector<std::byte> prologue_;
  bool in_sections_ = false;     // the prologue is over
  bool discarding_ = false;      // until the next section
  std::size_t end_written_ = 0;  // of end_, in the current file
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_FILE_SET_SINK_H_
