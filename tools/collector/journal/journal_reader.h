// Reads the journal of systemd-journald on a thread, from the time of Open to a requested end.
//
// The reader's thread converts the entries to EventHeader events, and another thread takes them.
// The reader's thread may wait for a disk. Of the functions of JournalReader, only Open and the
// destructor may also wait for a disk. If 16 MiB of entries wait for the other thread, reading
// pauses, and entries that were not read stay in the journal.
//
// The entries of a journal are numbered. If this process may read all files, the reader therefore
// counts the entries that journald deleted before the reader could read them. It also counts the
// messages that journald reports as dropped.
#ifndef TOOLS_COLLECTOR_JOURNAL_JOURNAL_READER_H_
#define TOOLS_COLLECTOR_JOURNAL_JOURNAL_READER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/journal/journal_options.h"

namespace collector {

// An entry, with the losses before it.
struct JournalEntry {
  std::uint64_t timestamp = 0;   // ns of CLOCK_MONOTONIC, when journald received the entry
  std::uint64_t deleted = 0;     // entries before this one that were deleted before they were read
  std::uint64_t suppressed = 0;  // messages that journald dropped before it wrote this entry
  std::uint32_t pid = 0;         // process that wrote it; 0: unknown, as for the kernel
  std::uint8_t level = 0;        // 1 to kJournalLevels; 0: no event, only losses
  bool is_cut = false;           // whether a text was cut
  std::string command;           // name of the process when it wrote the entry; "" if unknown
  std::vector<std::byte> event;  // in the EventHeader format
};

// The state of a recording of the journal besides its entries.
struct JournalReport {
  std::string reason;            // why reading ended before its requested end; "" if it did not
  std::uint64_t other_boot = 0;  // entries left out, because they have no time on this boot's clock
  // Deleted entries that may or may not have been of the units or processes that are recorded.
  std::uint64_t maybe_deleted = 0;
};

// Thread-safe. The destructor ends the thread.
class JournalReader {
 public:
  // Time for which reading continues after RequestStop, in ns, if journald does not confirm that it
  // has written all messages. journald receives a message some time after a process has written it.
  static constexpr std::uint64_t kSettle = 100'000'000;
  // Time between two searches for new entries, in ns.
  static constexpr std::uint64_t kEvery = 50'000'000;

  // Opens the journal, and starts to read entries that are added from now on. Fails if there is no
  // journal, if this process may not read it, or if libsystemd cannot be loaded.
  static absl::StatusOr<std::shared_ptr<JournalReader>> Open(const JournalOptions& options);

  JournalReader() = default;
  JournalReader(const JournalReader&) = delete;
  JournalReader& operator=(const JournalReader&) = delete;
  virtual ~JournalReader() = default;

  virtual pid_t thread_id() const = 0;
  // Returns whether this process may read all files. If not, entries of other users are missing,
  // and deleted entries are not counted.
  virtual bool reads_all() const = 0;
  // Returns the entries that were read since the last call, in the order of the journal.
  virtual std::vector<JournalEntry> Take() = 0;
  // Returns whether there are entries for Take, or the thread still reads.
  virtual bool is_active() const = 0;
  // Makes the thread end when it has read all messages that processes have sent, or after kSettle
  // if journald does not confirm that they are in the journal. Does not wait. Later calls do
  // nothing.
  virtual void RequestStop() = 0;
  virtual JournalReport Report() const = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_JOURNAL_JOURNAL_READER_H_
