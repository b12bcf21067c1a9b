// The hosts of the threads of a file. A file that was merged from several hosts, or from several
// boots of one host, states the host of each thread in the row of the thread.
#ifndef TOOLS_TRACE_HOSTS_H_
#define TOOLS_TRACE_HOSTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/reader.h"

namespace trace {

// Returns the name of the thread's host, or the id of its boot if the thread's row has no name of a
// host. Returns "" if the row has neither.
std::string_view HostNameOf(const nettrace::ThreadInfo& thread);

// Gives each host a number. Two boots of one host have different numbers, because their process ids
// are unrelated.
class Hosts {
 public:
  // Maximum number of hosts that are distinguished. All others share the number kOthers.
  static constexpr std::size_t kMax = 64;
  static constexpr std::size_t kNone = 0;  // threads whose rows state no host
  static constexpr std::size_t kOthers = kMax + 1;

  // Returns the number of the thread's host: kNone if the thread's row states no host, and kOthers
  // for a new host when kMax hosts are known. Adds any other new host.
  std::size_t Add(const nettrace::ThreadInfo& thread);
  // Returns the number of the thread's host: kNone if the thread's row states no host, and kOthers
  // if the host was not added.
  std::size_t Find(const nettrace::ThreadInfo& thread) const;
  // Returns one more than the highest number in use, not counting kOthers.
  std::size_t size() const { return hosts_.size() + 1; }
  // Returns a text for users: the host's name, with the id of its boot if another host has the same
  // name, or only the id of its boot if it has no name. Returns "" for kNone, and "another host"
  // for kOthers.
  std::string TextOf(std::size_t host) const;

 private:
  struct Host {
    std::string name;
    std::string boot;
  };
  std::vector<Host> hosts_;  // number 1 is at index 0
};

}  // namespace trace

#endif  // TOOLS_TRACE_HOSTS_H_
