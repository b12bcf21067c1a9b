// Reads any bytes as a settings file of the daemon. The result must be settings that are
// consistent, or an error whose message is bounded and printable.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tools/nettraced/config/read_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = nettraced::ParseSettings(text, "f");
  if (!settings.ok()) {
    const absl::string_view message = settings.status().message();
    if (message.empty() || message.size() > 65536) std::abort();
    for (const char c : message) {
      if (static_cast<unsigned char>(c) < ' ' && c != '\n') std::abort();
    }
    return 0;
  }
  for (const nettraced::SessionSettings& session : settings->sessions) {
    if (session.name.empty() || session.name.find('/') != std::string::npos) std::abort();
    if (session.select.empty() && !session.has_samples()) std::abort();
    if (session.ring_size == 0 || !session.SameAs(session)) std::abort();
  }
  // ParseSessions must return the same number of sessions, unless it fails.
  const auto sessions = nettraced::ParseSessions(text, "f");
  if (sessions.ok() && sessions->size() != settings->sessions.size()) std::abort();
  return 0;
}
