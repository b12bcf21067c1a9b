// Sends requests of HTTP with libcurl, and receives their answers in bounded time and memory.
#ifndef TOOLS_NETTRACE_SHIP_HTTP_CLIENT_H_
#define TOOLS_NETTRACE_SHIP_HTTP_CLIENT_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/nettrace/ship/curl_library.h"

namespace tools::ship {

struct HttpSettings {
  std::string url;
  std::string content_type;
  std::string content_encoding;  // "" if bodies are not compressed
  // The following files may be "", which means none.
  std::string header_file;       // see ReadHeaders
  std::string ca_file;           // certificates of authorities, instead of the system's
  std::string certificate_file;  // certificate of the client
  std::string key_file;          // private key of the client, if it is not in certificate_file
  absl::Duration timeout = absl::Seconds(30);  // from the start of a request to its whole answer
};

struct HttpReply {
  int status = 0;                                     // 0 if no whole answer arrived
  std::string body;                                   // its first kMaxBody bytes
  absl::Duration retry_after = absl::ZeroDuration();  // header Retry-After; 0 if there is none
  std::string error;                                  // why no whole answer arrived
  // Whether the error lasts until the user changes the URL or a file, or the server changes its
  // certificate.
  bool is_setup_error = false;
};

// A client of one URL. Keeps its connection open between requests. Does not follow redirects, and
// uses no proxy, even if the environment names one. Not thread-safe.
class HttpClient {
 public:
  // Maximum bytes of the body of an answer. The rest of a longer body is discarded.
  static constexpr std::size_t kMaxBody = std::size_t{1} << 20;

  // Fails if the headers cannot be read, or libcurl cannot be loaded.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(const HttpSettings& settings);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends a POST request and waits for its answer. If the process is asked to end
  // (tools/cli/signals.h), waits for the answer for up to 5 s more.
  HttpReply Post(std::string_view body);
  // Reads the file of headers again, for example after a refusal.
  absl::Status ReadHeadersAgain();

 private:
  HttpClient(const HttpSettings& settings, const CurlLibrary& curl)
      : settings_(settings), curl_(curl) {}

  absl::Status Start();
  bool SetOptions();
  void ReadAnswer(CURLcode code, HttpReply* reply) const;
  // Callbacks of libcurl. `self` is the HttpClient.
  static std::size_t OnBody(char* bytes, std::size_t size, std::size_t count, void* self);
  static std::size_t OnHeader(char* bytes, std::size_t size, std::size_t count, void* self);
  static int OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  const HttpSettings settings_;
  const CurlLibrary curl_;
  CURL* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  char error_[CURL_ERROR_SIZE] = "";
  // The following members belong to the current answer.
  std::string body_;
  std::size_t header_bytes_ = 0;
  bool is_body_cut_ = false;
  // Monotonic time at which OnProgress first noticed a request to end.
  absl::Duration stop_time_ = absl::InfiniteDuration();
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_HTTP_CLIENT_H_
