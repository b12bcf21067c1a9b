// Converts samples into NetTrace events.
//
// Input: the format of each tracepoint, then its samples. Output: for each sample, an event that is
// independent of the traces that record it. It refers to its form (the contents of its metadata
// row), its thread's identity and its labels by slots (tools/collector/system/slots.h). The
// TraceWriter (trace_writer.h) of each trace that records the event replaces the slots with the
// trace's ids, and writes the event.
//
// The metadata of an EventHeader event is compiled once for each schema into a payload program
// (event_schema.h, payload_program.h), and once for each trace into a metadata row. A kernel
// tracepoint's format is compiled into both (tracepoint_schema.h). Ids of W3C trace contexts are
// also converted to labels (trace_context.h). The first event of a kind from .NET contains the
// description from which the metadata row is made (dotnet_schemas.h). The payload of .NET events
// stays unchanged.
//
// Guarantees: Another process has written the event in an EventHeader sample, so any part of it may
// be invalid. An event that cannot be decoded is written as its bytes, with the name "Undecoded".
// An event of a new kind is also written as its bytes if its process makes new kinds too fast. A
// process can therefore neither use more than its share of memory (schema_shares.h) nor cause the
// loss of another process's events. No memory is allocated for an event while its schema is known.
// An evicted schema is compiled again when it is used.
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
#include "tools/collector/convert/converted_event.h"
#include "tools/collector/convert/dotnet_schemas.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/collector/convert/schema_shares.h"
#include "tools/collector/convert/tracepoint_schema.h"
#include "tools/collector/identity/kernel_symbols.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/system/slots.h"

namespace collector {

// Converts the samples of all tracepoints of a capture. Not thread-safe.
class SampleConverter {
 public:
  // If a schema has this number of forms, its new forms do not distinguish which nullable fields
  // are null. If it has twice this number, its new forms do not distinguish sizes either.
  static constexpr std::size_t kMaxForms = 64;
  static constexpr char kUndecoded[] = "Undecoded";

  // `tasks` must outlive this object.
  explicit SampleConverter(TaskTracker* tasks, const SchemaShares::Limits& limits = {});
  SampleConverter(const SampleConverter&) = delete;
  SampleConverter& operator=(const SampleConverter&) = delete;

  // Registers the format of tracepoint `id`. Does nothing if the tracepoint is known. Fails with
  // InvalidArgument if the format cannot be parsed or a file cannot contain its fields.
  absl::Status AddTracepoint(int id, const std::string& system, const std::string& event,
                             const std::string& format);
  // Adds the tracepoint `name` of EventHeader events that services write to rings in user space, or
  // that are made from entries of the journal. A sample of it has only the event, from its header
  // on. Fails with InvalidArgument if `name` is not the name of an EventHeader tracepoint.
  absl::Status AddRingTracepoint(int id, const std::string& name);
  // Adds an id that stands for all streams of .NET of a session.
  void AddDotnetStreams(int id);
  // Adds a kind of event that has the provider Universal.Events and one field, Value. TraceEvent
  // expects the events `cpu` and `cswitch` in this form.
  void AddUniversalEvent(int id, const std::string& name);
  // Sets the maximum number of frames of the tracepoint's stacks. A stack with this number of
  // frames may have been cut. The tracepoint must be known.
  void SetMaxFrames(int id, std::size_t max_frames) {
    tracepoints_[static_cast<std::size_t>(id)]->max_frames = max_frames;
  }
  // Removes a tracepoint and all its schemas. Does nothing if the tracepoint is not known.
  void RemoveTracepoint(int id);
  bool Knows(std::uint16_t id) const {
    return id < tracepoints_.size() && tracepoints_[id] != nullptr;
  }

