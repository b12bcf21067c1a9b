// A file that appears whole or not at all.
#ifndef TOOLS_COMMON_ATOMIC_FILE_H_
#define TOOLS_COMMON_ATOMIC_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"

namespace tools {

// Is written beside `path` and renamed to it by Keep. Without Keep nothing remains of it.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // FailedPrecondition if `path` is there and is no regular file.
  absl::StatusOr<std::unique_ptr<nettrace::FdSink>> Create();
  // Gives the file its name, in place of the one that had it.
  absl::Status Keep();

 private:
  const std::string path_;
  const std::string temporary_;
  bool created_ = false;
};

}  // namespace tools

#endif  // TOOLS_COMMON_ATOMIC_FILE_H_
