// Defines the event that the converter passes to the traces that record it, and the source that the
// event was converted from.
#ifndef TOOLS_COLLECTOR_CONVERT_CONVERTED_EVENT_H_
#define TOOLS_COLLECTOR_CONVERT_CONVERTED_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "nettrace/schema.h"
#include "tools/collector/system/slots.h"

namespace collector {

class ConvertedSource;

// The parts of an event that are equal for many events. Each slot (slots.h) stands for contents
// that a trace writes once.
struct EventKind {
  Slot form;    // identifies the contents of the metadata row
  Slot thread;  // identity of the thread in the TaskTracker
  Slot labels;  // label list; none if the event has no labels, or has own_labels

  friend bool operator==(const EventKind&, const EventKind&) = default;
};

// The stack of an event.
struct EventStack {
  // Addresses of the kernel, then of user space; leaf first. Empty only if the stack is cut.
  std::span<const std::uint64_t> frames;
  std::uint32_t pid = 0;  // process that the stack belongs to
  bool is_cut = false;    // the stack may have more frames than were recorded
};

// A converted event. All traces that record it use the same object.
struct ConvertedEvent {
  EventKind kind;
  std::uint64_t timestamp = 0;  // session clock, ns
  std::span<const std::byte> payload;
  // Labels of this event only, or null. If not null, kind.labels is none.
  const nettrace::Labels* own_labels = nullptr;
  const EventStack* stack = nullptr;  // null: the event has none
  // The sample and schema that this event was converted from. Valid as long as the event.
  const ConvertedSource* source = nullptr;
  bool undecoded = false;  // not decodable: the payload is the reason and the event's bytes
};

// The sample that an event was converted from, and its schema. A trace uses it only if the event's
// form or label list is new to the trace, or if its file cannot hold the event's row.
class ConvertedSource {
 public:
  virtual ~ConvertedSource() = default;

  // Each function takes an event whose `source` is this object. The event may be a result of
  // AsUndecoded().
  //
  // Returns the metadata row of the event's form. Its EventId is the event's own id, or 0 if the
  // event has no id or ValueForms::AreUsual() is false for the form (event_schema.h).
  virtual nettrace::EventMetadata MetadataFor(const ConvertedEvent& event) const = 0;
  // Returns the labels of the list event.kind.labels; no labels if there is no list.
  virtual nettrace::Labels ListedLabels(const ConvertedEvent& event) const = 0;
  // Returns an undecoded event, for a trace whose file cannot hold the event's row. Its payload
  // consists of `reason` and the bytes of `event`, and is stored in `*payload`.
  virtual ConvertedEvent AsUndecoded(const ConvertedEvent& event, std::string_view reason,
                                     std::vector<std::byte>* payload) const = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_CONVERTED_EVENT_H_