  // Converts a sample of the tracepoint `id`, which must be known. The event, and what it refers
  // to, is valid until the next call, and only as long as the sample.
  const ConvertedEvent& Convert(std::uint16_t id, const SampleRecord& sample,
                                std::uint64_t timestamp) {
    ConvertSample(id, sample, timestamp);
    return event_;
  }
  // Converts a sample to an event of a kind that AddUniversalEvent() added, with this value.
  // Convert() gives such events the value 1.
  const ConvertedEvent& ConvertValue(int id, const SampleRecord& sample, std::uint64_t timestamp,
                                     std::uint64_t value);
  // Returns whether there are tracepoints for .NET. If so, Learn() must be called before Convert().
  bool has_dotnet() const { return dotnet_tracepoints_ != 0; }
  // Reads the description of a kind of .NET event from a sample that is passed to Convert() later.
  // The samples of CPUs are converted one CPU after the other. The description may therefore be in
  // a sample that is converted after the first sample that needs it.
  void Learn(std::uint16_t id, const SampleRecord& sample, std::uint64_t timestamp);
  // Converts an event that came through a ring in user space or from the journal. The thread with
  // the slot `thread` wrote it. AddRingTracepoint() must have added the tracepoint.
  const ConvertedEvent& ConvertOfThread(int id, Slot thread, const SampleRecord& sample,
                                        std::uint64_t timestamp);
  // Does the work of Convert for an event of a stream of .NET, whose payload is `sample.raw`.
  // AddDotnetStreams must have added the id.
  const ConvertedEvent& ConvertOfStream(int id, Slot thread, const DotnetStreamEvent& event,
                                        const SampleRecord& sample, std::uint64_t timestamp);

 private:
  static constexpr std::size_t kRecentSchemas = 256;
  static constexpr std::uint32_t kRecentActivities = 256;
  static constexpr std::size_t kMaxSymbolLists = 65536;

  struct Tracepoint;
  struct Schema;
  // A form of a schema: the types that the fields have in some of the schema's events, and the
  // program that writes payloads of these types.
  struct Form {
    Slot slot;  // none until the first event of this form
    PayloadProgram program;
  };
  // Distinguishes the schemas of a tracepoint. The opcode is part of the key and not a label of
  // events, because TraceLog, which PerfView uses, reads it only from the metadata row.
  struct SchemaKey {
    std::uint64_t header = 0;  // flags, version, id, tag and opcode
    std::string_view metadata;
    friend bool operator==(const SchemaKey&, const SchemaKey&) = default;
  };
  struct SchemaHash {
    std::size_t operator()(const SchemaKey& key) const;
  };
  // An entry of SchemaShares: a schema or a form.
  struct Kept : SchemaShares::Entry {
    Schema* schema = nullptr;  // the schema itself, or the schema of the form
    std::uint64_t age = 0;     // SchemaShares::age() when the entry was last marked as used
  };
  // A form of a schema with nullable fields.
  struct NullableForm : Kept {
    std::string seen;  // for each nullable field, a set of SeenValue; then the TextForm
    Form form;
  };
  // Bytes before the metadata in most events: the header, and the header of one extension.
  static constexpr std::size_t kStart =
      sizeof(eh::wire::Header) + sizeof(eh::wire::ExtensionHeader);
  struct Schema : Kept {
    Tracepoint* tracepoint = nullptr;
    SchemaKey key;         // a view into `metadata`
    std::string metadata;  // a copy of the event's metadata
    // The first bytes of the schema's plain events (`start`), and their parsed parts (`view`),
    // which are equal for all of them. A plain event has the tracepoint's level, no labels, and no
    // extension other than its metadata. `view` refers to `metadata`, and has no data. `start` and
    // `view` are empty before the first plain event.
    std::array<std::byte, kStart> start = {};
    eh::EventView view = {};
    Form bytes;  // for ASCII text; without a slot if there are nullable fields
    Form utf16;  // for other text; compiled when the first event needs it
    absl::flat_hash_map<std::string, std::unique_ptr<NullableForm>> forms;  // by `seen`
    std::size_t nullable_fields = 0;
    bool usable = true;  // false if the metadata is malformed
    bool trace_context = false;
  };

