// Asks debuginfod servers for debug information, with libdebuginfod of elfutils.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_DEBUGINFOD_H_
#define TOOLS_NETTRACE_SYMBOLIZE_DEBUGINFOD_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/elf/elf_file.h"

namespace tools::symbolize {

// A client of the servers in the environment variable DEBUGINFOD_URLS. It keeps what it receives in
// the cache of the user. Not thread-safe; only one object may be in use at a time.
class Debuginfod {
 public:
  // Maximum time of a request, and of all requests of an object together.
  static constexpr absl::Duration kMaxRequest = absl::Seconds(60);
  static constexpr absl::Duration kMaxTotal = absl::Minutes(5);

  // Loads the library. Fails if it is not installed, or if the user has named no server.
  static absl::StatusOr<std::unique_ptr<Debuginfod>> Load();
  ~Debuginfod();
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  // Returns the debug information with this build id (bytes, not digits), if a server has it and it
  // has a complete table of symbols.
  std::optional<elf::ElfFile> Find(const std::string& build_id) const;

 private:
  struct Library;

  Debuginfod(std::unique_ptr<Library> library, void* client);

  const std::unique_ptr<Library> library_;
  void* const client_;
  const absl::Time end_;  // end of the time for all requests
};

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_DEBUGINFOD_H_
