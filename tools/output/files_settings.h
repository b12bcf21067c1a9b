// Settings of the files that a session writes. They are a part of the daemon's settings.
#ifndef TOOLS_OUTPUT_FILES_SETTINGS_H_
#define TOOLS_OUTPUT_FILES_SETTINGS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace output {

// Times at which a session makes its files durable: never (kOff), whenever its output is flushed
// and when a file is complete (kInterval), or only when a file is complete (kRotation).
enum class SyncPolicy : std::uint8_t { kOff, kInterval, kRotation };

// Settings of a sequence of files in a directory.
struct FilesSettings {
  std::string directory;  // "": the daemon uses the session's directory in its state directory
  // Template of the file names, without the extension. {host}, {session} and {time} are replaced;
  // {time} is required.
  std::string name = "{session}-{time}";
  mode_t mode = 0640;
  // Size in bytes at which a new file begins; 0: no rotation by size. In any case, a new file
  // begins at a quarter of keep_bytes.
  std::uint64_t rotate_bytes = std::uint64_t{64} << 20;
  // Age of a file at which a new file begins; infinite: no rotation by age.
  absl::Duration rotate_every = absl::InfiniteDuration();
  // Limits of the files that are kept. The oldest files are deleted first, but never the file that
  // is being written.
  std::uint64_t keep_files = 0;  // complete files; 0: no limit
  std::uint64_t keep_bytes = std::uint64_t{1}
                             << 30;  // maximum bytes of all files of the session; 0: no limit
  // Maximum time since a file was completed; infinite: no limit.
  absl::Duration keep_age = absl::InfiniteDuration();
  // Bytes of the file system that must stay free. To keep them free, the oldest files are deleted.
  // If no file is left to delete, writes fail. 0: no limit. kKeepFreePart means 5 % of the file
  // system, but at most 2 GiB.
  static constexpr std::uint64_t kKeepFreePart = UINT64_MAX;
  std::uint64_t keep_free_bytes = kKeepFreePart;
  SyncPolicy sync = SyncPolicy::kOff;

  friend bool operator==(const FilesSettings&, const FilesSettings&) = default;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_FILES_SETTINGS_H_
