// The sink for a trace that is being recorded: a file, standard output or a named pipe.
#ifndef TOOLS_COMMON_OUTPUT_SINK_H_
#define TOOLS_COMMON_OUTPUT_SINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nettrace/sink.h"

namespace tools {

inline constexpr char kStandardOutput[] = "-";

// Opens `path`, standard output for "-". Opening a named pipe waits for its reader; meanwhile
// signals that are blocked may end the process.
//
// A pipe whose reader takes nothing does not keep the process from ending: once SIGINT or SIGTERM,
// which must be blocked, is pending, the reader has a second more for each write, and the first one
// that it does not take fails with Unavailable.
absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutputSink(const std::string& path);

}  // namespace tools

#endif  // TOOLS_COMMON_OUTPUT_SINK_H_
