// The sink for a trace that is being recorded: a file, standard output or a named pipe.
#ifndef TOOLS_CLI_OUTPUT_SINK_H_
#define TOOLS_CLI_OUTPUT_SINK_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"

namespace cli {

inline constexpr char kStandardOutput[] = "-";

// Fails with PermissionDenied if another user may have put `path` there to receive what this
// process writes. This is the case if `path` is a symbolic link, or a pipe in a folder that all
// users may write to, and the link or pipe belongs neither to root nor to the process's user.
absl::Status CheckNotPlanted(const std::string& path);

// Opens `path`, or standard output for "-". CatchSignals must have been called.
//
// Creates a file with exactly `mode` and replaces a regular file at `path`. Processes that have the
// old file open see nothing of the trace. Fails with AlreadyExists while another recording writes
// to the file at `path`, because two recordings in one file would destroy each other. The other
// recording cannot be detected if the file system has no locks, or if a reader has locked the file.
//
// Follows a symbolic link if the process's user or root made it. Fails with PermissionDenied
// otherwise, because any user can make a link in a folder that is open to all. If the target of the
// link is a regular file, it is emptied and gets `mode`. A device or pipe keeps its mode. In a
// folder that all users may write to, a pipe must belong to the process's user or root.
//
// Opening a named pipe waits for its reader; signals end the process during that wait. Fails with
// Cancelled if the process was asked to end before the call. A reader that stops reading does not
// prevent the process from ending. After a request to end, a write waits for the reader at most one
// second, and only until HurryDescriptor is readable. If the reader reads nothing in this time, the
// write fails with Unavailable, and later writes do not wait.
//
// `retry` may be empty. It is passed to FdSink::set_retry, except for pipes, sockets and terminals.
// With SpaceWait::Wait, the sink waits while the disk is full.
absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutputSink(
    const std::string& path, mode_t mode, std::function<bool(int error)> retry = {});

}  // namespace cli

#endif  // TOOLS_CLI_OUTPUT_SINK_H_
