#include "tools/nettrace/ship/destination.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"

namespace tools::ship {
namespace {

constexpr std::string_view kExample = "; an example is https://collector.example:4318";

// Headers that the program sets.
constexpr std::array<std::string_view, 6> kOwnHeaders = {"Connection",     "Content-Encoding",
                                                         "Content-Length", "Content-Type",
                                                         "Expect",         "Transfer-Encoding"};

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

bool IsOfName(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != kOthers.npos;
}

bool IsOfValue(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7F');
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);  // npos + 1 is 0
}

// Returns why the line is no header; "" if it is one.
std::string WhyNoHeader(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == line.npos || name.empty() || !std::all_of(name.begin(), name.end(), IsOfName)) {
    return "no header; write \"Name: value\"";
  }
  const std::string_view value = line.substr(colon + 1);
  if (Trim(value).empty() || !std::all_of(value.begin(), value.end(), IsOfValue)) {
    return "the header has no value or contains control characters; write \"Name: value\"";
  }
  const bool is_own = std::any_of(kOwnHeaders.begin(), kOwnHeaders.end(), [&](auto own) {
    return absl::EqualsIgnoreCase(Absl(name), Absl(own));
  });
  if (is_own) return "nettrace ship sets this header; remove the line";
  return "";
}

}  // namespace

absl::StatusOr<std::string> ReceiverUrl(std::string_view text, otlp::Signal signal) {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid URL: ", std::string(why), std::string(kExample)));
  };
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return refuse("it must begin with http:// or https://");
  }
  if (!base::IsPrintableAscii(text) || text.find(' ') != text.npos) {
    return refuse("it must consist of printable ASCII characters without spaces");
  }
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view host = rest.substr(0, slash);
  if (text.find_first_of("?#") != text.npos || host.find('@') != host.npos) {
    return refuse("it must not have a user, password or query; use --header-file for credentials");
  }
  if (host.empty() || host.front() == ':') return refuse("it has no host");
  std::string url(text);
  const std::string_view path = rest.substr(slash);
  if (path.empty()) url += '/';
  if (path.size() <= 1) url += signal == otlp::Signal::kLogs ? "v1/logs" : "v1/traces";
  return url;
}

absl::StatusOr<std::string> TracesUrl(std::string_view logs) {
  constexpr std::string_view kLogs = "/v1/logs";
  if (!logs.ends_with(kLogs)) {
    return absl::InvalidArgumentError(
        "--spans: the path of --to does not end with /v1/logs, so the URL of spans is unknown; "
        "name "
        "it with --spans-to");
  }
  return std::string(logs.substr(0, logs.size() - kLogs.size())) + "/v1/traces";
}

absl::StatusOr<std::vector<std::string>> ParseHeaders(std::string_view text) {
  std::vector<std::string> headers;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (const std::string why = WhyNoHeader(line); !why.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", why));
    }
    headers.emplace_back(line);
  }
  return headers;
}

absl::StatusOr<std::vector<std::string>> ReadHeaders(const std::string& path) {
  constexpr std::size_t kMaxSize = 65536;
  ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxSize + 1));
  if (text.size() > kMaxSize) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the file is too large; at most 64 KiB of headers are accepted"));
  }
  absl::StatusOr<std::vector<std::string>> headers = ParseHeaders(text);
  if (headers.ok()) return headers;
  return absl::Status(headers.status().code(),
                      absl::StrCat(path, ": ", headers.status().message()));
}

}  // namespace tools::ship
