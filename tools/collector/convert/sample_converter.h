// The floor of conversion: samples into NetTrace events.
//
// In: the format of each tracepoint, then its samples. Out: for each sample an event, in numbers
// that do not depend on a trace: the slot of its form, of its thread's identity, of its labels
// (tools/collector/base/slots.h), and its payload. A trace_writer.h for each trace that wants the
// event puts the trace's own ids in their place, and writes it. The metadata of an EventHeader
// event is compiled, once a schema, into a payload program (event_schema.h, payload_program.h), and
// once more for each trace into a metadata row; a kernel tracepoint's format is compiled into both
// (tracepoint_schema.h); ids of W3C trace contexts become labels as well (trace_context.h).
//
// Promises: all in a sample but its pid, tid and timestamp was written by another process and may
// be anything. An event that does not decode becomes its bytes, under the name "Undecoded", and so
// does one of a new kind whose process makes those too fast: no process can cost more than its
// bounded share (schema_shares.h), nor another one its events. Nothing is allocated for an event
// while its schema is known; a schema that has gone is made again when it is used.
#ifndef TOOLS_COLLECTOR_CONVERT_SAMPLE_CONVERTER_H_
#define TOOLS_COLLECTOR_CONVERT_SAMPLE_CONVERTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "eventheader/decoder.h"
#include "nettrace/schema.h"
#include "tools/collector/base/slots.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/collector/convert/kernel_symbols.h"
#include "tools/collector/convert/schema_shares.h"
#include "tools/collector/convert/tracepoint_schema.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// What an event has in common with others.
struct EventKind {
  Slot form;    // what its metadata row says
  Slot thread;  // of the TaskTracker
  Slot labels;  // of its label list; none if it has no labels, or some of its own

  friend bool operator==(const EventKind&, const EventKind&) = default;
};

// An event for all traces.
struct ConvertedEvent {
  EventKind kind;
  std::uint64_t timestamp = 0;  // session clock, ns
  std::span<const std::byte> payload;
  bool has_own_labels = false;  // kind.labels is none then
  bool undecoded = false;       // the payload is a reason and the event's bytes
};

// Not thread-safe.
class SampleConverter {
 public:
  // Forms of a schema that tell apart which of its nullable fields are null.
  static constexpr std::size_t kMaxForms = 64;
  static constexpr char kUndecoded[] = "Undecoded";

  // `tasks` outlives this object.
  explicit SampleConverter(TaskTracker* tasks, const SchemaShares::Limits& limits = {});

  // Makes the samples of tracepoint `id` known. A tracepoint that is known stays as it is.
  absl::Status AddTracepoint(int id, const std::string& system, const std::string& event,
                             const std::string& format);
  // Forgets a tracepoint with all its schemas.
  void RemoveTracepoint(int id);
  bool Knows(std::uint16_t id) const {
    return id < tracepoints_.size() && tracepoints_[id] != nullptr;
  }

  // Converts a sample of the tracepoint `id`, which is known. The event, and what it refers to, is
  // valid until the next call, and as long as the sample.
  const ConvertedEvent& Convert(std::uint16_t id, const SampleRecord& sample,
                                std::uint64_t timestamp);

  // Of the event that Convert returned last: what traces need that have not met its form or its
  // labels yet.
  //
  // The metadata row of its form, or of that which AsUndecoded made of it. The EventId is the
  // event's own, or 0 if it has none.
  nettrace::EventMetadata MetadataOf(const ConvertedEvent& event) const;
  const nettrace::Labels& LabelsOf(const ConvertedEvent& event);
  // The same event as its bytes, for a trace whose file cannot hold its row. Valid as the event.
  ConvertedEvent AsUndecoded(const ConvertedEvent& event, std::string_view reason);

 private:
  static constexpr std::size_t kRecentSchemas = 256;
  static constexpr std::uint32_t kRecentActivities = 256;
  static constexpr std::size_t kMaxSymbolLists = 65536;

  struct Tracepoint;
  struct Schema;
  // A schema with the types that suit the values of some of its events.
  struct Form {
    Slot slot;  // none until the first event of this form
    PayloadProgram program;
  };
  // Distinguishes the schemas of a tracepoint. The opcode is one of them, not a label of events:
  // TraceLog, with which PerfView reads, takes it from the metadata row alone.
  struct SchemaKey {
    std::uint64_t header = 0;  // flags, version, id, tag and opcode
    std::string_view metadata;
    friend bool operator==(const SchemaKey&, const SchemaKey&) = default;
  };
  struct SchemaHash {
    std::size_t operator()(const SchemaKey& key) const;
  };
  // What somebody pays for.
  struct Kept : SchemaShares::Entry {
    Schema* schema = nullptr;  // to which it belongs, or which it is
    std::uint64_t age = 0;     // of the shares, when its use was told last
  };
  // A form of a schema with nullable fields.
  struct NullableForm : Kept {
    std::string seen;  // the values seen in it, and the TextForm
    Form form;
  };
  struct Schema : Kept {
    Tracepoint* tracepoint = nullptr;
    SchemaKey key;         // a view into `metadata`
    std::string metadata;  // of the event
    Form bytes;            // for all events; without a slot if there are nullable fields
    Form utf16;            // made when the first text comes that needs it
    absl::flat_hash_map<std::string, std::unique_ptr<NullableForm>> forms;  // by `seen`
    std::size_t nullable_fields = 0;
    bool usable = true;  // false: its metadata is malformed
    bool trace_context = false;
  };

