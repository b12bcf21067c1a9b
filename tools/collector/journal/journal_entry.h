// Converts entries of the journal to EventHeader events, in bounded memory. The fields of an entry
// may be of any length and have any bytes, because every user can write entries.
#ifndef TOOLS_COLLECTOR_JOURNAL_JOURNAL_ENTRY_H_
#define TOOLS_COLLECTOR_JOURNAL_JOURNAL_ENTRY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collector {

// The provider, and the name of its events.
inline constexpr char kJournalProvider[] = "Journal";
inline constexpr char kJournalEvent[] = "Entry";
// Number of levels. Events of level N have the tracepoint name Journal_LNK1.
inline constexpr std::uint8_t kJournalLevels = 5;

// Returns the level of an entry with this PRIORITY, which is "0" to "7". Returns 4 (information)
// for any other text.
std::uint8_t JournalLevel(std::string_view priority);

// Collects the fields of one entry after another. Not thread-safe.
class JournalEntryBuilder {
 public:
  // Maximum bytes of the message, of each other fixed text field, and of each further field. An
  // event with the longest fields still fits into a file, where a byte of text can take two bytes.
  static constexpr std::size_t kMaxMessage = std::size_t{16} << 10;
  static constexpr std::size_t kMaxText = 512;
  static constexpr std::size_t kMaxField = 1024;
  // Appended to a text that was cut.
  static constexpr char kCut[] = " [cut]";

  // `fields` are the names of further fields that each event gets.
  explicit JournalEntryBuilder(const std::vector<std::string>& fields);

  // Begins the next entry.
  void Begin();
  // Adds a field, given as "NAME=value". The first value of a name is used.
  void Add(std::string_view field);

  // The following functions describe the current entry. pid() returns 0 if the entry has no _PID,
  // and command() returns "" if it has no _COMM.
  std::uint8_t level() const { return JournalLevel(values_[kPriority].text); }
  std::uint32_t pid() const;
  const std::string& command() const { return values_[kCommand].text; }
  // Returns whether the entry is about the unit. This means that the unit wrote it, or that systemd
  // or another process of root wrote it about the unit.
  bool IsAbout(std::string_view unit) const;
  // Returns the number of messages that journald reports as dropped in this entry, because their
  // service wrote too many.
  std::uint64_t suppressed() const;
  // Returns whether a text was cut.
  bool is_cut() const;
  // Returns the EventHeader event.
  std::vector<std::byte> MakeEvent() const;

 private:
  enum Index : std::uint8_t {
    kMessage,
    kUnit,
    kIdentifier,
    kPid,
    kPriority,
    kCodeFile,
    kCodeLine,
    kCodeFunction,
    kCommand,
    kUserUnit,
    kManagedUnit,
    kObjectUnit,
    kCoredumpUnit,
    kUser,
    kTransport,
    kDropped,
    kFixedFields,
  };
  struct Value {
    std::string name;
    std::size_t max = 0;  // bytes of `text`
    bool is_set = false;
    bool is_cut = false;
    std::string text = {};
  };

  std::vector<Value> values_;  // by Index, then the further fields
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_JOURNAL_JOURNAL_ENTRY_H_
