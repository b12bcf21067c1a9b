#include "tools/trace/code_events.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/payload.h"

namespace trace {
namespace {

// Stores the top-level fields of an event that describes code in a CodeEvent.
class CodeFields : public nettrace::PayloadVisitor {
 public:
  explicit CodeFields(CodeEvent* event) : event_(*event) {}

  void OnName(std::string_view field) override {
    if (depth_ == 0) field_ = field;
  }
  void OnBeginObject() override { ++depth_; }
  void OnEndObject() override { --depth_; }
  void OnBeginArray() override { ++depth_; }
  void OnEndArray() override { --depth_; }
  void OnUInt(std::uint64_t value) override {
    if (depth_ != 0) return;
    if (field_ == "Id") event_.id = value;
    if (field_ == "MappingId") event_.mapping_id = value;
    if (field_ == "MetadataId") event_.metadata_id = value;
    if (field_ == "StartAddress") event_.first = value;
    if (field_ == "EndAddress") event_.last = value;
    if (field_ == "FileOffset") event_.offset = value;
  }
  void OnUtf8(std::span<const std::byte> units) override {
    if (depth_ != 0) return;
    if (field_ == "Name" || field_ == "FileName") Keep(units, &event_.name);
    if (field_ == "SymbolMetadata") Keep(units, &event_.json);
  }

 private:
  static void Keep(std::span<const std::byte> units, std::string* text) {
    text->clear();
    nettrace::internal::AppendUtf8AsValid(units.first(std::min(units.size(), kMaxCodeName)), text);
  }

  CodeEvent& event_;
  std::string_view field_;  // name of the current field, which the schema owns
  int depth_ = 0;
};

}  // namespace

std::optional<CodeEvent> ReadCodeEvent(const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  if (metadata.provider != nettrace::internal::traceevent::kUniversalSystem) return std::nullopt;
  CodeEvent code;
  if (metadata.name == "ProcessSymbol") {
    code.kind = CodeEvent::Kind::kFunction;
  } else if (metadata.name == "ProcessMappingMetadata") {
    code.kind = CodeEvent::Kind::kFile;
  } else if (metadata.name != "ProcessMapping") {
    return std::nullopt;
  }
  CodeFields fields(&code);
  const absl::Status status =
      nettrace::VisitPayload(nettrace::internal::traceevent::FieldsOfPayload(metadata),
                             event.payload, &fields, event.payload_encoding);
  if (!status.ok() || code.last < code.first) return std::nullopt;
  return code;
}

}  // namespace trace
