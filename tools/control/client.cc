#include "tools/control/client.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/control/messages.h"

namespace control {
namespace {

std::string_view TextMember(const rapidjson::Value& json, const char* name) {
  const auto found = json.FindMember(name);
  if (found == json.MemberEnd() || !found->value.IsString()) return "";
  return {found->value.GetString(), found->value.GetStringLength()};
}

// Returns the status for a reply with the error `name`. `parameters` may be null.
absl::Status ReplyError(std::string_view name, const rapidjson::Value* parameters) {
  const std::string_view message =
      parameters == nullptr ? std::string_view() : TextMember(*parameters, "message");
  if (!message.empty()) return absl::Status(CodeOfErrorName(name), std::string(message));
  // Only errors that varlink itself defines have no message. They occur if nettraced and this
  // program have different versions.
  std::string what(name);
  for (const char* parameter : {"interface", "method", "parameter"}) {
    if (parameters == nullptr) break;
    const std::string_view value = TextMember(*parameters, parameter);
    if (!value.empty()) absl::StrAppend(&what, ": ", parameter, " '", std::string(value), "'");
  }
  return absl::UnimplementedError(absl::StrCat(
      what,
      "; nettraced and this program have different versions: restart nettraced after an "
      "upgrade"));
}

// Returns the error for a user who may not connect to the socket at `path`. The error names the
// group whose members may connect, if there is such a group.
absl::Status NotAllowed(const std::string& path) {
  struct stat facts = {};
  struct group entry = {};
  struct group* found = nullptr;
  std::vector<char> buffer(1 << 16);
  if (stat(path.c_str(), &facts) == 0 && facts.st_gid != 0 && (facts.st_mode & S_IWGRP) != 0) {
    getgrgid_r(facts.st_gid, &entry, buffer.data(), buffer.size(), &found);
  }
  if (found == nullptr) {
    return absl::PermissionDeniedError(absl::StrCat(path, ": permission denied; run as root"));
  }
  return absl::PermissionDeniedError(absl::StrCat(
      path, ": permission denied; run as root, or add your user to group ", found->gr_name,
      ", which may view sessions, with 'usermod -aG ", found->gr_name, " USER', and log in again"));
}

absl::Status NoAnswer() {
  return absl::DeadlineExceededError(
      "nettraced is running but does not answer; 'systemctl status nettraced' shows its state");
}

}  // namespace

absl::StatusOr<ControlClient> ControlClient::Connect(const std::string& path,
                                                     absl::Duration patience) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the path has ", path.size(),
                                                   " bytes; use a socket path of at most ",
                                                   sizeof address.sun_path - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return base::DescriptorStatus(errno, "connecting to nettraced: socket");
  if (patience != absl::InfiniteDuration()) {
    const timeval limit = absl::ToTimeval(patience);
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return ControlClient(std::move(socket));
  }
  if (errno == ENOENT || errno == ECONNREFUSED) {
    return absl::NotFoundError(absl::StrCat(
        path, ": nettraced is not running; start it with 'systemctl start nettraced'"));
  }
  if (errno == EACCES) return NotAllowed(path);
  if (errno == EAGAIN) return NoAnswer();
  return base::ErrnoStatus(errno, path);
}

absl::StatusOr<rapidjson::Document> ControlClient::Call(std::string_view method,
                                                        std::string_view parameters) {
  return Exchange(method, parameters, "");
}

absl::StatusOr<base::UniqueFd> ControlClient::Upgrade(std::string_view method,
                                                      std::string_view parameters,
                                                      std::string* rest) && {
  RETURN_IF_ERROR(Exchange(method, parameters, ",\"upgrade\":true").status());
  *rest = std::move(received_);
  return std::move(socket_);
}

absl::StatusOr<rapidjson::Document> ControlClient::Exchange(std::string_view method,
                                                            std::string_view parameters,
                                                            const char* flags) {
  const std::string request =
      absl::StrCat("{\"method\":\"", kControlInterface, ".", std::string(method),
                   "\",\"parameters\":", std::string(parameters), flags, "}");
  // Sends the request with its NUL. An error of send is ignored, because the daemon may have sent
  // the reason before it closed the connection. Receive then returns that reply.
  for (std::size_t sent = 0; sent <= request.size();) {
    const ssize_t result =
        send(socket_.get(), request.c_str() + sent, request.size() + 1 - sent, MSG_NOSIGNAL);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) break;
    sent += static_cast<std::size_t>(result);
  }
  ASSIGN_OR_RETURN(const std::string message, Receive());
  const absl::StatusOr<rapidjson::Document> parsed = ParseMessage(message);
  if (!parsed.ok()) {
    const absl::string_view why = parsed.status().message();
    return InvalidReply({why.data(), why.size()});
  }
  const rapidjson::Document& reply = *parsed;
  const auto found = reply.FindMember("parameters");
  const rapidjson::Value* parameters_of_reply =
      found != reply.MemberEnd() && found->value.IsObject() ? &found->value : nullptr;
  const std::string_view error = TextMember(reply, "error");
  if (!error.empty()) return ReplyError(error, parameters_of_reply);
  if (parameters_of_reply == nullptr) {
    return absl::InternalError(
        "nettraced: its reply has no parameters; restart nettraced after an upgrade");
  }
  rapidjson::Document result;
  result.CopyFrom(*parameters_of_reply, result.GetAllocator());
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): `result` owns the moved allocator.
  return result;
}

absl::StatusOr<std::string> ControlClient::Receive() {
  for (std::size_t searched = 0;;) {
    const std::size_t nul = received_.find('\0', searched);
    if (nul != std::string::npos) {
      std::string message = received_.substr(0, nul);
      received_.erase(0, nul + 1);
      return message;
    }
    searched = received_.size();
    if (searched > kMaxReply) {
      return absl::InternalError(absl::StrCat("nettraced: its reply has more than ", kMaxReply,
                                              " bytes, which is the maximum"));
    }
    char buffer[4096];
    const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return NoAnswer();
    if (got < 0) {
      return base::ErrnoStatus(errno, "nettraced: its reply cannot be read",
                               "'journalctl -u nettraced' may show why");
    }
    if (got == 0) {
      return absl::UnavailableError(
          "nettraced closed the connection without a reply; 'journalctl -u nettraced' may show "
          "why, else try again");
    }
    received_.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace control
