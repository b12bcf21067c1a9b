// Tracks the names of processes from the events of Universal.System.
#ifndef TOOLS_TRACE_PROCESS_NAMES_H_
#define TOOLS_TRACE_PROCESS_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"
#include "tools/trace/hosts.h"

namespace trace {

class ProcessNames {
 public:
  // Maximum estimated memory of the names, in bytes. Further names are ignored.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  // Updates the names. Must be called with every event of the file, in order of time.
  void OnEvent(const nettrace::Event& event);
  // Returns the name of the thread's process, or "" if it is unknown. The result is valid until the
  // next OnEvent.
  std::string_view NameOf(const nettrace::ThreadInfo& thread) const;

 private:
  using Key = std::pair<std::size_t, std::uint64_t>;  // number in hosts_, and pid
  void Forget(const Key& key);

  Hosts hosts_;
  absl::flat_hash_map<Key, std::string> names_;
  std::size_t bytes_ = 0;
};

}  // namespace trace

#endif  // TOOLS_TRACE_PROCESS_NAMES_H_
