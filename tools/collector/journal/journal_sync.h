// Asks systemd-journald to write all messages that it has received to the journal.
#ifndef TOOLS_COLLECTOR_JOURNAL_JOURNAL_SYNC_H_
#define TOOLS_COLLECTOR_JOURNAL_JOURNAL_SYNC_H_

#include "absl/time/time.h"

namespace collector {

// Blocks until all messages that processes have sent are in the journal. Returns false if journald
// does not confirm this within `timeout`, or refuses the request. journald accepts this
// request only from root.
bool SynchronizeJournal(absl::Duration timeout);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_JOURNAL_JOURNAL_SYNC_H_
