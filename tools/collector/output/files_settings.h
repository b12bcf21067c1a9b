// What an operator says of the files that a session writes; a part of the daemon's settings.
#ifndef TOOLS_COLLECTOR_OUTPUT_FILES_SETTINGS_H_
#define TOOLS_COLLECTOR_OUTPUT_FILES_SETTINGS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace collector {

enum class SyncPolicy : std::uint8_t { kOff, kInterval, kRotation };

// A directory of files, each complete, that follow one another.
struct FilesSettings {
  std::string directory;  // "": that of the session in the state directory
  // Without its ending. {host}, {session} and {time} stand for what they say; {time} must be there.
  std::string name = "{session}-{time}";
  mode_t mode = 0640;
  std::uint64_t rotate_bytes = std::uint64_t{64} << 20;  // 0: not by size
  absl::Duration rotate_every = absl::InfiniteDuration();
  // What is kept; the oldest files go first, and never the one that is being written.
  std::uint64_t keep_files = 0;                       // 0: any number
  std::uint64_t keep_bytes = std::uint64_t{1} << 30;  // of all files of the session; 0: any
  absl::Duration keep_age = absl::InfiniteDuration();
  // Files go, and then nothing is written, before the file system has less left than this.
  std::uint64_t keep_free_bytes = 0;
  SyncPolicy sync = SyncPolicy::kOff;

  friend bool operator==(const FilesSettings&, const FilesSettings&) = default;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_FILES_SETTINGS_H_
