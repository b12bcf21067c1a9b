#include "http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace http {
namespace {

// Maximum time that recv() waits for bytes, so that a client or server that sends nothing cannot
// block a thread for long.
constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};
constexpr std::size_t kMaxMessage = 16384;
constexpr std::string_view kEndOfHeaders = "\r\n\r\n";

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::string Receive(int connection, std::string_view until) {
  std::string text;
  char piece[1024];
  while (text.size() < kMaxMessage && (until.empty() || text.find(until) == text.npos)) {
    const ssize_t size = recv(connection, piece, sizeof piece, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(piece, static_cast<std::size_t>(size));
  }
  return text;
}

void Send(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

std::string Header(std::string_view message, std::string_view name) {
  message = message.substr(0, message.find(kEndOfHeaders));
  for (std::size_t at = 0; (at = message.find("\r\n", at)) != message.npos;) {
    at += 2;
    std::string_view line = message.substr(at, message.find("\r\n", at) - at);
    if (line.size() <= name.size() || line[name.size()] != ':' ||
        strncasecmp(line.data(), name.data(), name.size()) != 0) {
      continue;
    }
    line.remove_prefix(name.size() + 1);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return {};
    return std::string(line.substr(begin, line.find_last_not_of(" \t") + 1 - begin));
  }
  return {};
}

// Returns nullopt if the message is not an HTTP request.
std::optional<Request> Parse(std::string_view message) {
  const std::string_view line = message.substr(0, message.find("\r\n"));
  const std::size_t path = line.find(' ');
  const std::size_t version = line.rfind(" HTTP/1.");
  if (version == line.npos || path >= version) return std::nullopt;
  return Request{std::string(line.substr(0, path)),
                 std::string(line.substr(path + 1, version - path - 1)),
                 Header(message, "traceparent")};
}

std::string Format(const Response& response) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " \r\n";
  if (!response.traceparent.empty()) text += "traceparent: " + response.traceparent + "\r\n";
  return text + "Content-Length: " + std::to_string(response.body.size()) +
         "\r\nConnection: close" + std::string(kEndOfHeaders) + response.body;
}

}  // namespace

int Listen(std::uint16_t* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return -1;
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = Loopback(*port);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, generic, size) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, generic, &size) != 0) {
    const int error = errno;
    close(listener);
    errno = error;
    return -1;
  }
  *port = ntohs(address.sin_port);
  return listener;
}

void Serve(int listener, const std::function<Response(const Request&)>& handler) {
  while (true) {
    const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (connection < 0) return;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    const auto request = Parse(Receive(connection, kEndOfHeaders));
    Send(connection, Format(request ? handler(*request) : Response{400, "not HTTP\n", ""}));
    close(connection);
  }
}

std::optional<Response> Get(std::uint16_t port, std::string_view path,
                            std::string_view traceparent) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return std::nullopt;
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  const sockaddr_in address = Loopback(port);
  std::string answer;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    Send(connection, "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\ntraceparent: " +
                         std::string(traceparent) + std::string(kEndOfHeaders));
    answer = Receive(connection, "");
  }
  close(connection);
  Response response;
  const std::size_t status = answer.find(' ') + 1;
  const std::size_t body = answer.find(kEndOfHeaders);
  if (body == answer.npos ||
      std::from_chars(&answer[status], &answer[body], response.status).ec != std::errc()) {
    return std::nullopt;
  }
  response.body = answer.substr(body + kEndOfHeaders.size());
  response.traceparent = Header(answer, "traceparent");
  return response;
}

}  // namespace http
