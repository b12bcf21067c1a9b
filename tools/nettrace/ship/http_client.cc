#include "tools/nettrace/ship/http_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/cli/signals.h"
#include "tools/nettrace/ship/destination.h"

namespace tools::ship {
namespace {

// Returns whether the same request fails again until the URL, a file or a certificate changes.
bool IsSetupError(CURLcode code) {
  switch (code) {
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_NOT_BUILT_IN:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(const HttpSettings& settings) {
  ASSIGN_OR_RETURN(const CurlLibrary curl, CurlLibrary::Load());
  std::unique_ptr<HttpClient> client(new HttpClient(settings, curl));
  RETURN_IF_ERROR(client->Start());
  return client;
}

HttpClient::~HttpClient() {
  if (handle_ != nullptr) curl_.easy_cleanup(handle_);
  curl_.slist_free_all(headers_);
}

absl::Status HttpClient::Start() {
  handle_ = curl_.easy_init();
  if (handle_ == nullptr || !SetOptions()) {
    return absl::UnavailableError(
        "libcurl lacks a function that is needed; install libcurl 7.85 or later");
  }
  return ReadHeadersAgain();
}

bool HttpClient::SetOptions() {
  bool ok = true;
  const auto set = [&](CURLoption option, auto value) {
    ok = ok && curl_.easy_setopt(handle_, option, value) == CURLE_OK;
  };
  const auto set_file = [&](CURLoption option, const std::string& path) {
    if (!path.empty()) set(option, path.c_str());
  };
  set(CURLOPT_URL, settings_.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_PROXY, "");
  set(CURLOPT_POST, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "nettrace-ship");
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(settings_.timeout)));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(settings_.timeout)));
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set_file(CURLOPT_CAINFO, settings_.ca_file);
  set_file(CURLOPT_SSLCERT, settings_.certificate_file);
  set_file(CURLOPT_SSLKEY,
           settings_.key_file.empty() ? settings_.certificate_file : settings_.key_file);
  set(CURLOPT_ERRORBUFFER, static_cast<char*>(error_));
  set(CURLOPT_WRITEFUNCTION, &HttpClient::OnBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_HEADERFUNCTION, &HttpClient::OnHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &HttpClient::OnProgress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  return ok;
}

absl::Status HttpClient::ReadHeadersAgain() {
  std::vector<std::string> lines = {absl::StrCat("Content-Type: ", settings_.content_type),
                                    "Expect:"};  // no 100-continue, which costs a round trip
  if (!settings_.content_encoding.empty()) {
    lines.push_back(absl::StrCat("Content-Encoding: ", settings_.content_encoding));
  }
  if (!settings_.header_file.empty()) {
    ASSIGN_OR_RETURN(const std::vector<std::string> own, ReadHeaders(settings_.header_file));
    lines.insert(lines.end(), own.begin(), own.end());
  }
  curl_slist* list = nullptr;
  for (const std::string& line : lines) {
    curl_slist* const longer = curl_.slist_append(list, line.c_str());
    if (longer == nullptr) {
      curl_.slist_free_all(list);
      return absl::ResourceExhaustedError("not enough memory for the headers of requests");
    }
    list = longer;
  }
  curl_.easy_setopt(handle_, CURLOPT_HTTPHEADER, list);
  curl_.slist_free_all(std::exchange(headers_, list));
  return absl::OkStatus();
}

HttpReply HttpClient::Post(std::string_view body) {
  body_.clear();
  header_bytes_ = 0;
  is_body_cut_ = false;
  error_[0] = '\0';
  stop_time_ = absl::InfiniteDuration();
  curl_.easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_.easy_setopt(handle_, CURLOPT_POSTFIELDS, body.data());
  const CURLcode code = curl_.easy_perform(handle_);
  // Removes the pointer to the body from curl, because the body is valid only during this call.
  curl_.easy_setopt(handle_, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t{0});
  curl_.easy_setopt(handle_, CURLOPT_POSTFIELDS, "");
  HttpReply reply;
  ReadAnswer(code, &reply);
  return reply;
}

void HttpClient::ReadAnswer(CURLcode code, HttpReply* reply) const {
  if (code != CURLE_OK && !is_body_cut_) {
    reply->error = error_[0] != '\0' ? error_ : curl_.easy_strerror(code);
    reply->is_setup_error = IsSetupError(code);
    return;
  }
  long status = 0;
  curl_off_t retry_after = 0;
  curl_.easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);
  curl_.easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &retry_after);
  reply->status = static_cast<int>(status);
  reply->body = body_;
  reply->retry_after = absl::Seconds(std::max<curl_off_t>(retry_after, 0));
}

std::size_t HttpClient::OnBody(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto* const client = static_cast<HttpClient*>(self);
  const std::size_t taken = std::min(size * count, kMaxBody - client->body_.size());
  client->body_.append(bytes, taken);
  client->is_body_cut_ = taken < size * count;
  return taken;  // curl ends the request if this is less than size * count
}

std::size_t HttpClient::OnHeader(char* /*bytes*/, std::size_t size, std::size_t count, void* self) {
  constexpr std::size_t kMaxHeaders = std::size_t{256} << 10;
  auto* const client = static_cast<HttpClient*>(self);
  client->header_bytes_ += size * count;
  return client->header_bytes_ > kMaxHeaders ? 0 : size * count;
}

int HttpClient::OnProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  constexpr absl::Duration kGrace = absl::Seconds(5);
  if (!cli::IsStopRequested()) return 0;
  auto* const client = static_cast<HttpClient*>(self);
  const absl::Duration now = base::MonotonicNow();
  client->stop_time_ = std::min(client->stop_time_, now);
  return now - client->stop_time_ > kGrace ? 1 : 0;
}

}  // namespace tools::ship
