// Parses the first line as a trigger, whose text must parse to the same trigger again. Passes two
// equal events of the same time to the trigger, which may fire at most once. The rest of the input
// is the payload of these events, whose fields have different types.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "tools/collector/session/trigger_set.h"

namespace {

using nettrace::Type;
using nettrace::TypeCode;

nettrace::EventMetadata MakeMetadata() {
  nettrace::EventMetadata metadata;
  metadata.provider = "P";
  metadata.name = "E";
  metadata.level = 4;
  const Type utf8 = Type::Simple(TypeCode::kUtf8CodeUnit);
  const Type utf16 = Type::Simple(TypeCode::kUtf16CodeUnit);
  metadata.fields = {{"i", Type::Simple(TypeCode::kInt32)},
                     {"u", Type::Simple(TypeCode::kUInt64)},
                     {"v", Type::Simple(TypeCode::kVarInt)},
                     {"f", Type::Simple(TypeCode::kSingle)},
                     {"d", Type::Simple(TypeCode::kDouble)},
                     {"t", Type::Simple(TypeCode::kBoolean8)},
                     {"g", Type::Simple(TypeCode::kGuid)},
                     {"s", Type::Array(utf8)},
                     {"w", Type::Array(utf16)},
                     {"z", Type::Simple(TypeCode::kNullTerminatedUtf16String)},
                     {"l", Type::RelLoc(utf8)},
                     {"o", Type::Object({{"i", Type::Simple(TypeCode::kInt16)}})},
                     {"a", Type::Array(Type::Object({{"s", Type::Array(utf16)}}))}};
  return metadata;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const nettrace::EventMetadata metadata = MakeMetadata();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view text = input.substr(0, input.find('\n'));
  const auto payload = std::as_bytes(std::span(input)).subspan(std::min(text.size() + 1, size));
  const auto trigger = collector::ParseTrigger(text);
  if (!trigger.ok()) {
    if (trigger.status().message().size() > 2048) std::abort();
    return 0;
  }
  const auto again = collector::ParseTrigger(trigger->text);
  if (!again.ok() || *again != *trigger) std::abort();
  int fired = 0;
  collector::TriggerSet set({*trigger}, [&fired](std::size_t, std::uint64_t) { ++fired; });
  collector::ConvertedEvent event;
  event.kind.form = collector::Slot(0, 1);
  event.timestamp = 1;
  event.payload = payload;
  for (int i = 0; i < 2; ++i) set.Check(event, [] { return metadata; });
  if (fired > 1) std::abort();
  return 0;
}
