// Writes a stream to a sequence of files, each of which is a whole stream.
#ifndef TOOLS_OUTPUT_FILE_SET_SINK_H_
#define TOOLS_OUTPUT_FILE_SET_SINK_H_

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
#include "tools/output/file_set.h"
#include "tools/output/files_settings.h"

namespace output {

// Returns the bytes of the block that ends a stream. If `compressed` has a compression level, the
// bytes are a separate zstd frame. Returns an empty vector if they cannot be compressed.
std::vector<std::byte> StreamEnd(std::optional<int> compressed);

// Controls a FileSetSink from other threads. May outlive the sink.
class FileSetControl {
 public:
  // Called with the path of the completed file, or with the reason why no file was completed.
  using Done = std::function<void(absl::StatusOr<std::string> path)>;

  // Requests a section, which will begin a new file. The sink's thread calls `done` when a file is
  // complete, or with Cancelled when the sink is destroyed before that. If the sink is destroyed
  // already, Rotate calls `done` with Cancelled.
  void Rotate(Done done);
  FilesState state() const;

 private:
  friend class FileSetSink;

  mutable std::mutex mutex_;
  FileSet* files_ = nullptr;  // null once the sink is destroyed
  FilesState last_;           // state at the end of the sink's life
  std::vector<Done> requests_;
};

// A sink that writes a sequence of files. Each file consists of the stream's prologue (the bytes
// before the first section), one or more sections, and the block that ends a stream. It can
// therefore be read by itself.
//
// A section begins a new file if a rotation was requested, or if the current file has reached
// rotate_bytes, rotate_every or a quarter of keep_bytes. The quarter ensures that there are older
// files to delete. WantsSection is true from the request or the limit until the section begins, and
// also while data is discarded. Until the section begins, data is still written to the current
// file.
//
// If a file reaches keep_bytes before a section begins, it gets its final name without an end
// block. Readers conclude that events may be missing after its end. Data until the next section is
// discarded and counted.
//
// A ZstdSink that passes its output to this sink may compress the data. `compressed` is then the
// level of that ZstdSink.
//
// Finish completes the last file. Without Finish, the file remains as NAME.partial, and
// RecoverFiles repairs it.
class FileSetSink : public nettrace::Sink {
 public:
  // Fails with InvalidArgument if the settings have an invalid template or no directory, and with
  // ResourceExhausted if there is not enough memory. Succeeds if the directory cannot be used;
  // writes then fail until it can be used.
  static absl::StatusOr<std::unique_ptr<FileSetSink>> Create(const FilesSettings& settings,
                                                             std::string_view session,
                                                             std::optional<int> compressed);
  ~FileSetSink() override;
  FileSetSink(const FileSetSink&) = delete;
  FileSetSink& operator=(const FileSetSink&) = delete;

  std::shared_ptr<FileSetControl> control() const { return control_; }

  // Creates the first file before there is data for it. If the process is then killed, RecoverFiles
  // finds the file. If it cannot be created, Append creates it later. Must be called before Append.
  void BeginEarly();

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override;
  // Calls FileSet::Check, and makes the file durable if the settings have SyncPolicy::kInterval. If
  // Check finds that data was lost, deletes the file, discards data until the next section, and
  // returns OK.
  absl::Status Flush() override;
  // Calls Flush, and makes the file durable unless the settings have SyncPolicy::kOff.
  absl::Status Sync() override;
  absl::Status Finish() override;
  absl::Status BeginSection() override;
  bool WantsSection() const override;

 private:
  FileSetSink(std::unique_ptr<FileSet> files, std::vector<std::byte> end);

  // Returns whether a file is being written and has the prologue of the stream.
  bool HasData() const { return files_->has_file() && files_->size() != 0; }
  // Begins a file, unless BeginEarly has done so, and writes the prologue of the stream to it.
  absl::Status BeginFile();
  // Writes the end block, unless the file would then exceed keep_bytes, and completes the file.
  absl::Status CompleteFile();
  // Completes the file without an end block, and discards data until the next section.
  absl::Status CutFile();
  // Calls, with `path`, each function that was passed to Rotate. Removes these functions.
  void Answer(const absl::StatusOr<std::string>& path);

  const std::unique_ptr<FileSet> files_;
  const std::shared_ptr<FileSetControl> control_;
  const std::vector<std::byte> end_;  // block that ends a stream
  const std::uint64_t rotate_bytes_;
  std::vector<std::byte> prologue_;
  bool in_sections_ = false;     // true once the first section has begun
  bool discarding_ = false;      // true if data is discarded until the next section
  std::size_t end_written_ = 0;  // bytes of end_ that are in the current file
};

}  // namespace output

#endif  // TOOLS_OUTPUT_FILE_SET_SINK_H_
