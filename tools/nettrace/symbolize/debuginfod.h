// Asks debuginfod servers for debug information, with libdebuginfod of elfutils.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_DEBUGINFOD_H_
#define TOOLS_NETTRACE_SYMBOLIZE_DEBUGINFOD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/elf/elf_file.h"

namespace tools::symbolize {

// A client of the servers in the environment variable DEBUGINFOD_URLS. It keeps what it receives in
// the cache of the user. Not thread-safe; only one object may be in use at a time.
class Debuginfod {
 public:
  // Maximum time of a request, unless the environment variable DEBUGINFOD_TIMEOUT states another
  // time.
  static constexpr absl::Duration kMaxRequest = absl::Seconds(60);
  // An object makes requests only within this time after its creation.
  static constexpr absl::Duration kMaxTotal = absl::Minutes(5);
  // Number of requests that may time out. After that, the object makes no further requests.
  static constexpr int kMaxOverdue = 2;
  // Maximum size of a response, in bytes, unless the environment variable DEBUGINFOD_MAXSIZE states
  // another size. The size is checked once a second, so more bytes may arrive.
  static constexpr std::int64_t kMaxBytes = std::int64_t{4} << 30;

  // Loads the library. Fails if it is not installed, or if the user has named no server.
  static absl::StatusOr<std::unique_ptr<Debuginfod>> Load();
  ~Debuginfod();
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  // Returns the debug information with this build id (bytes, not digits). Fails with NotFound,
  // without a message, if no server has this debug information, or if it has no complete table of
  // symbols. Other errors say what the server did wrong and what to do. Their messages have no
  // subject: the caller puts "the debuginfod server" before them.
  absl::StatusOr<elf::ElfFile> Find(const std::string& build_id);

 private:
  struct Library;

  Debuginfod(std::unique_ptr<Library> library, void* client);

  const std::unique_ptr<Library> library_;
  void* const client_;
  const absl::Duration max_request_;
  const std::int64_t max_bytes_;
  int overdue_ = 0;       // number of requests that timed out
  const absl::Time end_;  // time after which no request is made
};

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_DEBUGINFOD_H_
