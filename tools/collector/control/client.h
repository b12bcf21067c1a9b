// A connection to the control socket.
#ifndef TOOLS_COLLECTOR_CONTROL_CLIENT_H_
#define TOOLS_COLLECTOR_CONTROL_CLIENT_H_

#include <rapidjson/document.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

// Used by one thread at a time.
class ControlClient {
 public:
  // NotFound if nobody serves `path`, PermissionDenied if the user may not connect. This and each
  // call is DeadlineExceeded if the daemon does nothing for as long as `patience`.
  static absl::StatusOr<ControlClient> Connect(const std::string& path,
                                               absl::Duration patience = absl::InfiniteDuration());

  // Calls the method of kControlInterface. `parameters` is a JSON object. Returns the object that
  // has the reply's parameters, or the error that the daemon replies.
  absl::StatusOr<rapidjson::Document> Call(std::string_view method, std::string_view parameters);
  // Calls a method after whose reply the connection has something else than messages. `rest`
  // becomes what of that has come already; more comes from the socket.
  absl::StatusOr<UniqueFd> Upgrade(std::string_view method, std::string_view parameters,
                                   std::string* rest) &&;

 private:
  explicit ControlClient(UniqueFd socket) : socket_(std::move(socket)) {}

  absl::StatusOr<rapidjson::Document> Exchange(std::string_view method, std::string_view parameters,
                                               const char* flags);
  absl::StatusOr<std::string> Receive();

  UniqueFd socket_;
  std::string received_;  // bytes after the last message
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_CLIENT_H_
