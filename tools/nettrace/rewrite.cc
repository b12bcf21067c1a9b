#include "tools/nettrace/rewrite.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libnettrace-writer/merge/copier.h"
#include "nettrace/sink.h"
#include "nettrace/time_ordered_reader.h"
#include "nettrace/writer.h"
#include "tools/nettrace/open_input.h"

namespace tools {
namespace {

using Step = nettrace::TimeOrderedReader::Step;

// A sequence point follows after so many events, so that readers need not keep more to sort them.
constexpr std::uint64_t kIntervalEvents = 1 << 20;
constexpr std::uint64_t kMaxTimestamp = std::numeric_limits<std::int64_t>::max();

// A file that takes its name only when it is whole.
class NewFile {
 public:
  explicit NewFile(std::string path)
      : path_(std::move(path)), temporary_(absl::StrCat(path_, ".", getpid(), ".tmp")) {}
  ~NewFile() {
    if (created_) unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  absl::StatusOr<std::unique_ptr<nettrace::FdSink>> Create() {
    // A device, say /dev/null, would be gone after the rename.
    struct stat facts = {};
    if (stat(path_.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
      return absl::FailedPreconditionError("is no regular file, so no file can take its place");
    }
    auto sink = nettrace::FdSink::Create(temporary_);
    created_ = sink.ok();
    return sink;
  }
  absl::Status Keep() {
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename to ", path_));
    }
    created_ = false;
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::string temporary_;
  bool created_ = false;
};

// Adds what another file says of itself. A CPU of any of the files must be below the
// HardwareThreadCount, by which readers size tables; several processes are not the ProcessId.
void AddKeyValues(const nettrace::KeyValues& more, nettrace::KeyValues* to) {
  for (const auto& [key, value] : more) {
    const auto same = [&key = key](const auto& entry) { return entry.first == key; };
    const auto found = std::find_if(to->begin(), to->end(), same);
    std::uint64_t ours = 0;
    std::uint64_t theirs = 0;
    if (found == to->end()) {
      to->emplace_back(key, value);
    } else if (key == "HardwareThreadCount" && absl::SimpleAtoi(value, &theirs) &&
               (!absl::SimpleAtoi(found->second, &ours) || theirs > ours)) {
      found->second = value;
    } else if (key == "ProcessId" && found->second != value) {
      found->second.clear();
    }
  }
}

struct Input {
  std::string path;
  std::unique_ptr<nettrace::TimeOrderedReader> reader;
  std::unique_ptr<nettrace::internal::Copier> copier;
  bool has_event = false;
  std::uint64_t timestamp = 0;  // of that event, in the copy's clock
};

class Rewriter {
 public:
  explicit Rewriter(const Rewrite& rewrite) : rewrite_(rewrite), progress_(rewrite.command) {}

  // False, and printed, if an input cannot be opened.
  bool OpenInputs();
  absl::Status Run(std::unique_ptr<nettrace::Sink> sink);
  // Prints what was wrong with the inputs; false if that must not be.
  bool ReportInputs() const;
  void PrintSummary() const;

 private:
  absl::Status Copy(std::unique_ptr<nettrace::Sink> sink);
  absl::Status Advance(Input* input);
  absl::Status CopyEvent(Input* input);
  absl::Status SequencePoint(std::uint64_t timestamp);

  const Rewrite& rewrite_;
  Progress progress_;
  std::vector<Input> inputs_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<nettrace::internal::MetadataCopies> metadata_;
  std::uint64_t last_timestamp_ = 0;
  std::uint64_t last_point_ = 0;
  std::uint64_t lost_at_point_ = 0;
  std::uint64_t events_since_point_ = 0;
};

bool Rewriter::OpenInputs() {
  for (const std::string& path : rewrite_.inputs) {
    absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader = OpenInput(path, &progress_);
    if (!reader.ok()) {
      PrintInputError(rewrite_.command, path, reader.status());
      return false;
    }
    Input& input = inputs_.emplace_back();
    input.path = path;
    input.reader =
        std::make_unique<nettrace::TimeOrderedReader>(*std::move(reader), rewrite_.sorting);
  }
  return true;
}

absl::Status Rewriter::Run(std::unique_ptr<nettrace::Sink> sink) {
  absl::Status status = Copy(std::move(sink));
  progress_.Hide();
  return status;
}

absl::Status Rewriter::Copy(std::unique_ptr<nettrace::Sink> sink) {
  std::vector<nettrace::TraceInfo> traces;
  for (const Input& input : inputs_) traces.push_back(input.reader->reader().trace());
  nettrace::TraceInfo clock = nettrace::internal::CommonClock(traces);
  // Stacks of 8-byte pointers do not fit a trace of 4-byte ones.
  for (const nettrace::TraceInfo& trace : traces) {
    clock.pointer_size = std::max(clock.pointer_size, trace.pointer_size);
    if (&trace != &traces.front()) AddKeyValues(trace.key_values, &clock.key_values);
  }
  std::erase_if(clock.key_values, [](const auto& entry) {
    return entry.first == "ProcessId" && entry.second.empty();
  });
  auto writer =
      nettrace::Writer::Create(std::move(sink), clock, nettrace::internal::CopyWriterOptions());
  if (!writer.ok()) return writer.status();
  writer_ = *std::move(writer);
  metadata_ = std::make_unique<nettrace::internal::MetadataCopies>(writer_.get());
  for (Input& input : inputs_) {
    input.copier = std::make_unique<nettrace::internal::Copier>(&input.reader->reader(), clock,
                                                                writer_.get(), metadata_.get());
    if (absl::Status status = Advance(&input); !status.ok()) return status;
  }
  while (true) {
    Input* earliest = nullptr;
    for (Input& input : inputs_) {
      if (input.has_event && (earliest == nullptr || input.timestamp < earliest->timestamp)) {
        earliest = &input;
      }
    }
    if (earliest == nullptr) break;
    if (absl::Status status = CopyEvent(earliest); !status.ok()) return status;
    if (absl::Status status = Advance(earliest); !status.ok()) return status;
  }
  // States the last numbers, and so what was lost at the end.
  std::uint64_t end = last_timestamp_;
  if (writer_->stats().lost > lost_at_point_ && last_point_ < kMaxTimestamp) {
    end = std::max(end, last_point_ + 1);
  }
  if (absl::Status status = SequencePoint(end); !status.ok()) return status;
  return writer_->Finish();
}

// Goes to the input's next event.
absl::Status Rewriter::Advance(Input* input) {
  input->has_event = false;
  while (true) {
    switch (input->reader->Next()) {
      case Step::kEvent:
        input->has_event = true;
        input->timestamp = input->copier->Convert(input->reader->event().timestamp);
        return absl::OkStatus();
      case Step::kSequencePoint: {
        const nettrace::SequencePoint& point = input->reader->sequence_point();
        if (absl::Status status = input->copier->CopySequencePoint(point); !status.ok()) {
          return status;
        }
        // With one input its intervals are kept; with several there is no such point in common.
        const std::uint64_t time =
            inputs_.size() == 1 ? input->copier->Convert(point.timestamp) : last_timestamp_;
        if (absl::Status status = SequencePoint(std::max(time, last_timestamp_)); !status.ok()) {
          return status;
        }
        break;
      }
      case Step::kRemovedThread:
        if (absl::Status status = input->copier->CopyRemovedThread(input->reader->removed_thread());
            !status.ok()) {
          return status;
        }
        break;
      case Step::kEnd:
        return absl::OkStatus();
    }
  }
}

absl::Status Rewriter::CopyEvent(Input* input) {
  const nettrace::Event& event = input->reader->event();
  last_timestamp_ = std::max(last_timestamp_, input->timestamp);
  if (!rewrite_.filter.Passes(input->reader->reader(), event)) {
    return input->copier->SkipEvent(event);
  }
  if (events_since_point_ >= kIntervalEvents) {
    if (absl::Status status = SequencePoint(last_timestamp_); !status.ok()) return status;
  }
  ++events_since_point_;
  return input->copier->CopyEvent(event);
}

absl::Status Rewriter::SequencePoint(std::uint64_t timestamp) {
  // Each must be later than the one before, and nothing that is still to come be earlier.
  if (timestamp <= last_point_) return absl::OkStatus();
  for (const Input& input : inputs_) {
    if (input.reader->in_parts()) return absl::OkStatus();
  }
  last_point_ = timestamp;
  lost_at_point_ = writer_->stats().lost;
  last_timestamp_ = std::max(last_timestamp_, timestamp);
  events_since_point_ = 0;
  return writer_->WriteSequencePoint(timestamp);
}

bool Rewriter::ReportInputs() const {
  bool good = true;
  for (const Input& input : inputs_) {
    const absl::Status& status = input.reader->reader().status();
    if (!status.ok()) {
      PrintInputError(rewrite_.command, input.path, status);
      // What is wrong with the bytes is known then; what cannot be read may be read another time.
      good = good && rewrite_.accept_damage && absl::IsDataLoss(status);
    }
    if (input.copier->stats().refused > 0) {
      absl::FPrintF(stderr,
                    "nettrace %s: %s: %d events are out of the order of time; they count as lost\n",
                    rewrite_.command, input.path, input.copier->stats().refused);
    }
  }
  return good;
}

void Rewriter::PrintSummary() const {
  absl::FPrintF(stderr, "nettrace %s: %s: %d events, %d bytes\n", rewrite_.command, rewrite_.output,
                writer_->stats().events, writer_->stats().bytes);
}

}  // namespace

int RunRewrite(const Rewrite& rewrite) {
  if (rewrite.output == "-") {
    absl::FPrintF(stderr,
                  "nettrace %s: -o -: the output appears as a whole, so it must be a file; name "
                  "one\n",
                  rewrite.command);
    return kExitUnreadable;
  }
  Rewriter rewriter(rewrite);
  if (!rewriter.OpenInputs()) return kExitUnreadable;
  NewFile file(rewrite.output);
  absl::StatusOr<std::unique_ptr<nettrace::FdSink>> sink = file.Create();
  absl::Status status = sink.ok() ? rewriter.Run(*std::move(sink)) : sink.status();
  if (!status.ok()) {
    PrintInputError(rewrite.command, rewrite.output, status);
    return kExitFailed;
  }
  if (!rewriter.ReportInputs()) {
    absl::FPrintF(stderr,
                  "nettrace %s: nothing was written; 'nettrace repair' takes what is whole\n",
                  rewrite.command);
    return kExitFailed;
  }
  status = file.Keep();
  if (!status.ok()) {
    PrintInputError(rewrite.command, rewrite.output, status);
    return kExitFailed;
  }
  rewriter.PrintSummary();
  return 0;
}

}  // namespace tools
