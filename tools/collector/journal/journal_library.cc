#include "tools/collector/journal/journal_library.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/base/shared_library.h"

namespace collector {
absl::StatusOr<JournalLibrary> JournalLibrary::Load() {
  void* const library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = dlerror();
    return absl::UnavailableError(
        absl::StrCat("libsystemd cannot be loaded: ", reason == nullptr ? "unknown error" : reason,
                     "; install the package libsystemd0"));
  }
  JournalLibrary functions;
  const bool found =
      base::FindFunction(library, "sd_journal_open", &functions.open) &&
      base::FindFunction(library, "sd_journal_open_directory", &functions.open_directory) &&
      base::FindFunction(library, "sd_journal_close", &functions.close) &&
      base::FindFunction(library, "sd_journal_set_data_threshold", &functions.set_data_threshold) &&
      base::FindFunction(library, "sd_journal_seek_head", &functions.seek_head) &&
      base::FindFunction(library, "sd_journal_seek_tail", &functions.seek_tail) &&
      base::FindFunction(library, "sd_journal_previous", &functions.previous) &&
      base::FindFunction(library, "sd_journal_next", &functions.next) &&
      base::FindFunction(library, "sd_journal_wait", &functions.wait) &&
      base::FindFunction(library, "sd_journal_get_monotonic_usec", &functions.get_monotonic_usec) &&
      base::FindFunction(library, "sd_journal_get_cursor", &functions.get_cursor) &&
      base::FindFunction(library, "sd_journal_restart_data", &functions.restart_data) &&
      base::FindFunction(library, "sd_journal_enumerate_available_data",
                         &functions.enumerate_data) &&
      base::FindFunction(library, "sd_id128_get_boot", &functions.get_boot);
  if (!found) {
    return absl::UnavailableError(
        "libsystemd is too old to read the journal; install version 246 or later");
  }
  return functions;
}

}  // namespace collector