  struct Tracepoint {
    std::string name;  // of the event
    bool is_event_header = false;
    std::string provider;
    eh::TracepointName parts;                 // views into `name`
    SchemaShares::Provider* share = nullptr;  // null if it is no EventHeader tracepoint
    TracepointSchema layout;
    // The forms of its events, if it is no EventHeader tracepoint: of all but those with text that
    // is not ASCII, and of those.
    Slot bytes;
    Slot utf16;
    Slot undecoded;
    absl::flat_hash_map<SchemaKey, std::unique_ptr<Schema>, SchemaHash> schemas;
    // Schemas that were used lately, by a few bytes of their keys; null where there is none. Empty
    // if it is no EventHeader tracepoint.
    std::vector<Schema*> recent;
  };

  // The addresses of the kernel's code in an event.
  struct KernelAddresses {
    static constexpr std::size_t kMax = 4;  // what more an event has is not named
    const Tracepoint* tracepoint = nullptr;
    std::array<std::uint64_t, kMax> addresses = {};
    friend bool operator==(const KernelAddresses&, const KernelAddresses&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const KernelAddresses& key) {
      return H::combine(std::move(h), key.tracepoint, key.addresses);
    }
  };

  // The ids of an activity whose label list has a slot: the index is this one's in activities_.
  struct ActivityLabels {
    std::array<std::byte, 32> ids;  // the activity's, and the related one's
    std::size_t size = 0;
    std::uint32_t generation = 0;
  };

  // What the event at hand was made of.
  struct Current {
    Tracepoint* tracepoint = nullptr;
    const SampleRecord* sample = nullptr;
    eh::EventView view;  // of an EventHeader event
    ValueForms forms;    // of its values; a view into seen_

    // The event: of an EventHeader event from its header on.
    std::span<const std::byte> bytes() const;
  };

  void ConvertKernelEvent();
  void ConvertEventHeader();
  // The same for what has no schema, or does not keep its payload.
  void ConvertByForm(Schema* schema);
  void SetUndecoded(std::string_view reason);
  // Gives the event labels with the symbols of its addresses.
  void LabelKernelSymbols();
  // Reads the addresses of the event at hand; false if it has not all of them.
  bool ReadKernelAddresses(KernelAddresses* key) const;
  void SetKernelSymbols(const KernelAddresses& key, nettrace::Labels* labels) const;
  void ForgetSymbolLists();
  // Gives the event labels with its activity ids.
  void LabelActivity();
  static void SetActivity(const eh::EventView& event, nettrace::Labels* labels);
  static SchemaKey KeyOf(const eh::EventView& event);
  // The schema of the event at hand; null, with the reason, if it has none.
  Schema* FindSchema(const SchemaKey& key, std::string_view* reason);
  // Compiles `*schema` from its first event.
  void MakeSchema(Schema* schema);
  // The form for events with the values that `seen_` and `text` tell; null if there is none and the
  // process may not make one.
  Form* FindForm(TextForm text, Schema* schema);
  Form* FindNullableForm(TextForm text, Schema* schema);
  static nettrace::EventMetadata UndecodedMetadata(const Tracepoint& tracepoint);
  // Whether the process of the event at hand may have something made of its metadata.
  bool MayMake();
  // Counts what was made of it. `schema`, if it is not null, stays.
  void Keep(Kept* kept, std::size_t bytes, const Schema* schema);
  void TellUse(Kept* kept);
  void ForgetRecent();
  // Forgets what was evicted, and all that belongs to it.
  void Forget(Kept* kept);
  void ReleaseForms(Schema* schema);
  nettrace::Labels& SetLabels() {
    event_.has_own_labels = true;
    return labels_;
  }

  TaskTracker* tasks_;
  SchemaShares shares_;
  std::uint64_t age_ = 0;  // of the shares, when schemas were told to be used lately
  std::vector<std::unique_ptr<Tracepoint>> tracepoints_;  // by id
  SlotAllocator forms_;
  // Read when the first tracepoint comes that has addresses of the kernel.
  std::optional<KernelSymbols> kernel_symbols_;
  // The slots of label lists with symbols come after those of activities; none where the addresses
  // have no symbols.
  absl::flat_hash_map<KernelAddresses, Slot> symbol_lists_;
  std::uint32_t symbol_generation_ = 1;
  std::vector<ActivityLabels> activities_;  // used lately, by their ids

  Current current_;
  ConvertedEvent event_;
  nettrace::Labels labels_;         // of event_, if it has any of its own; to be set by SetLabels
  nettrace::Labels shared_labels_;  // scratch: those of a slot
  std::vector<std::byte> payload_;  // scratch
  std::vector<std::byte> utf16_payload_;
  std::vector<std::byte> undecoded_payload_;
  std::string seen_;  // of the event at hand, for each nullable field
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_SAMPLE_CONVERTER_H_
