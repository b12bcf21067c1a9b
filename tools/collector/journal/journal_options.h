// Which entries of the journal a session records, and where the journal is.
#ifndef TOOLS_COLLECTOR_JOURNAL_JOURNAL_OPTIONS_H_
#define TOOLS_COLLECTOR_JOURNAL_JOURNAL_OPTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace collector {

struct JournalOptions {
  // Maximum number of `units` and of `fields`.
  static constexpr std::size_t kMaxUnits = 64;
  static constexpr std::size_t kMaxFields = 8;

  std::vector<std::string> units;   // units whose entries are recorded; none: all entries
  std::vector<std::string> fields;  // further fields of each event, such as "MESSAGE_ID"
  std::vector<pid_t> pids;          // processes whose entries are recorded; none: all processes
  std::string folder;  // folder of the journal's files; "": the journal of this machine
};

// Parses names of units that are separated by commas. A name without a type gets ".service". Fails
// with InvalidArgument if a name is not a valid name of a unit, or if there are more than
// JournalOptions::kMaxUnits names.
absl::StatusOr<std::vector<std::string>> ParseJournalUnits(const std::string& text);
// Parses names of fields that are separated by commas, and removes duplicates. Fails with
// InvalidArgument if a name is not a valid name of a field of the journal, or if there are more
// than JournalOptions::kMaxFields names.
absl::StatusOr<std::vector<std::string>> ParseJournalFields(const std::string& text);

// Numbers of the files of a journal.
struct JournalFiles {
  std::size_t readable = 0;
  std::size_t unreadable = 0;  // files that this process has no right to read
};

// Counts the journal files in `folder`, or in the folders of this machine's journal if `folder` is
// "". Fails if there are none, or if this process may read none of them.
absl::StatusOr<JournalFiles> FindJournalFiles(const std::string& folder);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_JOURNAL_JOURNAL_OPTIONS_H_
