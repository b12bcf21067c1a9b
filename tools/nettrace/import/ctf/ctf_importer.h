// Converts traces of the Common Trace Format, version 1.8, to a V6 file. Writes the events of all
// streams in order of time.
//
// Memory holds the metadata, a small part of each stream, and the data of TraceOutput.
//
// A trace is untrusted input. The memory and time of this importer are therefore bounded, and it
// returns every error to the caller. It does not use ctf.fs, the reader of libbabeltrace2. ctf.fs
// does not bound memory or time, and libbabeltrace2 aborts the process on some traces
// (docs/design/decisions.md).
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

inline constexpr std::uint64_t kMaxMetadata = std::uint64_t{96} << 20;  // bytes of `metadata`
inline constexpr std::size_t kMaxStreams = 8192;

struct NamedFile {
  std::string name;  // for messages and thread names
  std::unique_ptr<ByteFile> file;
};

class CtfImporter {
 public:
  // Called repeatedly while the traces are read. `bytes_read` counts the bytes since the last call.
  // If the function returns an error, Run returns that error.
  using Check = std::function<absl::Status(std::uint64_t bytes_read)>;

  explicit CtfImporter(Check check = nullptr) : check_(std::move(check)) {}

  // Adds a trace: the content of its file `metadata`, and its streams. Fails with InvalidArgument
  // if the metadata is wrong (the message has the line or byte), or if all traces together have
  // more than kMaxStreams streams. Fails with Unimplemented for CTF 2. Must be called before Run.
  absl::Status AddTrace(std::string_view metadata, std::vector<NamedFile> streams);
  // Writes all traces to `sink`. Returns the errors of the sink, and those of the function `check`
  // that the constructor received. Damage of the input is not an error; damages() returns it.
  absl::Status Run(std::unique_ptr<nettrace::Sink> sink);

  // The first kMaxDamages errors in streams, with their names and offsets.
  static constexpr std::size_t kMaxDamages = 20;
  const std::vector<absl::Status>& damages() const { return damages_; }
  std::uint64_t damage_count() const { return damage_count_; }
  // Return sums over all streams: see StreamReader.
  std::uint64_t packets_missing() const;
  std::uint64_t moved() const;
  // Must be called only after Run has succeeded.
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
  std::int64_t start_ = 0;  // time of tick 0, in ns since 1970
  std::vector<absl::Status> damages_;
  std::uint64_t damage_count_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t bytes_read_ = 0;
  // Buffers for the event that is being written.
  nettrace::internal::ByteWriter context_;
  nettrace::internal::ByteWriter fields_;
  std::string key_;
};

}  // namespace tools::importing::ctf

#endif  // TOOLS_NETTRACE_IMPORT_CTF_CTF_IMPORTER_H_
