// The part of HTTP/1.1 over the loopback interface that the example needs. It writes no events.
#ifndef EXAMPLES_HTTP_HTTP_H_
#define EXAMPLES_HTTP_HTTP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace http {

struct Request {
  std::string method;
  std::string path;
  std::string traceparent;  // value of the header, or empty
};

struct Response {
  int status = 0;
  std::string body;
  std::string traceparent;
};

// Returns a socket that listens on 127.0.0.1. If `port` is 0, selects a free port and stores it.
// Returns -1 and sets errno on failure.
int Listen(std::uint16_t* port);

// Answers one request per connection until the listener is shut down or accept fails. Any number of
// threads may call Serve at the same time.
void Serve(int listener, const std::function<Response(const Request&)>& handler);

// Sends one request to this machine. Returns nullopt if there is no valid answer.
std::optional<Response> Get(std::uint16_t port, std::string_view path,
                            std::string_view traceparent);

}  // namespace http

#endif  // EXAMPLES_HTTP_HTTP_H_
