// Who pays for the schemas that a collector keeps: bounds on what all of them may cost, and on what
// one provider, one process and one user may have of that.
//
// In: schemas and their forms as they are made, used and forgotten, with the process whose event
// made each. Out: whether a process may have another one made, and which ones go to make room.
//
// A kind of event costs its author, which is the process that wrote it, not the one that owns the
// tracepoint. A process that makes new kinds faster than its pace has the rest of them refused for
// as long as it does. Who is over a share loses what it has not used for the longest time; when all
// are over the sum, the largest process of the largest user does. What is used again is made again.
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

// Not thread-safe.
class SchemaShares {
 public:
  struct Bounds {
    std::size_t entries;
    std::size_t bytes;
  };
  // New entries: so many at once, and so many a second from then on.
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
  // What is paid for: a base of schemas and forms. It must be removed before it ends.
  class Entry;
  // The user that a process belongs to; nullopt if it is gone.
  using UserOf = std::function<std::optional<std::uint32_t>(std::uint32_t pid)>;
  // Forgets an entry that has been removed. It may remove others, and must not add any.
  using Evict = std::function<void(Entry*)>;

  SchemaShares(const Limits& limits, Evict evict, UserOf user_of);
  ~SchemaShares();
  SchemaShares(const SchemaShares&) = delete;
  SchemaShares& operator=(const SchemaShares&) = delete;

  // The provider of this name, whatever its case: to TraceEvent such names are one provider's.
  // Lives until it has been removed as often as it was added; then it has no entries any more.
  Provider* AddProvider(std::string_view name);
  void RemoveProvider(Provider* provider);

  // Whether the process `pid` may have an entry made now, from metadata of this size. If so, that
  // is counted towards its pace. `now`: the time in ns.
  bool MayAdd(std::uint32_t pid, std::size_t metadata_size, std::uint64_t now);
  // Counts an entry towards the shares of its provider, and of the process that MayAdd was asked
  // about last, and evicts others to make room; never `keep`.
  void Add(Entry* entry, Provider* provider, std::size_t bytes, const Entry* keep = nullptr);
  // The entry is used. It need not be told every time: see age().
  void Use(Entry* entry);
  // The entry is no more. Nothing happens if it is not counted.
  void Remove(Entry* entry);

  // Changes when entries have been evicted, and now and then. Who remembers entries, and does not
  // tell of their use, is to forget them all then: those in use are told of once more.
  std::uint64_t age() const { return age_; }

  std::size_t entries() const { return sum_.entries; }
  std::size_t bytes() const { return sum_.bytes; }
  std::size_t providers() const { return providers_.size(); }
  // Processes and users about which something is known.
  std::size_t payers() const { return processes_.size() + former_.size() + users_.size(); }

 private:
  static constexpr std::size_t kEntryWeight = 1536;
  struct Held {
    std::size_t entries = 0;
    std::size_t bytes = 0;
    bool IsOver(const Bounds& bounds) const {
      return entries > bounds.entries || bytes > bounds.bytes;
    }
    // In bytes; an entry counts as the sum's bounds have it.
    std::size_t weight() const { return entries * kEntryWeight + bytes; }
    void Add(std::size_t more) { ++entries, bytes += more; }
    void Remove(std::size_t less) { --entries, bytes -= less; }
  };
  // What is left of a pace.
  struct Purse {
    double left;
    std::uint64_t filled = 0;  // ns
    void Fill(const Pace& pace, std::uint64_t now);
  };
  struct User {
    Held held;
    Purse purse;
    std::size_t processes = 0;
  };
  struct Process;

  // Those that were used last come first.
  using Entries = std::list<Entry*>;

  Process* ProcessOf(std::uint32_t pid, std::uint64_t now);
  void DropIdle(std::uint64_t now);
  bool IsIdle(Process* process, std::uint64_t now) const;
  // Entries that are not to be evicted: the one that is being added, and one of the caller's.
  struct Kept {
    const Entry* added;
    const Entry* other;
    bool Has(const Entry* entry) const { return entry == added || entry == other; }
    std::size_t Of(const Process* process) const;
  };
  // The largest process of the largest user, or of `user` if it is not null, of those that have
  // something to evict; null if none has.
  Process* Largest(const User* user, const Kept& kept) const;
  // Evicts of `entries` what was not used for the longest time, until `held` is well below its
  // bounds.
  void EvictOldest(const Entries& entries, const Held& held, const Bounds& bounds,
                   const Kept& kept);

  const Limits limits_;
  const Evict evict_;
  const UserOf user_of_;
  Held sum_;
  std::unordered_map<std::string, std::unique_ptr<Provider>> providers_;    // by upper-case name
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Process>> processes_;  // by pid
  std::vector<std::unique_ptr<Process>> former_;  // whose pid belongs to another user now
  absl::flat_hash_map<std::optional<std::uint32_t>, std::unique_ptr<User>> users_;
  Process* payer_ = nullptr;  // that MayAdd was asked about
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
  Process* process_ = nullptr;  // null: it is not counted
  Provider* provider_ = nullptr;
  std::size_t bytes_ = 0;
  Entries::iterator of_process_;
  Entries::iterator of_provider_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_SCHEMA_SHARES_H_
