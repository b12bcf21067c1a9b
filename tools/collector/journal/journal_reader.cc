#include "tools/collector/journal/journal_reader.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/signals_blocked.h"
#include "tools/base/status_macros.h"
#include "tools/collector/journal/journal_entry.h"
#include "tools/collector/journal/journal_library.h"
#include "tools/collector/journal/journal_sync.h"

namespace collector {
namespace {

// Maximum bytes of the entries that wait for Take.
constexpr std::size_t kMaxWaiting = std::size_t{16} << 20;
// Bytes of a field that the reader needs. If a field is longer, the library may stop decompressing
// it after this number of bytes (sd_journal_set_data_threshold()), or return more.
constexpr std::size_t kMaxData = JournalEntryBuilder::kMaxMessage + 256;
// Maximum number of fields of an entry that are read. journald accepts 1024.
constexpr int kMaxDataFields = 4096;

std::uint64_t Now() { return base::Nanoseconds(base::MonotonicNow()); }

// Identifies an entry: a series of entries, and a number in the series. The cursor of the entry
// states both.
struct EntryNumber {
  std::string series;
  std::uint64_t number = 0;
};

std::optional<EntryNumber> ParseCursor(std::string_view cursor) {
  constexpr std::string_view kSeries = "s=";
  constexpr std::string_view kNumber = ";i=";
  const std::size_t end = cursor.find(kNumber);
  if (cursor.substr(0, kSeries.size()) != kSeries || end == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view number = cursor.substr(end + kNumber.size());
  number = number.substr(0, number.find(';'));
  EntryNumber result = {std::string(cursor.substr(kSeries.size(), end - kSeries.size()))};
  if (!absl::SimpleHexAtoi(std::string(number), &result.number)) return std::nullopt;
  return result;
}

class Reader final : public JournalReader {
 public:
  Reader(JournalOptions options, const JournalLibrary& library, bool reads_all)
      : options_(std::move(options)),
        library_(library),
        reads_all_(reads_all),
        builder_(options_.fields) {}
  ~Reader() override {
    quits_ = true;
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (journal_ != nullptr) library_.close(journal_);
  }

  absl::Status Start();
  pid_t thread_id() const override { return thread_id_; }
  bool reads_all() const override { return reads_all_; }
  std::vector<JournalEntry> Take() override {
    const std::lock_guard lock(mutex_);
    waiting_bytes_ = 0;
    wake_.notify_all();
    return std::exchange(waiting_, {});
  }
  bool is_active() const override {
    const std::lock_guard lock(mutex_);
    return !has_ended_ || !waiting_.empty();
  }
  void RequestStop() override {
    std::uint64_t none = 0;
    stop_requested_.compare_exchange_strong(none, Now());
  }
  JournalReport Report() const override {
    const std::lock_guard lock(mutex_);
    return report_;
  }

 private:
  void Run();
  // Reads the new entries up to the time `last`, in ns. Returns a negative errno if the journal
  // cannot be read, and else 0.
  int ReadEntries(std::uint64_t last);
  // Waits until the entries that wait for Take have less than kMaxWaiting bytes. Returns false if
  // the reader must end.
  bool WaitForSpace();
  // Reads the entry at the current position, unless it is later than `last`. Returns whether it is
  // later.
  bool ReadEntry(std::uint64_t last);
  // Returns how many entries are missing between last_ and the current entry, which becomes last_.
  // Returns 0 if the number is not known.
  std::uint64_t CountDeleted();
  void ReadFields();
  bool IsWanted() const;
  void Add(JournalEntry entry);

  const JournalOptions options_;
  const JournalLibrary library_;
  const bool reads_all_;

  // After Start, only the thread uses these four members.
  sd_journal* journal_ = nullptr;
  sd_id128_t boot_ = {};
  JournalEntryBuilder builder_;
  std::optional<EntryNumber> last_;  // number of the last entry that was read

  std::thread thread_;
  pid_t thread_id_ = 0;
  std::atomic<bool> quits_ = false;
  std::atomic<std::uint64_t> stop_requested_ = 0;  // ns; 0: RequestStop was not called
  mutable std::mutex mutex_;                       // protects all members below
  std::condition_variable wake_;  // notified when `waiting_` has space or quits_ is set
  std::vector<JournalEntry> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool has_ended_ = false;
  JournalReport report_;
};

absl::Status Reader::Start() {
  int result = options_.folder.empty()
                   ? library_.open(&journal_, SD_JOURNAL_LOCAL_ONLY)
                   : library_.open_directory(&journal_, options_.folder.c_str(), 0);
  if (result >= 0) result = library_.get_boot(&boot_);
  if (result >= 0) result = library_.set_data_threshold(journal_, kMaxData);
  // Moves to the last entry, after which reading begins. If there is no entry, moves to the start
  // of the journal.
  if (result >= 0) result = library_.seek_tail(journal_);
  if (result >= 0) result = library_.previous(journal_);
  if (result > 0) CountDeleted();
  if (result == 0) result = library_.seek_head(journal_);
  if (result < 0) {
    return base::ErrnoStatus(-result, "the journal cannot be opened",
                             "check whether journalctl can read it");
  }
  std::promise<pid_t> promise;
  std::future<pid_t> id = promise.get_future();
  const base::SignalsBlocked blocked;
  try {
    thread_ = std::thread([this, promise = std::move(promise)]() mutable {
      promise.set_value(static_cast<pid_t>(syscall(SYS_gettid)));
      Run();
    });
  } catch (const std::system_error& error) {
    return base::ErrnoStatus(error.code().value(), "starting a thread for the journal");
  }
  thread_id_ = id.get();
  return absl::OkStatus();
}

void Reader::Run() {
  constexpr absl::Duration kLongestSync = absl::Seconds(2);
  int result = 0;
  std::uint64_t stop_at = 0;  // ns; later entries are not read; 0: not known yet
  for (bool is_last = false; !is_last && !quits_ && result >= 0;) {
    const std::uint64_t requested = stop_requested_;
    if (requested != 0 && stop_at == 0) {
      stop_at = SynchronizeJournal(kLongestSync) ? Now() : requested + kSettle;
    }
    is_last = stop_at != 0 && Now() >= stop_at;
    // The call also finds new files. Its wait is limited, because the library may announce an entry
    // 0.25 s after the entry can be read.
    result = library_.wait(journal_, is_last ? 0 : kEvery / 1000);
    if (result >= 0) result = ReadEntries(is_last ? stop_at : UINT64_MAX);
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  if (result < 0) {
    report_.reason =
        absl::StrCat("the journal cannot be read: ", std::generic_category().message(-result));
  }
}

int Reader::ReadEntries(std::uint64_t last) {
  while (WaitForSpace()) {
    const int result = library_.next(journal_);
    if (result <= 0) return result;
    if (ReadEntry(last)) break;
  }
  return 0;
}

bool Reader::WaitForSpace() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return quits_ || waiting_bytes_ < kMaxWaiting; });
  return !quits_;
}

bool Reader::ReadEntry(std::uint64_t last) {
  JournalEntry entry;
  std::uint64_t microseconds = 0;
  sd_id128_t boot = {};
  const int result = library_.get_monotonic_usec(journal_, &microseconds, &boot);
  if (result < 0 || std::memcmp(&boot, &boot_, sizeof boot) != 0) {
    CountDeleted();
    const std::lock_guard lock(mutex_);
    ++report_.other_boot;
    return false;
  }
  entry.timestamp = microseconds * 1000;
  if (entry.timestamp > last) return true;
  const std::uint64_t deleted = CountDeleted();
  const bool has_choice = !options_.units.empty() || !options_.pids.empty();
  ReadFields();
  if (!has_choice) {
    entry.deleted = deleted;
  } else if (deleted != 0) {
    const std::lock_guard lock(mutex_);
    report_.maybe_deleted += deleted;
  }
  if (IsWanted()) {
    entry.suppressed = builder_.suppressed();
    entry.pid = builder_.pid();
    entry.level = builder_.level();
    entry.is_cut = builder_.is_cut();
    entry.command = builder_.command();
    entry.event = builder_.MakeEvent();
  }
  if (entry.level != 0 || entry.deleted != 0) Add(std::move(entry));
  return false;
}

std::uint64_t Reader::CountDeleted() {
  char* text = nullptr;
  if (library_.get_cursor(journal_, &text) < 0) return 0;
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  std::optional<EntryNumber> current = ParseCursor(text);
  if (!current) return 0;
  std::uint64_t deleted = 0;
  if (reads_all_ && last_ && last_->series == current->series && last_->number < current->number) {
    deleted = current->number - last_->number - 1;
  }
  last_ = std::move(current);
  return deleted;
}

void Reader::ReadFields() {
  builder_.Begin();
  library_.restart_data(journal_);
  for (int i = 0; i < kMaxDataFields; ++i) {
    const void* data = nullptr;
    std::size_t size = 0;
    // After an error, for example of a damaged file, the event has only the fields that were read
    // before.
    if (library_.enumerate_data(journal_, &data, &size) <= 0) break;
    builder_.Add({static_cast<const char*>(data), size});
  }
}

bool Reader::IsWanted() const {
  const std::vector<pid_t>& pids = options_.pids;
  if (!pids.empty() &&
      std::find(pids.begin(), pids.end(), static_cast<pid_t>(builder_.pid())) == pids.end()) {
    return false;
  }
  return options_.units.empty() ||
         std::any_of(options_.units.begin(), options_.units.end(),
                     [this](const std::string& unit) { return builder_.IsAbout(unit); });
}

void Reader::Add(JournalEntry entry) {
  const std::lock_guard lock(mutex_);
  waiting_bytes_ += sizeof entry + entry.event.size() + entry.command.size();
  waiting_.push_back(std::move(entry));
}

}  // namespace

absl::StatusOr<std::shared_ptr<JournalReader>> JournalReader::Open(const JournalOptions& options) {
  ASSIGN_OR_RETURN(const JournalLibrary library, JournalLibrary::Load());
  ASSIGN_OR_RETURN(const JournalFiles files, FindJournalFiles(options.folder));
  auto reader = std::make_shared<Reader>(options, library, files.unreadable == 0);
  RETURN_IF_ERROR(reader->Start());
  return reader;
}

}  // namespace collector
