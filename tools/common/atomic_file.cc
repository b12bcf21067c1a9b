#include "tools/common/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tools {

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(absl::StrCat(path_, ".", getpid(), ".tmp")) {}

AtomicFile::~AtomicFile() {
  if (created_) unlink(temporary_.c_str());
}

absl::StatusOr<std::unique_ptr<nettrace::FdSink>> AtomicFile::Create() {
  // A device, say /dev/null, would be gone after the rename.
  struct stat facts = {};
  if (stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError("is no regular file, so no file can take its place");
  }
  auto sink = nettrace::FdSink::Create(temporary_);
  created_ = sink.ok();
  return sink;
}

absl::Status AtomicFile::Keep() {
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename to ", path_));
  }
  created_ = false;
  return absl::OkStatus();
}

}  // namespace tools
