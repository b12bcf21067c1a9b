// An HTTP service. Each request is an activity, and belongs to the trace that its caller names.
//   nettrace record -o http.nettrace -e ExampleHttp_L4K1 -e ExampleHttp_L4K2
//       -- example-http-service --requests 20
//   nettrace dump http.nettrace
#include <eventheader/eh.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "http.h"

namespace {

// Recordings select events by keyword: only requests, or also the work of the backend.
constexpr std::uint64_t kRequests = 0x1;
constexpr std::uint64_t kBackend = 0x2;

inline constinit eh::Provider provider("ExampleHttp");

// The collector writes fields named trace_id and span_id also as labels of the event. span_id
// identifies the work that starts with this event. parent_span_id identifies the span of the
// caller; zeros if the request has no valid traceparent.
constexpr eh::Event<provider, "RequestStart",
                    eh::Traits{.keyword = kRequests, .opcode = eh::Opcode::kActivityStart},
                    eh::Field<"path", std::string_view>, eh::Field<"trace_id", std::string_view>,
                    eh::Field<"span_id", std::string_view>,
                    eh::Field<"parent_span_id", std::string_view>>
    request_start;
constexpr eh::Event<provider, "RequestDone", eh::Traits{.keyword = kRequests},
                    eh::Field<"path", std::string_view>, eh::Field<"status", std::int32_t>,
                    eh::Field<"seconds", double>>
    request_done;
constexpr eh::Event<provider, "RequestStop",
                    eh::Traits{.keyword = kRequests, .opcode = eh::Opcode::kActivityStop}>
    request_stop;
constexpr eh::Event<
    provider, "BackendStart", eh::Traits{.keyword = kBackend, .opcode = eh::Opcode::kActivityStart},
    eh::Field<"item", std::string_view>, eh::Field<"trace_id", std::string_view>,
    eh::Field<"span_id", std::string_view>, eh::Field<"parent_span_id", std::string_view>>
    backend_start;
constexpr eh::Event<provider, "BackendStop",
                    eh::Traits{.keyword = kBackend, .opcode = eh::Opcode::kActivityStop}>
    backend_stop;

std::string TraceParent(const eh::TraceContext& context) {
  const auto text = context.Format();
  return {text.data(), text.size()};
}

std::string AskBackend(std::string_view item, const eh::TraceContext& request) {
  // A real backend would be called with "traceparent: " + TraceParent(step).
  const eh::TraceContext step = request.NewChild();
  // Starts an activity for this step. The thread's current activity is the request, so the start
  // event of the new activity has the request as its related activity.
  const eh::ActivityScope<backend_start, backend_stop> scope(
      item, step.TraceIdText(), step.SpanIdText(), request.SpanIdText());
  return "this is " + std::string(item) + "\n";
}

http::Response Handle(const http::Request& request) {
  const auto began = std::chrono::steady_clock::now();
  // A request without a valid traceparent starts a new trace.
  const auto caller = eh::TraceContext::Parse(request.traceparent);
  const eh::TraceContext own = caller ? caller->NewChild() : eh::TraceContext::New();
  const eh::ActivityScope<request_start, request_stop> scope(
      request.path, own.TraceIdText(), own.SpanIdText(),
      caller.value_or(eh::TraceContext()).SpanIdText());

  http::Response response{404, "no such thing\n", TraceParent(own)};
  constexpr std::string_view kItems = "/items/";
  if (request.method != "GET") {
    response = {405, "only GET\n", response.traceparent};
  } else if (request.path.starts_with(kItems)) {
    response.status = 200;
    response.body = AskBackend(std::string_view(request.path).substr(kItems.size()), own);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  request_done.Write(scope.activity(), request.path, response.status, took.count());
  return response;
}

// Sends the requests with the numbers `first`, `first + step`, ... below `end`, and prints each
// with its traceparent. Returns the number of requests whose answer is missing, or has no
// traceparent of the same trace.
int Call(std::uint16_t port, int first, int step, int end) {
  int failed = 0;
  for (int i = first; i < end; i += step) {
    const std::string path = (i % 4 == 3 ? "/nothing/" : "/items/") + std::to_string(i);
    const eh::TraceContext own = eh::TraceContext::New();
    const std::string sent = TraceParent(own);
    const auto response = http::Get(port, path, sent);
    const auto returned = eh::TraceContext::Parse(response ? response->traceparent : "");
    if (!returned || returned->trace_id != own.trace_id) ++failed;
    std::printf("%s %d %s\n", path.c_str(), response ? response->status : 0, sent.c_str());
  }
  return failed;
}

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: example-http-service [--port N] [--threads N] [--requests N]\n\n"
      "Serves GET /items/NAME on 127.0.0.1, as provider ExampleHttp, until it is interrupted.\n\n"
      "  --port N       port to listen on; 0, the default, selects a free port\n"
      "  --threads N    number of requests served at the same time (4)\n"
      "  --requests N   makes N requests to itself, prints them, and exits\n\n"
      "examples:\n"
      "  example-http-service --requests 20\n"
      "  example-http-service --port 8080 & curl http://127.0.0.1:8080/items/7\n\n"
      "exit status: 0 done, 1 the port cannot be used or a request failed, 2 wrong usage\n",
      to);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  int port_number = 0;
  int threads = 4;
  int requests = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return Usage(stdout, 0);
    int* number = std::strcmp(argv[i], "--port") == 0       ? &port_number
                  : std::strcmp(argv[i], "--threads") == 0  ? &threads
                  : std::strcmp(argv[i], "--requests") == 0 ? &requests
                                                            : nullptr;
    if (number == nullptr || i + 1 == argc) return Usage(stderr, 2);
    *number = std::atoi(argv[++i]);
  }
  if (port_number < 0 || port_number > 65535 || threads < 1 || requests < 0) {
    return Usage(stderr, 2);
  }

  // Blocks SIGINT and SIGTERM in this thread and all threads that it creates, because main waits
  // for these signals with sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto port = static_cast<std::uint16_t>(port_number);
  const int listener = http::Listen(&port);
  if (listener < 0) {
    std::fprintf(stderr, "example-http-service: 127.0.0.1:%d: %s; try another --port\n",
                 port_number, std::strerror(errno));
    return 1;
  }
  std::printf("http://127.0.0.1:%d/\n", port);
  std::fflush(stdout);

  std::vector<std::thread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(http::Serve, listener, Handle);
  std::atomic<int> failed = 0;
  if (requests > 0) {
    std::vector<std::thread> callers;
    callers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      callers.emplace_back([&, i] { failed += Call(port, i, threads, requests); });
    }
    for (std::thread& caller : callers) caller.join();
  } else {
    int signal = 0;
    sigwait(&signals, &signal);
  }
  shutdown(listener, SHUT_RDWR);
  for (std::thread& worker : workers) worker.join();
  close(listener);

  const eh::Provider::Counters counters = provider.counters();
  std::printf("%llu events written, %llu failed; %s\n",
              static_cast<unsigned long long>(counters.written),
              static_cast<unsigned long long>(counters.failed),
              eh::RegistrationErrorText(provider.status()));
  return failed == 0 ? 0 : 1;
}
