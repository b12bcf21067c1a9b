// Repairs the files that a daemon has left incomplete in a session's directory, for example because
// the daemon was killed.
#ifndef TOOLS_OUTPUT_RECOVER_FILES_H_
#define TOOLS_OUTPUT_RECOVER_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/output/files_settings.h"
#include "tools/trace/ring_positions.h"

namespace output {

struct RecoveredFile {
  enum class Outcome : std::uint8_t {
    kComplete,    // the file was complete, and now has its final name
    kRepaired,    // a copy of the readable part has the final name; see `unknown` and `status`
    kEmpty,       // the incomplete file had no events and was removed
    kUnreadable,  // nothing in the file can be read; it is kept at `path`
    kBusy,        // another process writes, repairs, or has renamed or removed the file
    kFailed,      // the file could not be repaired now, and stays at `partial`; see `status`
  };
  Outcome outcome = Outcome::kFailed;
  std::string partial;       // path of the partial file
  std::string path;          // path after the recovery; "" if the file was removed or is unchanged
  std::uint64_t events = 0;  // events that could be read
  // For kRepaired: the time in which losses are not known, e.g. "from 2026-... to at least
  // 2026-..."; "" if all losses are known.
  std::string unknown;
  absl::Status status;  // damage in the file, or why it could not be repaired
};

// Repairs each NAME.partial of the session into the file NAME, as `nettrace repair` does, within
// the limits of KeptFiles. Must be called before a sink of the session is created. Fails if the
// template is invalid or the directory cannot be created or read. An error of one file is in its
// RecoveredFile. A directory that does not exist is created.
//
// `rings`, unless null, receives the positions that services with rings in user space had at the
// end of the files (tools/trace/ring_positions.h), and whether the recording was interrupted. Each
// repaired file also contains the positions at its end. If no incomplete file has positions, they
// are read from the newest complete file that can be opened; without such a file, there are none.
// If a process still writes or repairs a file, the recording does not count as interrupted.
absl::StatusOr<std::vector<RecoveredFile>> RecoverFiles(const FilesSettings& settings,
                                                        std::string_view session,
                                                        trace::RecordedRings* rings = nullptr);

// Returns e.g. "state/a-2026.nettrace: repaired, 12 events; losses are unknown from ...".
std::string RecoveryText(const RecoveredFile& file);

}  // namespace output

#endif  // TOOLS_OUTPUT_RECOVER_FILES_H_
