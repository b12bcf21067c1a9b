#include "tools/nettrace/command/rewrite.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nettrace/merger.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/trace/unknown_end.h"

namespace tools {
namespace {

// The inputs of a Merger.
class Inputs {
 public:
  // `rewrite`, `progress` and this object must outlive the merger that AddTo receives.
  Inputs(const Rewrite& rewrite, Progress* progress) : rewrite_(rewrite), progress_(progress) {}

  // Adds the inputs to `merger`. If there are several inputs and all are regular files, each file
  // is open only while the merger needs it, so there may be more inputs than the limit of open
  // files. Prints an error and returns false if an input cannot be opened.
  bool AddTo(nettrace::Merger* merger) {
    const bool is_lazy = FindLazy();
    for (std::size_t i = 0; i < rewrite_.inputs.size(); ++i) {
      if (is_lazy) {
        merger->AddInput([this, i] { return OpenAgain(i); });
        continue;
      }
      absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
          OpenInput(rewrite_.inputs[i], progress_, &facts_.emplace_back(), rewrite_.accept_damage);
      if (!reader.ok()) {
        PrintInputError(rewrite_.command, rewrite_.inputs[i], reader.status());
        return false;
      }
      merger->AddInput(*std::move(reader));
    }
    return true;
  }

  const std::vector<struct stat>& facts() const { return facts_; }  // results of stat, by input
  // Returns whether the merger failed because an input could not be opened.
  bool has_failed() const { return has_failed_; }

