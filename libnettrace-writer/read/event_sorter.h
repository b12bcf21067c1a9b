// Sorts the events of an interval by time, in bounded memory. Events that do not fit go to a
// temporary file in sorted runs, which are merged when the events are taken out.
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

// Sorts events by time. Events with equal times keep the order in which they were added. Each event
// is copied with its payload, and in V4 and V5 with its labels. Everything else that an event
// points to must stay valid until Clear().
class EventSorter {
 public:
  // Keeps at most about `max_memory` bytes of events in memory, but at least one event. Reading the
  // runs needs additional memory: up to a quarter of `max_memory`, or 16 KiB for each run if that
  // is more.
  // `directory` is passed to SpillFile.
  EventSorter(std::size_t max_memory, std::string directory);

  // Adds a copy of `event`. Returns an error if the temporary file cannot be written; `event` is
  // kept in memory, but Add() must not be called again.
  absl::Status Add(const Event& event);
  // Sorts the events. Must be called once, after the last Add() and before the first Next(). If the
  // temporary file cannot be read, Next() returns false, and status() is the error.
  void Sort();
  // Copies the next event to `event`. Its payload is valid until the next call. Returns false if
  // there is no further event, or if the temporary file cannot be read; status() is then the error.
  bool Next(Event* event);
  const absl::Status& status() const { return status_; }
  // Removes all events.
  void Clear();

  // Returns the bytes written to the temporary file so far.
  std::uint64_t spilled_bytes() const { return spilled_bytes_; }

 private:
  struct LegacyIds {
    std::optional<Guid> activity_id;
    std::optional<Guid> related_activity_id;
  };
  // The position of a record in memory. A record consists of an Event, a LegacyIds (V4 and V5 only)
  // and the payload.
  struct Key {
    std::uint64_t timestamp = 0;
    std::uint32_t page = 0;
    std::uint32_t start = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes this for a comparison with 0.
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Page {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;
  };
  // A sorted part of the temporary file. `bytes` holds data that was read from it; the next record
  // begins at bytes[start].
  struct Run {
    std::uint64_t next = 0;  // offset in the file of the first byte that is not read yet
    std::uint64_t end = 0;
    std::vector<std::byte> bytes;
    std::size_t start = 0;
    std::size_t size() const { return bytes.size() - start; }
  };
  // The next event of runs_[`run`]; if `run` is runs_.size(), the next event in memory.
  struct Head {
    std::uint64_t timestamp = 0;
    std::size_t run = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes this for a comparison with 0.
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
  std::size_t page_ = 0;          // index in pages_ of the page that is being filled
  std::size_t page_used_ = 0;     // bytes used of that page
  std::size_t record_bytes_ = 0;  // bytes of records, and of the free ends of full pages
  std::vector<Key> keys_;
  bool keys_sorted_ = true;
  std::size_t next_key_ = 0;
  std::vector<Run> runs_;
  std::size_t run_buffer_size_ = 0;
  std::vector<Head> heads_;               // a heap, earliest first
  std::optional<std::size_t> taken_run_;  // the run whose event was taken last
  std::vector<std::byte> large_payload_;
  Labels legacy_labels_;
  std::uint64_t spilled_bytes_ = 0;
  absl::Status status_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_READ_EVENT_SORTER_H_
