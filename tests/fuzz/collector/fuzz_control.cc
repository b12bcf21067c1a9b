// Processes any bytes as messages of a client of the control socket. The first byte selects the
// client's rights; the rest are messages, each of which ends with a NUL. Checks that a reply, if
// there is one, can be parsed, and that a client without the right to change changes nothing. Each
// message is also parsed as a session's status and as a list of services.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/collector/fake_service.h"
#include "tools/control/dispatcher.h"
#include "tools/control/messages.h"

namespace {

class FakeCaller : public control::Caller {
 public:
  explicit FakeCaller(control::Access access) : access_(access) {}
  control::Access access() const override { return access_; }
  bool Pause(absl::Duration) override { return false; }
  absl::StatusOr<base::UniqueFd> DuplicateSocket() override { return base::UniqueFd(); }

 private:
  const control::Access access_;
};

std::string SessionText(const control::SessionStatus& session) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  control::PutSession(&json, session);
  return buffer.GetString();
}

// Requires that a session that can be read can also be written, and reads back unchanged.
void CheckSession(const rapidjson::Document& document) {
  const auto session = control::ParseSession(document);
  if (!session.ok()) return;
  const std::string text = SessionText(*session);
  const auto again = control::ParseMessage(text);
  if (!again.ok()) std::abort();
  const auto session_again = control::ParseSession(*again);
  if (!session_again.ok() || SessionText(*session_again) != text) std::abort();
}

std::string ServicesText(const control::ServicesStatus& services) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  control::PutServices(&json, services);
  json.EndObject();
  return buffer.GetString();
}

// Requires that a list of services that can be read can also be written, and reads back unchanged.
void CheckServices(const rapidjson::Document& document) {
  const auto services = control::ParseServices(document);
  if (!services.ok()) return;
  const std::string text = ServicesText(*services);
  const auto again = control::ParseMessage(text);
  if (!again.ok()) std::abort();
  const auto services_again = control::ParseServices(*again);
  if (!services_again.ok() || ServicesText(*services_again) != text) std::abort();
}

void CheckReply(const control::Reply& reply) {
  if (reply.message.empty()) return;
  if (reply.message.back() != '\0') std::abort();
  const std::string_view text(reply.message.data(), reply.message.size() - 1);
  if (text.find('\0') != std::string_view::npos) std::abort();
  const auto document = control::ParseMessage(text);
  if (!document.ok() || !document->HasMember("parameters")) std::abort();
  if (!reply.status.ok() && !document->HasMember("error")) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  FakeService service;
  const bool may_change = (data[0] & 1) != 0;
  FakeCaller caller(may_change ? control::Access::kChange : control::Access::kLook);
  const control::Dispatcher dispatcher(&service, "1");
  const std::string before = SessionText(*service.Status("web"));
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  while (!rest.empty()) {
    const std::string_view message = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(message.size() + 1, rest.size()));
    CheckReply(dispatcher.Handle(message, &caller));
    const auto document = control::ParseMessage(message);
    if (!document.ok()) continue;
    CheckSession(*document);
    CheckServices(*document);
  }
  const bool is_changed = service.List().size() != 2 || service.reloads != 0 ||
                          SessionText(*service.Status("web")) != before;
  if (!may_change && is_changed) std::abort();
  return 0;
}
