// As much of HTTP/1.1 over the loopback interface as the example needs. Nothing here is traced.
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

// A socket that listens on 127.0.0.1, and where: a `port` of 0 becomes one that is free. -1 and
// errno where that is not possible.
int Listen(std::uint16_t* port);

// Answers one request a connection, until the listener is shut down. For any number of threads.
void Serve(int listener, const std::function<Response(const Request&)>& handler);

// One request, from this machine. nullopt where there is no answer.
std::optional<Response> Get(std::uint16_t port, std::string_view path,
                            std::string_view traceparent);

}  // namespace http

#endif  // EXAMPLES_HTTP_HTTP_H_