  struct Tracepoint {
    std::string name;  // name of the event
    bool is_event_header = false;
    bool is_universal = false;  // AddUniversalEvent has added it
    bool is_dotnet = false;
    bool is_dotnet_streams = false;  // AddDotnetStreams has added it
    std::string provider;
    eh::TracepointName parts;                 // views into `name`
    SchemaShares::Provider* share = nullptr;  // null for other than EventHeader tracepoints
    std::size_t max_frames = 0;               // maximum frames of a stack; 0: events have no stacks
    TracepointSchema layout;
    // Metadata rows. `bytes` and `utf16` are of a tracepoint that is not an EventHeader tracepoint:
    // for events whose text is all ASCII, and for events with other text.
    Slot bytes;
    Slot utf16;
    Slot undecoded;  // for events that cannot be decoded
    absl::flat_hash_map<SchemaKey, std::unique_ptr<Schema>, SchemaHash> schemas;
    // Recently used schemas by a hash of a few bytes of their keys; null for unused entries. Empty
    // if this is not an EventHeader tracepoint.
    std::vector<Schema*> recent;
  };

  // Addresses of kernel code that an event contains in its fields.
  struct KernelAddresses {
    static constexpr std::size_t kMax = 4;  // further addresses of an event are not named
    const Tracepoint* tracepoint = nullptr;
    std::array<std::uint64_t, kMax> addresses = {};
    friend bool operator==(const KernelAddresses&, const KernelAddresses&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const KernelAddresses& key) {
      return H::combine(std::move(h), key.tracepoint, key.addresses);
    }
  };

  // Ids of an activity whose label list has a slot. The slot's index is the index in activities_.
  struct ActivityLabels {
    std::array<std::byte, 32> ids;  // id of the activity, then the related one
    std::size_t size = 0;
    std::uint32_t generation = 0;
  };

  // Source of the current event. Each conversion sets the members that its kind of event uses.
  struct Source : ConvertedSource {
    nettrace::EventMetadata MetadataFor(const ConvertedEvent& event) const override;
    nettrace::Labels ListedLabels(const ConvertedEvent& event) const override;
    ConvertedEvent AsUndecoded(const ConvertedEvent& event, std::string_view reason,
                               std::vector<std::byte>* payload) const override;

    // Returns the bytes of the event; for an EventHeader event, from its header on.
    std::span<const std::byte> bytes() const;
    // Stores the activity ids of an EventHeader event in `*labels`.
    void SetActivity(nettrace::Labels* labels) const;
    // Reads the addresses of kernel code from the event's fields. Returns false if the record is
    // too short to contain all of them.
    bool ReadKernelAddresses(KernelAddresses* key) const;
    void SetKernelSymbols(const KernelAddresses& key, nettrace::Labels* labels) const;

    Tracepoint* tracepoint = nullptr;
    const SampleRecord* sample = nullptr;
    eh::EventView view;                              // the parts of an EventHeader event
    ValueForms forms;                                // forms of its values; refers to seen_
    const DotnetSchemas::Row* dotnet_row = nullptr;  // row of an event of .NET
    // Loaded when the first tracepoint that has addresses of the kernel's code is added.
    std::optional<KernelSymbols> kernel_symbols;
  };

