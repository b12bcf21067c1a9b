// Writes a trace of the Common Trace Format, version 1.8 or 2. The trace is a folder with the file
// `metadata`, in TSDL or JSON, a stream for each CPU, and a stream for events whose CPU is unknown.
// The streams of both versions are equal, except that empty texts are encoded differently
// (event_class.h).
//
// In an invalid file, an event after a sequence point may be earlier than the previous event of its
// CPU. Such an event goes to an additional stream of that CPU, because readers merge streams by
// time.
//
// Memory is limited to kMaxBuffered bytes of events, and kMaxMetadata bytes of metadata.
#ifndef TOOLS_NETTRACE_EXPORT_CTF_CTF_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_CTF_CTF_EXPORTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "tools/nettrace/export/ctf/event_class.h"
#include "tools/nettrace/export/ctf/stream.h"
#include "tools/nettrace/export/ctf/trace_class.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/output/atomic_file.h"

namespace tools::ctf {

class CtfExporter : public exporting::Exporter {
 public:
  static constexpr std::size_t kMaxBuffered = std::size_t{32} << 20;
  // Maximum bytes of all declarations of event classes. The limit excludes no usable trace, because
  // readers of CTF cannot process as much metadata.
  static constexpr std::size_t kMaxMetadata = std::size_t{64} << 20;
  static constexpr std::size_t kMaxStreams = 8192;
  static constexpr std::size_t kMaxStreamsOfCpu = 64;

  // `folder` must have been created, and must outlive this object.
  CtfExporter(const nettrace::Reader& reader, Version version, Profile profile,
              output::AtomicFolder* folder);

  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool threads_too) override;
  absl::Status Finish() override;
  std::string Remark() const override;

 private:
  using Cpu = std::optional<std::uint32_t>;

  // Converts a time to ns since clock_start_. A time that CTF readers do not support becomes the
  // nearest supported time, and is counted in events_moved_.
  std::uint64_t ClockTime(absl::Time time);
  // Returns a stream of `cpu` whose last event or loss is not later than `time`. Creates it if
  // there is none. Fails with Unimplemented if there would be more than kMaxStreamsOfCpu or
  // kMaxStreams.
  absl::StatusOr<Stream*> StreamAt(const Cpu& cpu, std::uint64_t time);
  // Returns the number of the event class in streams of `stream_class`. Declares the class if it is
  // new. Fails with Unimplemented if the declarations would exceed kMaxMetadata. See EventClassOf
  // for `with_fields`.
  absl::StatusOr<std::uint32_t> ClassOf(const nettrace::EventMetadata& metadata, bool with_fields,
                                        std::uint32_t stream_class);
  absl::Status PutEvent(const exporting::ExportedEvent& event);
  absl::Status FlushStreams();

  // The event classes of one metadata row.
  struct RowClasses {
    // Numbers of the event classes. The first index is the stream class. The second index is 1 for
    // the class with the fields of the row, and 0 for the class without them.
    std::optional<std::uint32_t> ids[kStreamClasses][2];
  };

  const Version version_;
  output::AtomicFolder* const folder_;
  const EventEncoder encoder_;
  const std::int64_t clock_start_;  // ns since 1970
  std::vector<std::unique_ptr<Stream>> streams_;
  absl::flat_hash_map<Cpu, std::vector<Stream*>> streams_of_cpu_;
  // For each capture thread, the CPU of its last event.
  absl::flat_hash_map<nettrace::ThreadIndex, Cpu> cpu_of_thread_;
  absl::flat_hash_map<const nettrace::EventMetadata*, RowClasses> classes_of_row_;
  // Numbers of event classes by their declarations, for each stream class. A file may repeat its
  // metadata rows after a sequence point. Equal declarations share one class.
  absl::node_hash_map<std::string, std::uint32_t> classes_[kStreamClasses];
  TraceClass trace_;
  std::size_t metadata_size_ = 0;
  std::size_t buffered_ = 0;
  nettrace::internal::ByteWriter fields_;  // context and payload of the current event
  // Number of events and losses with times that CTF readers do not support. They get the nearest
  // supported time.
  std::uint64_t events_moved_ = 0;
};

}  // namespace tools::ctf

#endif  // TOOLS_NETTRACE_EXPORT_CTF_CTF_EXPORTER_H_
