// Writes small traces for the tests of `nettrace report`.
#ifndef TESTS_PROGRAMS_NETTRACE_REPORT_TRACE_H_
#define TESTS_PROGRAMS_NETTRACE_REPORT_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"

namespace report_traces {

inline constexpr std::uint64_t kStart = 5'000'000'000;  // ticks, each a nanosecond
inline constexpr std::uint64_t kMicrosecond = 1000;
inline constexpr std::uint8_t kStartOpcode = 1;
inline constexpr std::uint8_t kStopOpcode = 2;

// Ends the program if a step failed: everything written here is valid.
inline void Must(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "a trace cannot be written: " << status << "\n";
  std::exit(1);
}
template <typename T>
T Must(absl::StatusOr<T> value) {
  Must(value.status());
  return *std::move(value);
}

// Returns an id whose bytes are all `number`.
inline nettrace::Guid IdOf(std::uint8_t number) {
  nettrace::Guid id;
  id.fill(std::byte{number});
  return id;
}

class Trace {
 public:
  explicit Trace(const std::string& path, nettrace::KeyValues keys = {}) {
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    info.sync_ticks = static_cast<std::int64_t>(kStart);
    info.key_values = std::move(keys);
    writer_ = Must(nettrace::Writer::Create(Must(nettrace::FdSink::Create(path)), info));
    for (const char* name : {"CPU 0", "CPU 1"}) {
      nettrace::ThreadInfo cpu;
      cpu.name = name;
      cpus_.push_back(Must(writer_->AddThread(cpu)));
    }
  }

  nettrace::ThreadIndex AddThread(const std::string& name, std::uint64_t pid, std::uint64_t tid) {
    nettrace::ThreadInfo thread;
    thread.name = name;
    thread.process_id = pid;
    thread.thread_id = tid;
    return Must(writer_->AddThread(thread));
  }

  // Adds the metadata of a kind of event with one field, a number or a text.
  nettrace::MetadataId AddKind(const std::string& provider, const std::string& name,
                               std::uint8_t opcode, const std::string& field, bool is_text,
                               std::uint8_t level = 4) {
    nettrace::EventMetadata metadata;
    metadata.provider = provider;
    metadata.name = name;
    metadata.event_id = ++last_id_;
    metadata.level = level;
    metadata.opcode = opcode;
    metadata.fields = {is_text ? nettrace::MakeField<std::u16string_view>(field)
                               : nettrace::MakeField<std::uint32_t>(field)};
    return Must(writer_->AddMetadata(metadata));
  }

  void Number(nettrace::MetadataId kind, nettrace::ThreadIndex thread, std::uint64_t ticks,
              std::uint32_t number, std::optional<nettrace::Guid> activity = std::nullopt,
              std::optional<nettrace::Guid> related = std::nullopt) {
    nettrace::PayloadEncoder payload(&kNumber);
    Write(kind, thread, ticks, Must(payload.UInt(number).Finish()), activity, related);
  }
  void Text(nettrace::MetadataId kind, nettrace::ThreadIndex thread, std::uint64_t ticks,
            std::u16string_view text) {
    nettrace::PayloadEncoder payload(&kText);
    Write(kind, thread, ticks, Must(payload.Utf16(text).Finish()), std::nullopt, std::nullopt);
  }

  void Lose(std::size_t cpu, std::uint64_t count) { Must(writer_->AddLost(cpus_[cpu], count)); }
  void EndInterval(std::uint64_t ticks) { Must(writer_->WriteSequencePoint(kStart + ticks)); }
  void Finish() { Must(writer_->Finish()); }

 private:
  static const std::vector<nettrace::Field> kNumber;
  static const std::vector<nettrace::Field> kText;

  template <typename Bytes>
  void Write(nettrace::MetadataId kind, nettrace::ThreadIndex thread, std::uint64_t ticks,
             const Bytes& payload, std::optional<nettrace::Guid> activity,
             std::optional<nettrace::Guid> related) {
    nettrace::Labels labels;
    labels.activity_id = activity;
    labels.related_activity_id = related;
    nettrace::EventRow row;
    row.metadata_id = kind;
    row.capture_thread = cpus_[count_ % 2];
    row.processor = static_cast<std::uint32_t>(count_ % 2);
    row.thread = thread;
    row.timestamp = kStart + ticks;
    row.label_list_id = Must(writer_->InternLabels(labels));
    Must(writer_->WriteEvent(row, payload));
    ++count_;
  }

  std::unique_ptr<nettrace::Writer> writer_;
  std::vector<nettrace::ThreadIndex> cpus_;
  std::uint32_t last_id_ = 0;
  std::uint64_t count_ = 0;
};

inline const std::vector<nettrace::Field> Trace::kNumber = {
    nettrace::MakeField<std::uint32_t>("n")};
inline const std::vector<nettrace::Field> Trace::kText = {
    nettrace::MakeField<std::u16string_view>("t")};

}  // namespace report_traces

#endif  // TESTS_PROGRAMS_NETTRACE_REPORT_TRACE_H_
