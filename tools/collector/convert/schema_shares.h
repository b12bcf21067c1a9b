// Limits the number and memory of the schemas that a collector keeps: in total, and for each
// provider, process and user.
//
// Input: schemas and their forms as they are made, used and forgotten, with the process whose event
// needed each. Output: whether a process may make another schema, and which schemas are evicted to
// make room.
//
// A schema counts for the process that wrote the event, not for the process that owns the
// tracepoint. A process that makes new schemas faster than its pace may make no more until it slows
// down. A process or provider over its share loses its least recently used entries. If a user is
// over its share, the user's largest process loses entries. If the total is exceeded, the largest
// process of the largest user loses entries. An evicted schema is made again when it is used.
#ifndef TOOLS_COLLECTOR_CONVERT_SCHEMA_SHARES_H_
#define TOOLS_COLLECTOR_CONVERT_SCHEMA_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace collector {

// Counts schemas and forms, and evicts them. Not thread-safe.
class SchemaShares {
 public:
  struct Bounds {
    std::size_t entries;
    std::size_t bytes;
  };
  // Rate of new entries: `at_once` in a burst, then `per_second`.
  struct Pace {
    double at_once;
    double per_second;
  };
  struct Limits {
    Bounds sum = {16384, std::size_t{24} << 20};
    Bounds provider = {8192, std::size_t{12} << 20};
    Bounds user = {8192, std::size_t{12} << 20};
    Bounds process = {4096, std::size_t{8} << 20};
    Pace user_pace = {8192, 1024};
    Pace process_pace = {4096, 256};
  };

  class Provider;
  // Base class of schemas and forms, which are counted. An entry must be removed before it is
  // destroyed.
  class Entry;
  // Returns the user that a process belongs to, or no value if the process has ended.
  using UserOf = std::function<std::optional<std::uint32_t>(std::uint32_t pid)>;
  // Deletes an entry that has been removed. The function may remove other entries, but must not add
  // any.
  using Evict = std::function<void(Entry*)>;

  SchemaShares(const Limits& limits, Evict evict, UserOf user_of);
  ~SchemaShares();
  SchemaShares(const SchemaShares&) = delete;
  SchemaShares& operator=(const SchemaShares&) = delete;

  // Returns the provider of this name. Names that differ only in case have the same provider,
  // because TraceEvent treats them as one. The provider is destroyed when it has been removed as
  // often as it was added. At that time, it must have no entries.
  Provider* AddProvider(std::string_view name);
  void RemoveProvider(Provider* provider);

  // Returns whether an entry with `metadata_size` bytes of metadata may be added now for the
  // process `pid`. If so, counts the entry towards the pace of the process and of its user. `now`
  // is in ns.
  bool MayAdd(std::uint32_t pid, std::size_t metadata_size, std::uint64_t now);
  // Counts an entry towards the shares of its provider and of the process of the last MayAdd()
  // call. Evicts other entries to make room, but never `keep`.
  void Add(Entry* entry, Provider* provider, std::size_t bytes, const Entry* keep = nullptr);
  // Marks an entry as used. Not every use must be marked; see age().
  void Use(Entry* entry);
  // Removes an entry from the shares. Does nothing if it is not counted.
  void Remove(Entry* entry);

  // Number that changes when entries have been evicted, and after every 1024 new entries. Callers
  // that cache entries must clear the cache when it changes, so that entries in use are marked as
  // used again.
  std::uint64_t age() const { return age_; }

  std::size_t entries() const { return sum_.entries; }
  std::size_t bytes() const { return sum_.bytes; }
  std::size_t providers() const { return providers_.size(); }
  // Number of processes and users that are stored here. It includes processes whose pids now belong
  // to processes of other users.
  std::size_t payers() const { return processes_.size() + former_.size() + users_.size(); }

 private:
  static constexpr std::size_t kEntryWeight = 1536;
  struct Held {
    std::size_t entries = 0;
    std::size_t bytes = 0;
    bool IsOver(const Bounds& bounds) const {
      return entries > bounds.entries || bytes > bounds.bytes;
    }
    // Returns a size in bytes that also counts kEntryWeight bytes for each entry. kEntryWeight is
    // the default Limits::sum.bytes divided by Limits::sum.entries.
    std::size_t weight() const { return entries * kEntryWeight + bytes; }
    void Add(std::size_t more) { ++entries, bytes += more; }
    void Remove(std::size_t less) { --entries, bytes -= less; }
  };
  // The number of entries that a process or user may still add. It grows with time (see Pace).
  struct Purse {
    double left;
    std::uint64_t filled = 0;  // ns, time of the last Fill()
    void Fill(const Pace& pace, std::uint64_t now);
  };
  struct User {
    Held held;
    Purse purse;
    std::size_t processes = 0;
  };
  struct Process;

  // Entries, the most recently used first.
  using Entries = std::list<Entry*>;

  Process* ProcessOf(std::uint32_t pid, std::uint64_t now);
  void DropIdle(std::uint64_t now);
  bool IsIdle(Process* process, std::uint64_t now) const;
  // Entries that must not be evicted: the one being added, and one that the caller names.
  struct Kept {
    const Entry* added;
    const Entry* other;
    bool Has(const Entry* entry) const { return entry == added || entry == other; }
    std::size_t Of(const Process* process) const;
  };
  // Returns the largest process that has entries to evict: of `user`, or of the largest user if
  // `user` is null. Returns null if no process has any.
  Process* Largest(const User* user, const Kept& kept) const;
  // Evicts the least recently used of `entries` until `held` is at most 15/16 of `bounds`, or only
  // entries of `kept` are left.
  void EvictOldest(const Entries& entries, const Held& held, const Bounds& bounds,
                   const Kept& kept);

  const Limits limits_;
  const Evict evict_;
  const UserOf user_of_;
  Held sum_;
  std::unordered_map<std::string, std::unique_ptr<Provider>> providers_;    // by upper-case name
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Process>> processes_;  // by pid
  // Processes whose pids now belong to processes of other users.
  std::vector<std::unique_ptr<Process>> former_;
  absl::flat_hash_map<std::optional<std::uint32_t>, std::unique_ptr<User>> users_;
  Process* payer_ = nullptr;  // process of the last MayAdd() call
  std::size_t drop_idle_at_ = 1024;
  std::size_t added_since_age_ = 0;
  std::uint64_t age_ = 0;
};

class SchemaShares::Entry {
 public:
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 protected:
  ~Entry() = default;

 private:
  friend class SchemaShares;
  Process* process_ = nullptr;  // null: the entry is not counted
  Provider* provider_ = nullptr;
  std::size_t bytes_ = 0;
  Entries::iterator of_process_;
  Entries::iterator of_provider_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_SCHEMA_SHARES_H_
