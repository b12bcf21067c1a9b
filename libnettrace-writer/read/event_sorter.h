// Sorts the events of an interval by time, in bounded memory: what does not fit goes to a temporary
// file in sorted runs, which are merged as the events are taken out.
#ifndef LIBNETTRACE_WRITER_READ_EVENT_SORTER_H_
#define LIBNETTRACE_WRITER_READ_EVENT_SORTER_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libnettrace-writer/read/spill_file.h"
#include "nettrace/reader.h"

namespace nettrace::internal {

// Events of one time come out in the order in which they were added. Each is copied with its
// payload, and V4's and V5's with their labels; all else that it points to must stay until Clear.
class EventSorter {
 public:
  // Keeps about `max_memory` bytes of events, or one event if that is larger, and a quarter of that
  // for reading runs, or 16 KiB for each run if that is more. `directory` is as SpillFile's.
  EventSorter(std::size_t max_memory, std::string directory);

  // Adds a copy of `event`. Error: the temporary file cannot be written; the event was added all
  // the same, but no other must be.
  absl::Status Add(const Event& event);
  // Ends adding.
  void Sort();
  // Copies out the next event, valid until the next call. False if there is none, or if the
  // temporary file cannot be read, as status() says then.
  bool Next(Event* event);
  const absl::Status& status() const { return status_; }
  // Drops all events.
  void Clear();

  // Bytes that were written to the temporary file so far.
  std::uint64_t spilled_bytes() const { return spilled_bytes_; }

 private:
  struct LegacyIds {
    std::optional<Guid> activity_id;
    std::optional<Guid> related_activity_id;
  };
  // The place of a record in memory: an Event, a LegacyIds in V4 and V5, the payload.
  struct Key {
    std::uint64_t timestamp = 0;
    std::uint32_t page = 0;
    std::uint32_t start = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for one with 0.
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Page {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  // A sorted part of the file, and the piece of it that was read: its next record comes first.
  struct Run {
    std::uint64_t next = 0;  // in the file, of what is not in `bytes`
    std::uint64_t end = 0;
    std::vector<std::byte> bytes;
    std::size_t start = 0;
    std::size_t size() const { return bytes.size() - start; }
  };
  // The next event of a run; the events in memory are the run after those in the file.
  struct Head {
    std::uint64_t timestamp = 0;
    std::size_t run = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for one with 0.
    friend auto operator<=>(const Head&, const Head&) = default;
  };

  std::byte* NewRecord(std::uint64_t timestamp, std::size_t size);
  void SortKeys();
  absl::Status Spill();
  std::span<const std::byte> RecordAt(const Key& key) const;
  bool Load(Run* run, std::size_t size);
  bool PushHead(std::size_t run);
  bool TakeFromRun(Run* run, Event* event);
  void TakeHeader(const std::byte* record, Event* event);

  const std::size_t max_memory_;
  SpillFile file_;
  std::vector<Page> pages_;
  std::size_t page_ = 0;          // the one that is filled
  std::size_t page_used_ = 0;     // bytes
  std::size_t record_bytes_ = 0;  // and what was left free at the ends of pages
  std::vector<Key> keys_;
  bool keys_sorted_ = true;
  std::size_t next_key_ = 0;
  std::vector<Run> runs_;
  std::size_t run_buffer_size_ = 0;
  std::vector<Head> heads_;               // a heap, the earliest first
  std::optional<std::size_t> taken_run_;  // whose event was taken out last
  std::vector<std::byte> large_payload_;
  Labels legacy_labels_;
  std::uint64_t spilled_bytes_ = 0;
  absl::Status status_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_EVENT_SORTER_H_
