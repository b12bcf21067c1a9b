// Stores what `nettrace ship` has sent, in a file that is replaced after each answer.
#ifndef TOOLS_NETTRACE_SHIP_POSITION_H_
#define TOOLS_NETTRACE_SHIP_POSITION_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"

namespace tools::ship {

// A file of events.
struct ShippedFile {
  std::int64_t changed = 0;   // time of its last modification, in ns since 1970
  std::uint64_t records = 0;  // records of the file that need not be sent again
  std::uint64_t events = 0;   // events and losses that these records represent
  std::uint64_t spans = 0;    // spans of the file that need not be sent again
  bool is_complete = false;   // whether all records were sent
  friend bool operator==(const ShippedFile&, const ShippedFile&) = default;
};

// How far a series of files (NameTime::series) was sent. The numbers are those at the end of the
// last file that was sent, and come from the account (tools/trace/account.h) in that file.
struct ShippedSection {
  std::uint64_t number = 0;  // number of the last section in the file
  std::uint64_t events = 0;  // events and losses up to the end of the file
  friend bool operator==(const ShippedSection&, const ShippedSection&) = default;
};

// A file, or several files, that were deleted before all of their events were sent. The entry is
// kept until the receiver has accepted a record that reports the deletion.
struct DeletedFile {
  std::string path;          // path of the file; of the last one, if there are several
  std::int64_t changed = 0;  // like ShippedFile::changed
  std::uint64_t files = 1;
  friend bool operator==(const DeletedFile&, const DeletedFile&) = default;
};

struct ShipTotals {
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t refused = 0;
  std::uint64_t lost_files = 0;
  std::uint64_t missing_sections = 0;
  std::uint64_t missing_events = 0;
  std::uint64_t spans = 0;  // spans that were accepted
  std::uint64_t refused_spans = 0;
  friend bool operator==(const ShipTotals&, const ShipTotals&) = default;
};

struct Position {
  std::map<std::string, ShippedFile> files;        // by absolute path
  std::map<std::string, ShippedSection> sections;  // by path, with {time} in place of the time
  std::vector<DeletedFile> deleted;
  ShipTotals totals;  // since the state file was created

  // Parses the contents of a file, which are untrusted. Fails with DataLoss if they are not valid.
  static absl::StatusOr<Position> FromText(std::string_view text);
  std::string ToText() const;

  // Removes a file that was deleted before all of it was sent, and adds it to `deleted`. Adds the
  // number of its events that were sent to ShippedSection::events of `series`, so that Shipper does
  // not count them as missing. `series` is NameTime::series of the file; "" if it has none.
  void Delete(const std::string& path, const std::string& series);

  static constexpr std::size_t kMaxDeleted = 1000;

  friend bool operator==(const Position&, const Position&) = default;
};

// The file of a position. While an object has it open, no other process can open it.
class PositionFile {
 public:
  // Locks the file PATH.lock, which it creates, and reads the position. The position is empty if
  // the file does not exist. Fails with FailedPrecondition if another process has the lock. Errors
  // name the file.
  static absl::StatusOr<PositionFile> Open(const std::string& path);

  // Replaces the file. It appears whole, even if the process is killed.
  absl::Status Save() const;

  Position position;

 private:
  explicit PositionFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  base::UniqueFd lock_;
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_POSITION_H_
