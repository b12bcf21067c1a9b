// The files that a query reads. Each table of a query reads them separately.
#ifndef TOOLS_NETTRACE_QUERY_INPUTS_H_
#define TOOLS_NETTRACE_QUERY_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "libnettrace-writer/read/spill_file.h"
#include "nettrace/reader.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/process_names.h"

namespace tools::query {

// Keeps the names that rows refer to, and stores each name once.
class NamePool {
 public:
  // Maximum number of bytes of names.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  // Returns the name, valid as long as the pool; nullopt if the pool is full.
  std::optional<std::string_view> Add(std::string_view name);

 private:
  std::set<std::string, std::less<>> names_;
  std::size_t bytes_ = 0;
};

class Inputs {
 public:
  // Maximum number of Reading objects at a time. Each needs memory for sorting, and for the
  // metadata rows, threads, stacks and labels of the input.
  static constexpr std::size_t kMaxReaders = 16;

  // `progress` must outlive this object.
  Inputs(std::vector<std::string> paths, const trace::EventFilter& filter, Progress* progress)
      : files_(std::move(paths)), filter_(filter), progress_(progress) {}

  // Opens the input once, so that errors are found before the query starts. If the input is a
  // single pipe, first copies it to a temporary file, because each table reads the input from its
  // beginning. The messages of errors name the file.
  absl::Status Check();
  std::string Name() const { return files_.Name(); }

  // Reads the events that the filter selects. Counts as a reader until it is destroyed.
  class Reading;
  // Opens a reading of the input from its beginning. Fails with ResourceExhausted if there are
  // kMaxReaders readers.
  absl::StatusOr<std::unique_ptr<Reading>> Open();

  // Adds a remark about rows that a table lacks. Does nothing if the remark has already been added.
  void AddRemark(const std::string& remark);
  const std::vector<std::string>& remarks() const { return remarks_; }
  // Returns the damage of the input, as far as it was read.
  const std::vector<InputFiles::Problem>& problems() const { return problems_; }

 private:
  class CopySource;
  absl::StatusOr<InputFiles::Opened> OpenReader();
  absl::Status CopyPipe();

  const InputFiles files_;
  const trace::EventFilter filter_;
  Progress* const progress_;
  nettrace::internal::SpillFile copy_{""};
  bool is_copied_ = false;
  std::size_t readers_ = 0;
  std::optional<absl::Time> first_;  // time of the first event that the filter selects
  std::vector<std::string> remarks_;
  std::vector<InputFiles::Problem> problems_;
};

// Reads in steps, like trace::EventStream, and numbers the events.
class Inputs::Reading {
 public:
  using Step = trace::EventStream::Step;

  Reading(Inputs* inputs, InputFiles::Opened opened)
      : inputs_(*inputs),
        opened_(std::move(opened)),
        stream_(std::move(opened_.reader), {.filter = &inputs->filter_, .names = &processes_}) {
    ++inputs_.readers_;
  }
  ~Reading() { --inputs_.readers_; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  Step Next();
  // Returns the error of the temporary file for sorting. Must be called after Next has returned
  // kEnd.
  const absl::Status& status() const { return stream_.sort_status(); }

  // Returns how many events the filter has selected up to this step. At an event that it selects,
  // this is the number of the event, from 1 on.
  std::uint64_t number() const { return number_; }
  const nettrace::Event& event() const { return stream_.event(); }
  const trace::Loss& loss() const { return stream_.loss(); }
  absl::Time time() const { return stream_.time(); }
  // Returns the time of the step in ns since the first event that the filter selects; negative if
  // the step is earlier, and 0 as long as that event is unknown.
  std::int64_t relative() const;
  const nettrace::Reader& reader() const { return stream_.reader(); }
  const trace::ProcessNames& processes() const { return processes_; }
  trace::PayloadJson* payloads() { return &payloads_; }

 private:
  Inputs& inputs_;
  InputFiles::Opened opened_;  // its reader is in stream_
  trace::ProcessNames processes_;
  trace::PayloadJson payloads_{trace::PayloadStyle::kForPrograms};
  trace::EventStream stream_;
  std::uint64_t number_ = 0;
};

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_INPUTS_H_
