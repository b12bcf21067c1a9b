// Reads traces of the Common Trace Format, version 1.8, into a V6 file: their streams' events in
// the order of time.
//
// Memory: the metadata, a small part of each stream, and what TraceOutput takes.
#ifndef TOOLS_NETTRACE_IMPORT_CTF_CTF_IMPORTER_H_
#define TOOLS_NETTRACE_IMPORT_CTF_CTF_IMPORTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/sink.h"
#include "tools/nettrace/import/byte_file.h"
#include "tools/nettrace/import/ctf/decoder.h"
#include "tools/nettrace/import/ctf/layout.h"
#include "tools/nettrace/import/ctf/metadata.h"
#include "tools/nettrace/import/ctf/stream_reader.h"
#include "tools/nettrace/import/trace_output.h"

namespace tools::importing::ctf {

inline constexpr std::uint64_t kMaxMetadata = std::uint64_t{96} << 20;  // bytes
inline constexpr std::size_t kMaxStreams = 8192;

struct NamedFile {
  std::string name;  // for messages and threads
  std::unique_ptr<ByteFile> file;
};

class CtfImporter {
 public:
  // Called now and then; an error of it ends Run.
  using Check = std::function<absl::Status(std::uint64_t bytes_read)>;

  explicit CtfImporter(Check check = nullptr) : check_(std::move(check)) {}

  // Adds a trace: the content of its file `metadata`, and its streams. InvalidArgument says what is
  // wrong with the metadata, with its line.
  absl::Status AddTrace(std::string_view metadata, std::vector<NamedFile> streams);
  // Writes all. Errors are those of the sink and of `check`; for damage see damages().
  absl::Status Run(std::unique_ptr<nettrace::Sink> sink);

  // What was wrong with streams, with their names and offsets; the first kMaxDamages of them.
  static constexpr std::size_t kMaxDamages = 20;
  const std::vector<absl::Status>& damages() const { return damages_; }
  std::uint64_t damage_count() const { return damage_count_; }
  std::uint64_t packets_missing() const;
  std::uint64_t moved() const;
  // After Run.
  const TraceOutput& output() const { return *output_; }

 private:
  struct Trace {
    Metadata metadata;
    Layout layout;
    std::unique_ptr<Decoder> decoder;
  };
  struct Stream {
    std::uint32_t trace;
    std::unique_ptr<StreamReader> reader;
  };

  bool Next(Stream* stream);
  void OnDamage(const absl::Status& status);
  absl::Status Create(std::unique_ptr<nettrace::Sink> sink, std::int64_t first_time);
  absl::Status WriteEvent(Stream* stream);
  absl::Status WriteLoss(Stream* stream);
  nettrace::EventMetadata MakeRow(const Stream& stream) const;
  void SetKey(const Stream& stream);
  std::uint64_t TicksOf(std::int64_t time) const;
  absl::Status CheckNow();

  const Check check_;
  std::vector<std::unique_ptr<Trace>> traces_;
  std::vector<Stream> streams_;
  std::unique_ptr<TraceOutput> output_;
  std::int64_t start_ = 0;  // nanoseconds since 1970 of tick 0
  std::vector<absl::Status> damages_;
  std::uint64_t damage_count_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t bytes_read_ = 0;
  // Of the event that is written.
  nettrace::internal::ByteWriter context_;
  nettrace::internal::ByteWriter fields_;
  std::string key_;
};

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_CTF_IMPORTER_H_
