#include "tools/nettrace/ship/answer.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/text.h"

namespace tools::ship {
namespace {

constexpr std::size_t kMaxMessage = 200;  // bytes of a receiver's text that are shown

// Reads the fields of a message of Protocol Buffers. The bytes are untrusted.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : left_(bytes) {}

  // Moves to the next field. Returns false at the end and before bytes that cannot be read.
  bool Next() {
    const std::optional<std::uint64_t> tag = left_.empty() ? std::nullopt : Varint();
    if (!tag) return false;
    field_ = *tag >> 3;
    number_ = 0;
    bytes_ = {};
    constexpr int kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;
    switch (*tag & 7) {
      case kVarint: {
        const std::optional<std::uint64_t> number = Varint();
        number_ = number.value_or(0);
        return number.has_value();
      }
      case kLength: {
        const std::optional<std::uint64_t> size = Varint();
        return size.has_value() && Take(*size);
      }
      case kFixed64:
        return Take(8);
      case kFixed32:
        return Take(4);
      default:
        return false;
    }
  }
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return number_; }   // value of a varint; else 0
  std::string_view bytes() const { return bytes_; }  // bytes of a value that is not a varint

 private:
  std::optional<std::uint64_t> Varint() {
    std::uint64_t number = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      number |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return number;
    }
    return std::nullopt;
  }
  bool Take(std::uint64_t size) {
    if (size > left_.size()) return false;
    bytes_ = left_.substr(0, static_cast<std::size_t>(size));
    left_.remove_prefix(static_cast<std::size_t>(size));
    return true;
  }

  std::string_view left_;
  std::uint64_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
};

struct PartialSuccess {
  std::uint64_t rejected = 0;
  std::string message;
};

// Reads ExportLogsServiceResponse{1: partial_success{1: rejected_log_records, 2: error_message}}.
// ExportTraceServiceResponse has the same field numbers.
PartialSuccess ReadProtobuf(std::string_view body) {
  PartialSuccess result;
  for (FieldReader response(body); response.Next();) {
    if (response.field() != 1) continue;
    for (FieldReader partial(response.bytes()); partial.Next();) {
      if (partial.field() == 1) result.rejected = partial.number();
      if (partial.field() == 2) result.message = partial.bytes();
    }
  }
  return result;
}

// Returns the member of an object; null if there is none.
const rapidjson::Value* Member(const rapidjson::Value& value, const char* name) {
  if (!value.IsObject()) return nullptr;
  const auto member = value.FindMember(name);
  return member == value.MemberEnd() ? nullptr : &member->value;
}

std::string TextOf(const rapidjson::Value* value) {
  return value != nullptr && value->IsString()
             ? std::string(value->GetString(), value->GetStringLength())
             : "";
}

PartialSuccess ReadJson(const rapidjson::Document& json) {
  PartialSuccess result;
  const rapidjson::Value* const partial = Member(json, "partialSuccess");
  if (partial == nullptr) return result;
  result.message = TextOf(Member(*partial, "errorMessage"));
  const rapidjson::Value* rejected = Member(*partial, "rejectedLogRecords");
  if (rejected == nullptr) rejected = Member(*partial, "rejectedSpans");
  if (rejected == nullptr) return result;
  // The JSON form of Protocol Buffers has 64-bit numbers as strings. Numbers are accepted, too.
  if (rejected->IsUint64()) result.rejected = rejected->GetUint64();
  std::uint64_t number = 0;
  if (absl::SimpleAtoi(TextOf(rejected), &number)) result.rejected = number;
  return result;
}

// Parses a body into `*json`, which has a parse error if the body is not JSON.
void ParseJson(const std::string& body, rapidjson::Document* json) {
  // Parses without recursion, because a hostile body may be nested deeply.
  json->Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
}

// Returns the receiver's text in an answer that is an error: the field message of google.rpc.Status
// in protobuf or JSON, or the body itself if it is text.
std::string ErrorText(const std::string& body) {
  std::string text;
  if (body.starts_with('{')) {
    rapidjson::Document json;
    ParseJson(body, &json);
    if (!json.HasParseError()) text = TextOf(Member(json, "message"));
  }
  if (text.empty() && base::IsPrintableAscii(body)) text = body;
  if (text.empty()) {
    for (FieldReader status(body); status.Next();) {
      if (status.field() == 2) text = status.bytes();
    }
  }
  return text.substr(0, kMaxMessage);
}

Answer Accepted(const HttpReply& reply, std::uint64_t records) {
  rapidjson::Document json;
  if (reply.body.starts_with('{')) ParseJson(reply.body, &json);
  PartialSuccess partial =
      json.IsObject() && !json.HasParseError() ? ReadJson(json) : ReadProtobuf(reply.body);
  Answer answer;
  answer.verdict = Verdict::kAccepted;
  answer.rejected = std::min(partial.rejected, records);
  answer.message = partial.message.substr(0, kMaxMessage);
  return answer;
}

Verdict VerdictOn(int status) {
  switch (status) {
    case 429:
    case 502:
    case 503:
    case 504:
      return Verdict::kRetry;
    case 401:
    case 403:
    case 404:
    case 405:
    case 407:
      return Verdict::kUnreachable;
    case 413:
      return Verdict::kTooLarge;
    default:
      return status < 400 ? Verdict::kUnreachable : Verdict::kRefused;
  }
}

}  // namespace

Answer Judge(const HttpReply& reply, std::uint64_t records) {
  Answer answer;
  if (reply.status == 0) {
    answer.verdict = reply.is_setup_error ? Verdict::kUnreachable : Verdict::kRetry;
    answer.message = reply.error;
    return answer;
  }
  if (reply.status >= 200 && reply.status < 300) return Accepted(reply, records);
  answer.verdict = VerdictOn(reply.status);
  answer.message = absl::StrCat("the receiver answered ", reply.status);
  if (reply.status < 400) absl::StrAppend(&answer.message, ", and redirects are not followed");
  const std::string text = ErrorText(reply.body);
  if (!text.empty()) absl::StrAppend(&answer.message, " (", text, ")");
  return answer;
}

absl::Duration RetryWait::Next(absl::Duration asked) {
  if (asked > absl::ZeroDuration()) {
    constexpr double kMore = 1.1;
    return std::min(asked, kMaxAsked) * std::uniform_real_distribution<>(1, kMore)(random_);
  }
  const absl::Duration wait = next_;
  next_ = std::min(next_ * 2, kMax);
  constexpr double kLess = 0.8;
  constexpr double kMore = 1.2;
  return wait * std::uniform_real_distribution<>(kLess, kMore)(random_);
}

}  // namespace tools::ship
