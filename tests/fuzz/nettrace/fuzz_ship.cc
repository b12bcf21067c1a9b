// Reads any bytes as what `nettrace ship` gets from outside: answers of a server, the state file,
// the file of headers and the URL. The first byte selects one of these. Checks that counts and
// messages are bounded, that a state that was read is written and read back, and that headers and
// URLs that are accepted cannot contain other lines or credentials.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/nettrace/ship/answer.h"
#include "tools/nettrace/ship/destination.h"
#include "tools/nettrace/ship/http_client.h"
#include "tools/nettrace/ship/position.h"

namespace {

using tools::ship::Answer;
using tools::ship::HttpReply;
using tools::ship::Judge;
using tools::ship::LogsUrl;
using tools::ship::ParseHeaders;
using tools::ship::Position;
using tools::ship::Verdict;

void Require(bool promise) {
  if (!promise) std::abort();
}

// The first two bytes are the status, and the third one the number of records.
void ReadAnswer(std::string_view text) {
  if (text.size() < 3) return;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  HttpReply reply;
  reply.status = byte(0) << 8 | byte(1);
  reply.body = text.substr(3);
  const std::uint64_t records = byte(2);
  const Answer answer = Judge(reply, records);
  Require(answer.rejected <= records);
  constexpr std::size_t kMaxMessage = 300;
  Require(answer.message.size() <= kMaxMessage);
  const bool is_success = reply.status >= 200 && reply.status < 300;
  Require((answer.verdict == Verdict::kAccepted) == is_success);
  Require(is_success || answer.rejected == 0);
}

void ReadPosition(std::string_view text) {
  absl::StatusOr<Position> position = Position::FromText(text);
  if (!position.ok()) return;
  const std::string written = position->ToText();
  const absl::StatusOr<Position> again = Position::FromText(written);
  Require(again.ok() && again->ToText() == written);
  while (!position->files.empty()) {
    const std::size_t files = position->files.size();
    position->Delete(std::string(position->files.begin()->first), "");
    Require(position->files.size() == files - 1);
  }
}

void CheckHeaders(std::string_view text) {
  const absl::StatusOr<std::vector<std::string>> headers = ParseHeaders(text);
  if (!headers.ok()) return;
  for (const std::string& header : *headers) {
    Require(header.find(':') != header.npos && header.find(':') != 0);
    Require(header.find_first_of(std::string_view("\r\n\0", 3)) == header.npos);
  }
}

void CheckUrl(std::string_view text) {
  const absl::StatusOr<std::string> url = LogsUrl(text);
  if (!url.ok()) return;
  Require(url->starts_with("http://") || url->starts_with("https://"));
  Require(url->find_first_of("?#\r\n ") == url->npos);
  const std::size_t host = url->find("://") + 3;
  const std::size_t path = url->find('/', host);
  Require(path != url->npos && path > host &&
          url->substr(host, path - host).find('@') == url->npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'a':
      ReadAnswer(text);
      break;
    case 'p':
      ReadPosition(text);
      break;
    case 'h':
      CheckHeaders(text);
      break;
    default:
      CheckUrl(text);
  }
  return 0;
}
