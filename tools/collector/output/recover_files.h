// What a daemon that did not end in order has left in a session's directory.
#ifndef TOOLS_COLLECTOR_OUTPUT_RECOVER_FILES_H_
#define TOOLS_COLLECTOR_OUTPUT_RECOVER_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/output/files_settings.h"

namespace collector {

struct RecoveredFile {
  enum class Outcome : std::uint8_t {
    kComplete,    // it was whole, and has its name
    kRepaired,    // what was whole of it has its name, and says from when on nothing is known
    kEmpty,       // there was no event in it; it has been removed
    kUnreadable,  // nothing can be read of it; it has the name of `path`, and is kept
    kBusy,        // another process is writing it; it was let alone
    kFailed,      // it could not be repaired now, and is as it was; see `status`
  };
  Outcome outcome = Outcome::kFailed;
  std::string partial;  // the path it had
  std::string path;     // the path it has; "" if it has none any more
  std::uint64_t events = 0;
  std::string
      unknown;  // kRepaired: "from 2026-... to at least 2026-...": what is missing is not known
  absl::Status status;  // what was wrong with it, or why it failed
};

// Repairs every NAME.partial of the session, as `nettrace repair` does, into the file NAME, within
// the bounds of FileSet. To be called before a sink of the session is made. Errors: a template that
// is not good, a directory that cannot be read; a directory that is not there has no files.
absl::StatusOr<std::vector<RecoveredFile>> RecoverFiles(const FilesSettings& settings,
                                                        std::string_view session);

// "state/a-2026.nettrace: repaired after a crash: 12 events; what is missing is not known from ..."
std::string RecoveryText(const RecoveredFile& file);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_OUTPUT_RECOVER_FILES_H_