 private:
  // Returns whether the merger may open each input only when it needs the input. If so, stores the
  // results of stat of all inputs in facts_.
  bool FindLazy() {
    if (rewrite_.inputs.size() == 1 || rewrite_.accept_damage) return false;
    std::vector<struct stat> facts;
    std::uint64_t bytes = 0;
    for (const std::string& path : rewrite_.inputs) {
      struct stat& file = facts.emplace_back();
      if (stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return false;
      bytes += static_cast<std::uint64_t>(file.st_size);
    }
    progress_->SetTotal(bytes);
    facts_ = std::move(facts);
    return true;
  }

  absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenAgain(std::size_t index) {
    struct stat now = {};
    auto reader = OpenInput(rewrite_.inputs[index], progress_, &now);
    const struct stat& before = facts_[index];
    if (reader.ok() && (now.st_dev != before.st_dev || now.st_ino != before.st_ino)) {
      reader = absl::AbortedError("was replaced while it was read; try again");
    }
    has_failed_ = !reader.ok();
    return reader;
  }

  const Rewrite& rewrite_;
  Progress* const progress_;
  std::vector<struct stat> facts_;
  bool has_failed_ = false;
};

// Prints how many events of an input got another time, or were left out, in the output.
void ReportEvents(const char* command, const std::string& input,
                  const nettrace::Merger::NotAsItWas& events) {
  if (events.moved > 0) {
    absl::FPrintF(stderr,
                  "nettrace %s: %s: events that are earlier than the sequence point before them: "
                  "%d; they got its time, and their original time is in the label %s\n",
                  command, input, events.moved, nettrace::kLabelOriginalTimestamp);
  }
  if (events.not_kept > 0) {
    absl::FPrintF(stderr,
                  "nettrace %s: %s: left out %s, counted as lost; the reason for the first: %s\n",
                  command, input, base::Counted(events.not_kept, "event"),
                  base::Printable(events.why_not_kept));
  }
}

// If the input lacks its end block, prints the time for which losses are unknown, and returns
// events that record this time. Otherwise, returns no events.
std::vector<nettrace::AddedEvent> ReportUnknownEnd(const char* command, const std::string& input,
                                                   const nettrace::Reader& reader,
                                                   const struct stat& file) {
  const std::optional<trace::AccountEvent> unknown = trace::UnknownEnd(reader, file);
  if (!unknown) return {};
  absl::FPrintF(stderr, "nettrace %s: %s: losses are unknown %s\n", command, input,
                trace::UnknownText({unknown->since, unknown->until}));
  return trace::UnknownEndEvents(*unknown);
}

// Prints which parts of a damaged input are missing in the output.
void ReportSkipped(const char* command, const std::string& input, const nettrace::Reader& reader) {
  for (const nettrace::SkippedPart& part : reader.skipped()) {
    absl::FPrintF(stderr, "nettrace %s: %s: offset %d: %s; skipped %s and about %s\n", command,
                  input, part.offset, base::Printable(part.reason),
                  base::Counted(part.bytes, "byte"), base::Counted(part.events, "event"));
  }
  if (reader.skipped().size() == nettrace::Reader::kMaxSkipped) {
    absl::FPrintF(stderr,
                  "nettrace %s: %s: at most %d damaged parts are listed; the last one includes all "
                  "later ones\n",
                  command, input, reader.skipped().size());
  }
}

// Prints the errors of the inputs. Returns false if the output must not be kept because of them.
bool ReportInputs(const Rewrite& rewrite, const nettrace::Merger& merger) {
  bool good = true;
  for (std::size_t i = 0; i < rewrite.inputs.size(); ++i) {
    const std::string& path = rewrite.inputs[i];
    const absl::Status& status = merger.status(i);
    if (rewrite.accept_damage) ReportSkipped(rewrite.command, InputName(path), merger.input(i));
    if (!status.ok()) {
      PrintInputError(rewrite.command, path, status);
      // Accepts only damage. After another error, such as EIO, a later run may be able to read the
      // whole input.
      good = good && rewrite.accept_damage && absl::IsDataLoss(status);
    }
    if (!merger.has_date(i)) {
      absl::FPrintF(stderr, "nettrace %s: %s: the Trace block has no date%s\n", rewrite.command,
                    InputName(path), rewrite.accept_damage ? "; 1970-01-01 is written" : "");
      good = good && rewrite.accept_damage;
    }
    ReportEvents(rewrite.command, InputName(path), merger.not_as_it_was(i));
  }
  return good;
}

}  // namespace

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat of_a = {};
  struct stat of_b = {};
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

bool IsDirectory(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

absl::StatusOr<std::vector<std::string>> FindInputs(const Rewrite& rewrite) {
  absl::StatusOr<std::vector<std::string>> files = rewrite.inputs;
  if (std::any_of(files->begin(), files->end(), IsDirectory)) {
    files = FindFiles(rewrite.command, rewrite.inputs);
  }
  if (!files.ok()) return files;
  for (const std::string& file : *files) {
    const bool is_named =
        std::find(rewrite.inputs.begin(), rewrite.inputs.end(), file) != rewrite.inputs.end();
    if (is_named || !IsSameFile(file, rewrite.output)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": is the output, and in a directory that is read; write to another directory"));
  }
  return files;
}

int RunRewrite(const Rewrite& rewrite) {
  if (IsRefusedOutput(rewrite.command, rewrite.output, "a file")) return cli::kExitUsage;
  Progress progress(rewrite.command);
  nettrace::MergerOptions options;
  options.filter = [&filter = rewrite.filter](const nettrace::Reader& input,
                                              const nettrace::Event& event) {
    return filter.Passes(input, event);
  };
  options.start = rewrite.filter.from;
  Inputs inputs(rewrite, &progress);
  if (rewrite.records_unknown_end) {
    options.add_at_end = [&](const nettrace::Reader& input) {
      progress.Hide();
      return ReportUnknownEnd(rewrite.command, InputName(rewrite.inputs.front()), input,
                              inputs.facts().front());
    };
  }
  nettrace::Merger merger(std::move(options));
  if (!inputs.AddTo(&merger)) return cli::kExitUnreadable;
  OutputFile file(rewrite.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink =
      file.Create(OutputAccess(inputs.facts(), rewrite.mode));
  absl::Status status = sink.status();
  if (status.ok()) status = merger.Run(*std::move(sink));
  progress.Hide();
  if (!status.ok()) {
    const std::optional<std::size_t> input = merger.failed_input();
    PrintInputError(rewrite.command, input ? rewrite.inputs[*input] : rewrite.output, status);
    return inputs.has_failed() ? cli::kExitUnreadable : cli::kExitFailed;
  }
  if (!ReportInputs(rewrite, merger)) {
    absl::FPrintF(stderr, "nettrace %s: %s\n", rewrite.command,
                  rewrite.accept_damage
                      ? "nothing was written"
                      : "nothing was written; 'nettrace repair' writes the readable parts");
    return cli::kExitFailed;
  }
  status = file.Keep();
  if (!status.ok()) {
    PrintInputError(rewrite.command, rewrite.output, status);
    return cli::kExitFailed;
  }
  absl::FPrintF(stderr, "nettrace %s: %s: %s, %s\n", rewrite.command, InputName(rewrite.output),
                base::Counted(merger.stats().events, "event"),
                base::Counted(file.Size(merger.stats().bytes), "byte"));
  return cli::kExitOk;
}

}  // namespace tools
