// Reads any text as a file of registrations. The results must be definitions that the kernel could
// accept, and errors that name a line. Each definition must occur once, and must be the same when
// it is read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "eventheader/tracepoint_name.h"
#include "libeventheader/base/user_events.h"
#include "tools/collector/tracefs/user_event_definition.h"
#include "tools/eventheader/registrations.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  tools::Registrations registrations;
  registrations.AddText(text, "f");
  Require(registrations.definitions().size() <= tools::Registrations::kMaxTracepoints);
  Require(registrations.errors().size() <= tools::Registrations::kMaxErrors);
  Require(registrations.errors().size() <= registrations.error_count());
  for (const std::string& error : registrations.errors()) Require(error.starts_with("f:"));
  std::set<std::string> names;
  std::size_t checked = 0;
  for (const auto& definition : registrations.definitions()) {
    if (++checked > 64) break;  // further ones are probably alike
    Require(names.insert(definition.name).second);
    Require(eh::IsValidProviderName(definition.name));
    Require(definition.Text().size() < eh::internal::user_events::kMaxCommand);
    Require(!eh::ParseTracepointName(definition.name) || definition.IsEventHeader());
    const auto again = collector::ParseUserEventDefinition(
        definition.fields.empty() ? definition.name + ";" : definition.Text());
    Require(again.ok() && *again == definition);
  }
  // Reads the same bytes as the kernel's description of a tracepoint that another process has
  // defined.
  Require(collector::FieldsOfFormat(text).size() <= 2 * size);
  return 0;
}
