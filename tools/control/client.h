// Calls methods of the daemon over a connection to its control socket.
#ifndef TOOLS_CONTROL_CLIENT_H_
#define TOOLS_CONTROL_CLIENT_H_

#include <rapidjson/document.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"

namespace control {

// A connection to the control socket. Must be used by only one thread at a time.
class ControlClient {
 public:
  // Connects to the socket at `path`. Fails with NotFound if no daemon serves it, with
  // PermissionDenied if the user may not connect, and with InvalidArgument if the path is too long.
  // Connect and each call fail with DeadlineExceeded if the daemon accepts no connection, takes no
  // bytes or sends no bytes for `patience`.
  static absl::StatusOr<ControlClient> Connect(const std::string& path,
                                               absl::Duration patience = absl::InfiniteDuration());

  // Calls a method of kControlInterface. `parameters` is a JSON object. Returns the parameters of
  // the reply as an object. Fails with the daemon's error, or if no valid reply arrives.
  absl::StatusOr<rapidjson::Document> Call(std::string_view method, std::string_view parameters);
  // Calls a method after which the connection carries a stream of bytes instead of messages.
  // Returns the socket. Sets `*rest` to the bytes of the stream that arrived together with the
  // reply. Fails like Call. This object must not be used afterwards.
  absl::StatusOr<base::UniqueFd> Upgrade(std::string_view method, std::string_view parameters,
                                         std::string* rest) &&;

 private:
  explicit ControlClient(base::UniqueFd socket) : socket_(std::move(socket)) {}

  absl::StatusOr<rapidjson::Document> Exchange(std::string_view method, std::string_view parameters,
                                               const char* flags);
  absl::StatusOr<std::string> Receive();

  base::UniqueFd socket_;
  std::string received_;  // bytes that arrived after the last message that Receive returned
};

}  // namespace control

#endif  // TOOLS_CONTROL_CLIENT_H_
