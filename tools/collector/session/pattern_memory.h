// The EventHeader tracepoints that patterns have met, kept in a file from one run of the collector
// to the next: registered again when a session begins, each is there, and recorded, before the
// first event of the service that writes to it.
//
// In: names, as services register them, and what an earlier run left, which may be damaged or
// forged. Out: the names, in bounded number. Where there are too many, those go first that never
// had an event, then those that were met or had events the longest time ago; and no provider has
// more than its share, so that one that makes ever new names forgets its own.
#ifndef TOOLS_COLLECTOR_SESSION_PATTERN_MEMORY_H_
#define TOOLS_COLLECTOR_SESSION_PATTERN_MEMORY_H_

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace collector {

// Thread-safe: the captures of a process share one.
class PatternMemory {
 public:
  static constexpr std::size_t kMaxNames = 4096;
  // A provider has one of so many parts of the names.
  static constexpr std::size_t kShares = 16;

  explicit PatternMemory(std::size_t max_names = kMaxNames);

  // Adds what Save has written to the file at `path`, if there is one. Returns how many lines of it
  // were no names, or too many.
  absl::StatusOr<std::size_t> Load(const std::string& path);
  // Writes the file, which appears whole, if something has changed since Load or the last Save.
  // Waits for the disk.
  absl::Status Save(const std::string& path);
  // Load and Save, but for the file.
  std::size_t Parse(std::string_view text);
  std::string Text() const;

  // A pattern has met `name`. True if it is an EventHeader tracepoint's and was not remembered.
  bool Meet(std::string_view name);
  // The tracepoint has had events. Others than those that are remembered are ignored.
  void Use(std::string_view name);
  // The last one that was met or used comes first.
  std::vector<std::string> Names() const;

 private:
  struct Entry {
    std::string name;
    std::string provider;
    bool used = false;
  };
  using Entries = std::list<Entry>;  // in the order of Names

  // Puts it at the end, unless it is there, or there are too many.
  bool Append(std::string_view name, bool used);
  bool IsFull(const std::string& provider) const;
  // Of those of the provider, or of all if that has room for more, the one that goes first.
  void ForgetOne(const std::string& provider);
  void Index(Entries::iterator entry);
  std::string TextLocked() const;

  const std::size_t max_names_;
  mutable std::mutex mutex_;  // for all below
  Entries entries_;
  absl::flat_hash_map<std::string, Entries::iterator> by_name_;
  absl::flat_hash_map<std::string, std::size_t> of_provider_;
  bool changed_ = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_PATTERN_MEMORY_H_
