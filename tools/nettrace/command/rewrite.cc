#include "tools/nettrace/command/rewrite.h"

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "nettrace/merger.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/trace/unknown_end.h"

namespace tools {
namespace {

// Opens the inputs and adds them to `merger`. Appends the fstat result of each input to `files`.
// Prints an error and returns false if an input cannot be opened.
bool OpenInputs(const Rewrite& rewrite, Progress* progress, nettrace::Merger* merger,
                std::vector<struct stat>* files) {
  for (const std::string& path : rewrite.inputs) {
    absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
        OpenInput(path, progress, &files->emplace_back(), rewrite.accept_damage);
    if (!reader.ok()) {
      PrintInputError(rewrite.command, path, reader.status());
      return false;
    }
    merger->AddInput(*std::move(reader));
  }
  return true;
}

// Prints how many events of an input got another time, or were left out, in the output.
void ReportEvents(const char* command, const std::string& input,
                  const nettrace::Merger::NotAsItWas& events) {
  if (events.moved > 0) {
    absl::FPrintF(stderr,
                  "nettrace %s: %s: %d events are earlier than the sequence point before them; "
                  "they got its time, and their original time is in the label %s\n",
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
    absl::FPrintF(stderr, "nettrace %s: %s: offset %d: %s; skipped %d bytes and about %d events\n",
                  command, input, part.offset, base::Printable(part.reason), part.bytes,
                  part.events);
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
    const absl::Status& status = merger.input(i).status();
    ReportSkipped(rewrite.command, InputName(path), merger.input(i));
    if (!status.ok()) {
      PrintInputError(rewrite.command, path, status);
      // Accepts damage, but no errors of the system, because the whole input may be readable later.
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

int RunRewrite(const Rewrite& rewrite) {
  if (IsRefusedOutput(rewrite.command, rewrite.output, "a file")) return cli::kExitUsage;
  Progress progress(rewrite.command);
  nettrace::MergerOptions options;
  options.filter = [&filter = rewrite.filter](const nettrace::Reader& input,
                                              const nettrace::Event& event) {
    return filter.Passes(input, event);
  };
  options.start = rewrite.filter.from;
  std::vector<struct stat> files;
  if (rewrite.records_unknown_end) {
    options.add_at_end = [&](const nettrace::Reader& input) {
      progress.Hide();
      return ReportUnknownEnd(rewrite.command, InputName(rewrite.inputs.front()), input,
                              files.front());
    };
  }
  nettrace::Merger merger(std::move(options));
  if (!OpenInputs(rewrite, &progress, &merger, &files)) return cli::kExitUnreadable;
  OutputFile file(rewrite.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink =
      file.Create(OutputAccess(files, rewrite.mode));
  absl::Status status = sink.status();
  if (status.ok()) status = merger.Run(*std::move(sink));
  progress.Hide();
  if (!status.ok()) {
    const std::optional<std::size_t> input = merger.failed_input();
    PrintInputError(rewrite.command, input ? rewrite.inputs[*input] : rewrite.output, status);
    return cli::kExitFailed;
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
