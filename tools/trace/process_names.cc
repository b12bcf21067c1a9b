#include "tools/trace/process_names.h"

#include <span>
#include <utility>

#include "absl/time/time.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/utf.h"
#include "nettrace/payload.h"

namespace trace {
namespace {

// Finds the text of the event's top-level field `Name`.
class NameFinder : public nettrace::PayloadVisitor {
 public:
  std::string Take() { return std::move(name_); }

  void OnName(std::string_view name) override { is_name_ = depth_ == 0 && name == "Name"; }
  void OnBeginObject() override { ++depth_; }
  void OnEndObject() override { --depth_; }
  void OnBeginArray() override { ++depth_; }
  void OnEndArray() override { --depth_; }
  void OnUtf8(std::span<const std::byte> units) override {
    if (is_name_) nettrace::internal::AppendUtf8AsValid(units, &name_);
  }
  void OnUtf16(std::span<const std::byte> units) override {
    if (is_name_) nettrace::internal::AppendUtf16AsUtf8(units, &name_);
  }

 private:
  std::string name_;
  bool is_name_ = false;
  int depth_ = 0;
};

constexpr std::size_t kEntrySize = 64;  // estimated bytes of an entry without its text

}  // namespace

void ProcessNames::OnEvent(const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  if (metadata.provider != nettrace::internal::traceevent::kUniversalSystem) return;
  if (!event.thread->process_id) return;
  const std::size_t host = hosts_.Add(*event.thread);
  if (host == Hosts::kOthers) return;
  const Key key(host, *event.thread->process_id);
  if (metadata.name == "ProcessExit") return Forget(key);
  if (metadata.name != "ExistingProcess" && metadata.name != "ProcessCreate") return;
  NameFinder finder;
  nettrace::VisitPayload(nettrace::internal::traceevent::FieldsOfPayload(metadata), event.payload,
                         &finder, event.payload_encoding)
      .IgnoreError();  // if the payload is damaged, the name may be before the damage
  Forget(key);
  std::string name = finder.Take();
  if (name.empty() || bytes_ + name.size() + kEntrySize > kMaxBytes) return;
  bytes_ += name.size() + kEntrySize;
  names_[key] = std::move(name);
}

void ProcessNames::Forget(const Key& key) {
  const auto known = names_.find(key);
  if (known == names_.end()) return;
  bytes_ -= known->second.size() + kEntrySize;
  names_.erase(known);
}

std::string_view ProcessNames::NameOf(const nettrace::ThreadInfo& thread) const {
  if (!thread.process_id) return "";
  const auto known = names_.find({hosts_.Find(thread), *thread.process_id});
  return known == names_.end() ? std::string_view() : std::string_view(known->second);
}

}  // namespace trace
