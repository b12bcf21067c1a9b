// Where `nettrace ship` sends requests: the URL, and the headers that contain credentials.
#ifndef TOOLS_NETTRACE_SHIP_DESTINATION_H_
#define TOOLS_NETTRACE_SHIP_DESTINATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nettrace/export/otlp/log_encoder.h"

namespace tools::ship {

// Returns the URL to which records are sent. A URL without a path, such as http://host:4318, gets
// the path /v1/logs or /v1/traces. Fails with InvalidArgument, and a remedy, if the text is not a
// URL of HTTP. Also fails if it may contain credentials, because other users can see the command
// line of a process.
absl::StatusOr<std::string> ReceiverUrl(std::string_view text, otlp::Signal signal);
inline absl::StatusOr<std::string> LogsUrl(std::string_view text) {
  return ReceiverUrl(text, otlp::Signal::kLogs);
}
// Returns the URL of spans for a URL of logs that ReceiverUrl has returned: replaces /v1/logs at
// the end by /v1/traces. Fails with InvalidArgument if the path does not end with /v1/logs.
absl::StatusOr<std::string> TracesUrl(std::string_view logs);

// Reads headers from the contents of a file: lines of the form "Name: value". Empty lines and lines
// that begin with # are ignored. Fails with InvalidArgument, and the number of the line. The
// message has no part of the line, because it may be a secret.
absl::StatusOr<std::vector<std::string>> ParseHeaders(std::string_view text);

// Reads the headers from the file at `path`. Errors name the file.
absl::StatusOr<std::vector<std::string>> ReadHeaders(const std::string& path);

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_DESTINATION_H_
