// Parses, decodes and formats any bytes as an event, and checks what the library promises for every
// event.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"
#include "tests/support/eventheader/json_check.h"

namespace {

using eh::Decoder;
using eh::EventView;
using eh::Item;
using eh::ItemKind;
using eh::ParseError;

void Require(bool promise) {
  if (!promise) std::abort();
}

bool IsWithin(std::span<const std::byte> part, std::span<const std::byte> whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void CheckItems(const EventView& event) {
  Decoder decoder(event);
  std::size_t items = 0;
  int arrays = 0;
  int structs = 0;
  for (Item item; decoder.Next(&item);) {
    Require(++items <= eh::kMaxWork);
    Require(item.field != nullptr);
    Require(IsWithin(item.bytes, event.data));
    switch (item.kind) {
      case ItemKind::kValue:
        break;
      case ItemKind::kArrayBegin:
        ++arrays;
        break;
      case ItemKind::kArrayEnd:
        --arrays;
        break;
      case ItemKind::kStructBegin:
        ++structs;
        break;
      case ItemKind::kStructEnd:
        --structs;
        break;
    }
    Require(arrays >= 0 && arrays <= eh::kMaxStructNesting + 1);
    Require(structs >= 0 && structs <= eh::kMaxStructNesting);
  }
  Require(IsWithin(decoder.rest(), event.data));
  if (decoder.error() == ParseError::kNone) Require(arrays == 0 && structs == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  EventView event;
  const ParseError error = eh::ParseEvent(bytes, &event);
  if (error != ParseError::kNone) return 0;
  Require(IsWithin(event.metadata, bytes) && IsWithin(event.data, bytes));
  Require(event.activity_id.empty() || event.activity_id.size() == 16);
  Require(event.related_id.empty() || event.related_id.size() == 16);
  CheckItems(event);

  std::string json;
  AppendEventJson(event, "Provider", &json);
  Require(eh::testing::IsValidJson(json));
  char small[64];
  Require(FormatEventJson(event, "Provider", small) == json.size());
  return 0;
}
