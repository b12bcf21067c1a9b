// The positions of a recording. A position belongs to a thread of a service that passes events
// through a ring in user space. It is the number of the thread's first event that the file may
// lack. After a crash of the collector, the service hands the same memory to the next collector,
// which continues each thread at its position. So no event is missing and none occurs twice.
//
// A file states positions in two ways:
// - The row of a thread whose events come through a ring has the key kRingThreadKey: the region,
//   the ordinal of the writer, and the number and the unit (see below) of the first event or lost
//   event of the row. The events of the row follow it in the file.
// - Events RingPositions of the provider NetTrace.Collector form a record. Each event has the
//   positions of writers of one region. The record is about the events before it in the file.
//
// A *unit* is an event in the file, or a lost event that the sequence numbers show. The units of a
// writer are numbered in each recording. A record states each writer's position, and the number of
// the writer's next unit at that time. The units that follow the record in the file are the events
// from the position on. The next collector skips as many events, because the file has them already.
#ifndef TOOLS_TRACE_RING_POSITIONS_H_
#define TOOLS_TRACE_RING_POSITIONS_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/schema.h"

namespace trace {

// The random bytes that identify the memory of a service.
using RingRegionId = std::array<std::byte, 16>;
// Identifies a writer: a thread of a service, or the signal handlers that interrupt it.
struct RingWriterId {
  RingRegionId region = {};
  std::uint64_t ordinal = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 mistakes this for a comparison with 0.
  friend auto operator<=>(const RingWriterId&, const RingWriterId&) = default;
};

// The point at which the next recording continues with the events of a writer.
struct RingPosition {
  std::uint64_t number = 0;  // number of the writer's first event that the files may lack
  std::uint64_t skip = 0;    // units from `number` on that the files have
  std::uint64_t owed = 0;    // lost events before `number` that the files do not count
  friend bool operator==(const RingPosition&, const RingPosition&) = default;
};
using RingPositions = std::map<RingWriterId, RingPosition>;

// Holds what the files of a recording state at their end.
struct RecordedRings {
  enum class Ending : std::uint8_t {
    // The recording wrote its end mark (EndRecord), or there is no earlier recording. The files
    // lack no events.
    kEnded,
    // The collector was killed, for example. The files may lack events after the positions, if the
    // services have reused the memory of these events. The next recording counts them as lost.
    kInterrupted,
    // The recording was interrupted, and has left no positions. Those in `positions` are of an
    // earlier recording, which ended. Some events after them may have been written between the two
    // recordings, so the next recording states that the number of lost events is unknown.
    kInterruptedEarly,
  };
  RingPositions positions;
  Ending ending = Ending::kEnded;
};

// The position of a writer in a record.
struct RingPositionEntry {
  std::uint64_t number = 0;  // number of the writer's next event
  std::uint64_t units = 0;   // number of the writer's next unit
  // Lost events since the writer's last event or sequence point. `units` includes them, but no
  // sequence number in the file shows them yet.
  std::uint64_t pending = 0;
  std::uint64_t skip = 0;  // rest of RingPosition::skip from the previous recording
  std::uint64_t owed = 0;  // rest of RingPosition::owed from the previous recording
};
using RingRecord = std::map<RingWriterId, RingPositionEntry>;

// Maximum number of writers in a record. The positions of further writers are left out.
inline constexpr std::size_t kMaxRingPositions = 65536;
// Value of RingPositionEntry::units in a record that nettraced has added to a file that it
// repaired. The record already includes all units of the file.
inline constexpr std::uint64_t kAllUnits = std::numeric_limits<std::uint64_t>::max();

inline constexpr std::string_view kRingThreadKey = "NetTrace.Ring";

// Returns the part of the value of kRingThreadKey that identifies the writer: "REGION/ORDINAL".
std::string RingThreadSource(const RingWriterId& writer);
// Returns the value of kRingThreadKey for the row of a thread. `source` is the result of
// RingThreadSource. `units` is the number of the row's first unit, which is an event or a lost
// event. `number` is the number that the writer has given to that event.
std::string RingThreadValue(std::string_view source, std::uint64_t number, std::uint64_t units);

nettrace::EventMetadata RingPositionsMetadata();
// Returns the payloads of the events of a record, at least one.
std::vector<std::vector<std::byte>> RingPositionsPayloads(const RingRecord& record);
// Returns the record that nettraced adds to a file that it repairs.
RingRecord RecordOf(const RecordedRings& recorded);
// Returns the end mark, a record that has no positions and does not change any. A session writes it
// at the end of its last file, after all events.
RingRecord EndRecord();
// Returns whether the event is a part of a record.
bool IsRingPositions(const nettrace::Event& event);

// Determines the positions at the end of a file. Files are untrusted; memory is bounded.
class RingPositionReader {
 public:
  // Must be called with each step of the reader, in file order.
  void Add(const nettrace::Reader& reader, nettrace::Reader::Step step);
  // Returns whether the file has a whole record, or events of a writer. If not, the positions of
  // the previous file of the recording are valid.
  bool HasPositions() const { return has_record_ || !writers_.empty(); }
  RingPositions Positions() const;
  // Returns whether the last whole record has the end mark.
  bool HasEnded() const { return has_ended_; }

 private:
  struct Writer {
    std::optional<RingPositionEntry> entry;
    std::uint64_t units = 0;  // number of the unit after the writer's last unit in the file
  };
  struct Row {
    Writer* writer = nullptr;  // null: not a ring thread
    std::uint64_t units = 0;
  };

  void AddUnits(nettrace::ThreadIndex index, const nettrace::ThreadInfo* thread,
                std::uint64_t count);
  Row& FindRow(nettrace::ThreadIndex index, const nettrace::ThreadInfo* thread);
  void AddRecord(const nettrace::Event& event);

  bool has_record_ = false;
  bool has_ended_ = false;
  std::map<RingWriterId, Writer> writers_;
  std::map<std::uint64_t, Row> rows_;  // by index of the thread; emptied when threads are flushed
  RingRecord record_;                  // positions read so far of a record that is not whole yet
};

}  // namespace trace

#endif  // TOOLS_TRACE_RING_POSITIONS_H_
