// Feeds the entries of the journal (tools/collector/journal/journal_reader.h) to a session of a
// capture.
//
// Output: events of the provider Journal in the order of the journal, on the session's clock, and
// their losses. The thread of an event is the process that wrote the entry. All entries are from
// one capture thread of the file.
#ifndef TOOLS_COLLECTOR_SESSION_JOURNAL_FEED_H_
#define TOOLS_COLLECTOR_SESSION_JOURNAL_FEED_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/journal/journal_entry.h"
#include "tools/collector/journal/journal_reader.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/session_writer.h"
#include "tools/collector/session/stream_feed.h"

namespace collector {

// Names of losses in the account: entries that were deleted before they were read, and messages
// that journald dropped because a service wrote too many.
inline constexpr std::string_view kDeletedEntries = "journal:deleted";
inline constexpr std::string_view kSuppressedMessages = "journal:suppressed";

struct JournalFeedOptions {
  std::shared_ptr<JournalReader> reader;
  SessionWriter* session = nullptr;
  // Start of the session, in ns. Earlier entries are not recorded.
  std::uint64_t start = 0;
  // Whether processes must be read from /proc, because perf does not report them.
  bool reads_processes = false;
  // Applies the kernel's records of threads to the TaskTracker.
  std::function<void()> update_tasks;
};

class JournalFeed final : public StreamFeed {
 public:
  JournalFeed(JournalFeedOptions options, TaskTracker* tasks, Distributor* distributor);
  ~JournalFeed() override;

  const SessionWriter* session() const override { return options_.session; }
  // Returns 0.3 s. journald adds an entry to the journal at once, and the reader finds the entry
  // within JournalReader::kEvery. The rest of the 0.3 s is a margin for busy machines.
  std::uint64_t delay() const override { return 300'000'000; }
  void Receive() override;
  std::uint64_t Drain(std::uint64_t limit, bool is_bounded) override;
  bool IsWorthDraining() const override { return false; }
  bool has_streams() const override { return !waiting_.empty() || options_.reader->is_active(); }
  bool RequestStop() override;
  void Abandon(const std::string& reason) override;

 private:
  static constexpr std::size_t kEventsAtOnce = 8192;
  // If this number of entries waits, further entries stay in the reader, which then pauses.
  static constexpr std::size_t kMaxWaiting = 65'536;
  // Maximum number of processes whose identities are kept.
  static constexpr std::size_t kMaxProcesses = 512;

  struct Process {
    Slot identity;
    std::uint64_t used = 0;  // `uses_` at its last use
  };
  // A capture thread of the file, and the number of its next event or loss.
  struct Thread {
    std::size_t index = 0;
    std::uint64_t number = 0;
  };

  void Pass(const JournalEntry& entry);
  void Lose(Thread* thread, std::string_view name, std::uint64_t count, std::uint64_t until);
  // Returns the identity of the process that wrote the entry.
  Slot FindProcess(const JournalEntry& entry);

  JournalFeedOptions options_;
  TaskTracker* tasks_;
  Distributor* distributor_;
  std::array<int, kJournalLevels> ids_ = {};  // ids of the tracepoints, by level - 1
  Thread thread_;
  // `suppressing_` is the capture thread of the losses that journald reports. It is added at the
  // first of these losses, which sets has_suppressing_. It is separate from thread_, so that the
  // account can distinguish these losses from deleted entries.
  bool has_suppressing_ = false;
  Thread suppressing_;
  std::uint64_t last_;  // ns; time of the last entry, or of the start
  std::deque<JournalEntry> waiting_;
  // The key is the pid and the name of the process when it wrote the entry, because a pid may be
  // used again.
  absl::flat_hash_map<std::pair<std::uint32_t, std::string>, Process> processes_;
  std::uint64_t uses_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_JOURNAL_FEED_H_