  // Sets `current_` to the sample, and clears `event_` except for its thread and payload.
  void Reset(Tracepoint* tracepoint, const SampleRecord& sample, std::uint64_t timestamp);
  // Does the work of Reset(), and sets the stack of `event_`.
  void Begin(Tracepoint* tracepoint, const SampleRecord& sample, std::uint64_t timestamp);
  // Sets the stack of the event to that of the sample, without the PERF_CONTEXT_ values that
  // separate its parts.
  void SetStack(const SampleStack& stack, std::uint32_t pid);
  void MakeEventHeader(Tracepoint* tracepoint);
  // Does the work of Convert().
  void ConvertSample(std::uint16_t id, const SampleRecord& sample, std::uint64_t timestamp);
  // Does the work of ConvertSample() after Reset() for a sample that has a stack, or whose thread
  // TaskTracker::FindRecent() cannot find.
  void ConvertUncommon(std::uint16_t id, const SampleRecord& sample, std::uint64_t timestamp);
  // Sets the rest of `event_` after its thread and stack.
  void ConvertContents(std::uint16_t id);
  void ConvertKernelEvent();
  void ConvertDotnetEvent(int id);
  // Completes an event of .NET whose row is current_.dotnet_row. If that is null, makes the event
  // undecoded for `reason`.
  void SetDotnetPayload(std::span<const std::byte> payload, std::string_view reason);
  // Sets the payload of an event whose kind AddUniversalEvent() added.
  void SetValue(std::uint64_t value);
  void ConvertEventHeader();
  // Parses the current event, labels it, and returns its schema. Returns null after SetUndecoded()
  // if the event or its schema cannot be used.
  Schema* ParseEventHeader(std::span<const std::byte> bytes);
  // Returns the schema of the current event if the event begins with the same bytes as an earlier
  // plain event of one of the recent schemas, else null.
  Schema* FindByStart(std::span<const std::byte> bytes) const;
  // Stores the start and the parts of the current event, which has no labels, in `schema` if the
  // event is plain.
  void RememberStart(std::span<const std::byte> bytes, Schema* schema);
  // Converts an EventHeader event whose payload cannot be copied unchanged, or whose form depends
  // on its values.
  void ConvertByForm(Schema* schema);
  void SetUndecoded(std::string_view reason);
  // Labels the event with the symbols of the kernel addresses in its fields.
  void LabelKernelSymbols();
  void ForgetSymbolLists();
  // Labels the event with its activity ids.
  void LabelActivity();
  // Returns the schema of the current event, and compiles it if it is new. Returns null, with the
  // reason in `*reason`, if the process may not make another schema now, or if the event has no
  // metadata or malformed metadata.
  Schema* FindSchema(const SchemaKey& key, std::string_view* reason);
  // Compiles `*schema` from the first event that has it.
  void MakeSchema(Schema* schema);
  // Returns the form of `schema` for events with the values in `seen_` and `text`, and compiles it
  // if it is new. Returns null if the process may not make another form now.
  Form* FindForm(TextForm text, Schema* schema);
  Form* FindNullableForm(TextForm text, Schema* schema);
  static nettrace::EventMetadata UndecodedMetadata(const Tracepoint& tracepoint);
  // Returns whether a schema or form may be made for the process of the current event.
  bool MayMake();
  // Adds a new entry of `bytes` bytes to shares_. Other entries may be evicted for it, but not
  // `schema`, which may be null.
  void Keep(Kept* kept, std::size_t bytes, const Schema* schema);
  void MarkUsed(Kept* kept);
  void ForgetRecent();
  // Deletes an evicted entry and everything that belongs to it.
  void Forget(Kept* kept);
  void ReleaseForms(Schema* schema);
  nettrace::Labels& SetLabels() {
    if (event_.own_labels == nullptr) labels_ = nettrace::Labels();
    event_.own_labels = &labels_;
    return labels_;
  }

  TaskTracker* tasks_;
  SchemaShares shares_;
  std::uint64_t age_ = 0;  // SchemaShares::age() when ForgetRecent last ran
  std::vector<std::unique_ptr<Tracepoint>> tracepoints_;  // by id
  SlotAllocator forms_;
  DotnetSchemas dotnet_;
  std::size_t dotnet_tracepoints_ = 0;  // without the ids of AddDotnetStreams()
  // Slots of label lists with kernel symbols. Their indices follow those of activities_. A slot is
  // none if its addresses have no symbols.
  absl::flat_hash_map<KernelAddresses, Slot> symbol_lists_;
  std::uint32_t symbol_generation_ = 1;
  std::vector<ActivityLabels> activities_;  // recently used, by a hash of their ids

  Source current_;
  ConvertedEvent event_;
  nettrace::Labels labels_;  // own labels of event_; change only through SetLabels
  // Payload of the current event, unless it is a part of the sample.
  std::vector<std::byte> payload_;
  std::vector<std::byte> utf16_payload_;
  std::vector<std::byte> undecoded_payload_;
  std::vector<std::uint64_t> frames_;
  EventStack stack_;  // refers to frames_
  std::string seen_;  // set of SeenValue of each nullable field of the current event
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_SAMPLE_CONVERTER_H_
