// The names of processes, by what the events of Universal.System say so far.
#ifndef TOOLS_NETTRACE_EXPORT_PROCESS_NAMES_H_
#define TOOLS_NETTRACE_EXPORT_PROCESS_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"

namespace tools::exporting {

class ProcessNames {
 public:
  // Names beyond so many bytes are not kept.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  // To be called with every event of the file, in the order of time.
  void OnEvent(const nettrace::Event& event);
  // Empty if the file has not said it. Valid until the next OnEvent.
  std::string_view NameOf(const nettrace::ThreadInfo& thread) const;

 private:
  void Forget(std::uint64_t pid);

  absl::flat_hash_map<std::uint64_t, std::string> names_;  // by pid
  std::size_t bytes_ = 0;
};

}  // namespace tools::exporting

#endif  // TOOLS_NETTRACE_EXPORT_PROCESS_NAMES_H_
