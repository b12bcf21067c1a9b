// The part of HTTP/1.1 over the loopback interface that the example needs. Nothing here is traced.
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
  std::string traceparent;  // the header's value, or nothing
};

struct Response {
  int status = 0;
  std::string body;
  std::string traceparent;
};

// Returns a socket that listens on 127.0.0.1; a `port` of 0 becomes one that is free. Returns -1,
// with errno, if that is not possible.
int Listen(std::uint16_t* port);

// Answers one request a connection, until the listener is shut down. Any number of threads may call
// it.
void Serve(int listener, const std::function<Response(const Request&)>& handler);

// Sends one request, from this machine. Returns nullopt if there is no answer.
std::optional<Response> Get(std::uint16_t port, std::string_view path,
                            std::string_view traceparent);

}  // namespace http

#endif  // EXAMPLES_HTTP_HTTP_H_
