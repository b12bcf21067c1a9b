// The sink for a trace that is being recorded: a file, standard output or a named pipe.
#ifndef TOOLS_COMMON_OUTPUT_SINK_H_
#define TOOLS_COMMON_OUTPUT_SINK_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"

namespace tools {

inline constexpr char kStandardOutput[] = "-";

// PermissionDenied if what is at `path` might have been put there by another user, for this process
// to write to: a symbolic link, or a pipe in a folder that anybody may write to.
absl::Status CheckNotPlanted(const std::string& path);

// Opens `path`, standard output for "-". CatchSignals must have been called.
//
// A file is created anew with exactly `mode`, in place of a regular file that was there: who has
// that open sees nothing of the trace. AlreadyExists while another process has a file from here
// open: two recordings in one file would destroy each other. A symbolic link is followed if the
// process's user or root made it, and PermissionDenied if not: anybody can plant one in a folder
// that is open to all. What it leads to is emptied, and gets `mode`. A device or pipe is written as
// it is; in a folder that anybody may write to, a pipe must be the process's user's, too.
//
// Opening a named pipe waits for its reader; meanwhile signals end the process. A pipe whose reader
// takes nothing does not keep the process from ending: once it has been asked to, the reader has a
// second more for each write, or until HurryDescriptor is readable, and the first write that it
// does not take fails with Unavailable.
//
// `retry`, which may be empty, is that of FdSink::set_retry for all but pipes: SpaceWait::Wait has
// the sink wait while the disk is full.
absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutputSink(
    const std::string& path, mode_t mode, std::function<bool(int error)> retry = {});

}  // namespace tools

#endif  // TOOLS_COMMON_OUTPUT_SINK_H_
