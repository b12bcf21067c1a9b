// The functions of libsystemd that read the journal. The library is loaded only for recordings with
// entries of the journal, because loading it would delay the start of every `nettrace` command.
#ifndef TOOLS_COLLECTOR_JOURNAL_JOURNAL_LIBRARY_H_
#define TOOLS_COLLECTOR_JOURNAL_JOURNAL_LIBRARY_H_

#include <systemd/sd-journal.h>

#include "absl/status/statusor.h"

namespace collector {

struct JournalLibrary {
  decltype(&sd_journal_open) open = nullptr;
  decltype(&sd_journal_open_directory) open_directory = nullptr;
  decltype(&sd_journal_close) close = nullptr;
  decltype(&sd_journal_set_data_threshold) set_data_threshold = nullptr;
  decltype(&sd_journal_seek_head) seek_head = nullptr;
  decltype(&sd_journal_seek_tail) seek_tail = nullptr;
  decltype(&sd_journal_previous) previous = nullptr;
  decltype(&sd_journal_next) next = nullptr;
  decltype(&sd_journal_wait) wait = nullptr;
  decltype(&sd_journal_get_monotonic_usec) get_monotonic_usec = nullptr;
  decltype(&sd_journal_get_cursor) get_cursor = nullptr;
  decltype(&sd_journal_restart_data) restart_data = nullptr;
  decltype(&sd_journal_enumerate_available_data) enumerate_data = nullptr;
  decltype(&sd_id128_get_boot) get_boot = nullptr;

  // Loads the library, which stays loaded. Fails with Unavailable if it is not installed; the
  // message names the package.
  static absl::StatusOr<JournalLibrary> Load();
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_JOURNAL_JOURNAL_LIBRARY_H_
