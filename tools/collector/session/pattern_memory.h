// Keeps a file of the EventHeader tracepoints that have matched patterns, for the next run of the
// collector. When a session begins, the collector registers these tracepoints again, so that they
// exist and are recorded before their service writes its first event.
//
// Input: names that services register, and the file of an earlier run, which may be damaged or
// forged. Output: a bounded number of names. If there are too many, those without events are
// removed first, then those that were matched or used least recently. Each provider has a limited
// share, so a provider that makes ever more names displaces only its own names.
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

// A set of tracepoint names in the order of their last use. Thread-safe, because all captures of a
// process share one object.
class PatternMemory {
 public:
  static constexpr std::size_t kMaxNames = 4096;
  // Each provider may have 1/kShares of the maximum number of names, and at least one name.
  static constexpr std::size_t kShares = 16;

  explicit PatternMemory(std::size_t max_names = kMaxNames);

  // Adds the names in the file at `path`, which Save has written. Returns the number of lines that
  // were ignored, because the name is invalid or a duplicate, or because there are too many names.
  // Returns 0 if the file does not exist, and fails if it cannot be read.
  absl::StatusOr<std::size_t> Load(const std::string& path);
  // Writes the file if something has changed since Load or the last Save. Replaces it atomically,
  // and waits until the disk has stored it. After an error, the next Save tries again.
  absl::Status Save(const std::string& path);
  // Do the work of Load and Save, with a text in place of the file.
  std::size_t Parse(std::string_view text);
  std::string ToText() const;

  // Adds `name`, which has matched a pattern. Returns true if it is the name of an EventHeader
  // tracepoint and is new.
  bool Meet(std::string_view name);
  // Marks a tracepoint as used: it has had events. Ignores names that are not stored.
  void Use(std::string_view name);
  // Returns the names. The name that was added or used last comes first.
  std::vector<std::string> ListNames() const;

 private:
  struct Entry {
    std::string name;
    std::string provider;
    bool used = false;
  };
  using Entries = std::list<Entry>;  // in the order of ListNames

  // Adds the name at the end of the list. Returns false if the name is invalid or already in the
  // list, or if the list or the share of its provider is full.
  bool Append(std::string_view name, bool used);
  bool IsFull(const std::string& provider) const;
  // Removes the last name in the list that has had no events; if there is none, the last name.
  // Considers only names of the provider if its share is used up.
  void ForgetOne(const std::string& provider);
  void Index(Entries::iterator entry);
  std::string ToTextLocked() const;

  const std::size_t max_names_;
  mutable std::mutex mutex_;  // protects all members below
  Entries entries_;
  absl::flat_hash_map<std::string, Entries::iterator> by_name_;
  absl::flat_hash_map<std::string, std::size_t> of_provider_;
  bool changed_ = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_PATTERN_MEMORY_H_
