// `nettrace dump`: prints the events of files as text or JSON.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tools/base/guid_text.h"
#include "tools/base/text.h"
#include "tools/base/text_width.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/color_option.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/query/event_tables.h"
#include "tools/trace/code_map.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_name.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/levels.h"

namespace tools {
namespace {

// Values of --time.
constexpr char kAbsolute[] = "absolute";
constexpr char kRelative[] = "relative";
constexpr char kDelta[] = "delta";

struct DumpArguments {
  std::vector<std::string> paths;
  bool json = false;
  bool raw = false;
  bool verbose = false;
  bool file_order = false;
  bool follow = false;
  bool stacks = false;
  std::string time = kAbsolute;
  std::string color;
  std::vector<std::string> fields;  // paths of fields; if there are any, only these are printed
  std::optional<nettrace::Guid> activity;
  trace::EventFilter filter;
};

// Selects the events of an activity, and of all activities that began within it, at any depth.
class ActivityTree {
 public:
  // Maximum number of activities, besides the root, whose events are selected. Later activities are
  // left out.
  static constexpr std::size_t kMaxActivities = 65536;

  explicit ActivityTree(const nettrace::Guid& root) : activities_{root} {}

  // Returns whether the event is selected. If the event's related activity is selected, selects the
  // event's own activity from then on. The events must come in the order of time; otherwise, events
  // of an activity may be missed.
  bool Passes(const nettrace::Event& event) {
    const std::optional<nettrace::Guid>& activity = event.labels->activity_id;
    const std::optional<nettrace::Guid>& related = event.labels->related_activity_id;
    if (activity && activities_.contains(*activity)) return true;
    if (!related || !activities_.contains(*related)) return false;
    if (!activity) return true;
    if (activities_.size() <= kMaxActivities) {  // the root counts, too
      activities_.insert(*activity);
    } else {
      is_complete_ = false;
    }
    return true;
  }
  // Returns false if an activity was left out because of kMaxActivities.
  bool is_complete() const { return is_complete_; }

 private:
  absl::flat_hash_set<nettrace::Guid> activities_;
  bool is_complete_ = true;
};

// Formats events as lines of text, aligned on a terminal.
class TextLines {
 public:
  // `code` names the frames of stacks. If it is null, stacks are not printed. All arguments must
  // outlive this object.
  TextLines(const DumpArguments& arguments, const trace::CodeMap* code,
            trace::PayloadJson* payloads)
      : arguments_(arguments),
        code_(code),
        payloads_(*payloads),
        has_colors_(HasColors(arguments.color)) {}

  // Appends the line of the event and the lines of its stack, without a line feed at the end.
  void Append(const nettrace::Reader& reader, const nettrace::Event& event, std::string* out) {
    const std::string_view color = has_colors_ ? trace::LevelColor(event.level()) : "";
    out->append(color);
    const std::string_view time = TimeText(reader.TimeOf(event.timestamp));
    if (is_terminal_) {
      trace::AppendAlignedEventText(time, event, arguments_.verbose, &payloads_, &widths_, out);
    } else {
      trace::AppendEventText(time, event, arguments_.verbose, &payloads_, out);
    }
    if (!color.empty()) out->append(trace::kPlainText);
    if (code_ != nullptr) trace::AppendStackText(reader, event, *code_, out);
  }

 private:
  std::string_view TimeText(absl::Time time) {
    if (arguments_.time == kAbsolute) return payloads_.times()->Format(time);
    const absl::Time since = since_.value_or(time);
    if (!since_ || arguments_.time == kDelta) since_ = time;
    const std::int64_t nanoseconds = absl::ToInt64Nanoseconds(time - since);
    const auto size = static_cast<std::uint64_t>(nanoseconds);
    time_ = FormatSeconds(nanoseconds < 0, nanoseconds < 0 ? 0 - size : size);
    return time_;
  }
  static std::string FormatSeconds(bool is_negative, std::uint64_t nanoseconds) {
    return absl::StrFormat("%s%d.%09d", is_negative ? "-" : "+", nanoseconds / 1'000'000'000,
                           nanoseconds % 1'000'000'000);
  }

  const DumpArguments& arguments_;
  const trace::CodeMap* const code_;
  trace::PayloadJson& payloads_;
  const bool is_terminal_ = isatty(STDOUT_FILENO) == 1;
  const bool has_colors_;
  trace::EventTextWidths widths_ = {};
  // With --time relative, the time of the first printed event. With --time delta, the time of the
  // previous printed event. Not used with --time absolute.
  std::optional<absl::Time> since_;
  std::string time_;
};

// Formats the chosen fields of events as columns: aligned on a terminal, else separated by tabs.
class FieldColumns {
 public:
  FieldColumns(const DumpArguments& arguments, trace::PayloadJson* payloads)
      : fields_(arguments.fields), payloads_(*payloads), widths_(fields_.size() + 1) {}

  // Appends the names of the columns, without a line feed.
  void AppendHead(std::string* out) {
    std::vector<std::string> cells = {"time", "name"};
    cells.insert(cells.end(), fields_.begin(), fields_.end());
    Append(cells, out);
  }
  // Appends the line of the event, without a line feed.
  void Append(const nettrace::Reader& reader, const nettrace::Event& event, std::string* out) {
    payloads_.Put(event, payloads_.StartJson()).IgnoreError();
    const std::vector<query::FieldValue> values = query::FieldsOf(payloads_.json());
    std::vector<std::string> cells = {
        std::string(payloads_.times()->Format(reader.TimeOf(event.timestamp))),
        std::string(trace::EventName(*event.metadata))};
    for (const std::string& field : fields_) {
      const auto found =
          std::find_if(values.begin(), values.end(),
                       [&field](const query::FieldValue& value) { return value.path == field; });
      cells.push_back(found == values.end()                           ? "-"
                      : found->type == query::FieldValue::Type::kNull ? "null"
                                                                      : found->text);
    }
    Append(cells, out);
  }

 private:
  // Maximum width of a column, in columns of the terminal. The cells after a wider value are not
  // aligned.
  static constexpr std::size_t kMaxWidth = 60;

  // Appends the cells of a line. On a terminal, a column becomes wider, up to kMaxWidth, when a
  // value needs it.
  void Append(const std::vector<std::string>& cells, std::string* out) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = base::Printable(cells[i]);
      *out += cell;
      if (i + 1 == cells.size()) break;
      if (!is_terminal_) {
        *out += '\t';
        continue;
      }
      const std::size_t width = base::WidthOf(cell);
      widths_[i] = std::max(widths_[i], std::min(width, kMaxWidth));
      out->append(widths_[i] - std::min(widths_[i], width) + 2, ' ');
    }
  }

  const std::vector<std::string>& fields_;
  trace::PayloadJson& payloads_;
  const bool is_terminal_ = isatty(STDOUT_FILENO) == 1;
  std::vector<std::size_t> widths_;  // widths of all columns but the last one
};

// Prints the selected events. Returns false if an activity that began within the activity of
// --activity was left out because of ActivityTree::kMaxActivities. Ends without an error if
// standard output cannot be written, because FinishOutput reports this error.
bool PrintEvents(trace::EventStream* stream, const DumpArguments& arguments) {
  using Step = trace::EventStream::Step;
  const trace::PayloadStyle style =
      arguments.json ? trace::PayloadStyle::kForPrograms : trace::PayloadStyle::kForPeople;
  const trace::PayloadStyle raw =
      arguments.json ? trace::PayloadStyle::kRaw : trace::PayloadStyle::kRawForPeople;
  trace::PayloadJson payloads(arguments.raw ? raw : style);
  std::optional<trace::CodeMap> code;
  if (arguments.stacks) code.emplace();
  const trace::CodeMap* const known_code = code ? &*code : nullptr;
  TextLines text(arguments, known_code, &payloads);
  FieldColumns columns(arguments, &payloads);
  std::optional<ActivityTree> activities;
  if (arguments.activity) activities.emplace(*arguments.activity);
  // Bytes of lines that are collected before they are written. On a terminal, each line is written
  // at once.
  const std::size_t piece = isatty(STDOUT_FILENO) != 0 ? 1 : std::size_t{64} << 10;
  std::string lines;
  const auto write = [&lines] {
    const bool written = std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
    lines.clear();
    return written;
  };
  if (!arguments.fields.empty()) {
    columns.AppendHead(&lines);
    lines += '\n';
  }
  for (Step step = stream->Next(); step != Step::kEnd; step = stream->Next()) {
    if (step == Step::kSequencePoint) {
      payloads.ForgetRows();
      // Writes all lines now. If the trace is still being recorded, the next event may come much
      // later.
      if (!write()) return true;
      std::fflush(stdout);
    }
    if (code && (step == Step::kEvent || step == Step::kOtherEvent)) code->OnEvent(stream->event());
    if (step != Step::kEvent) continue;
    if (activities && !activities->Passes(stream->event())) continue;
    if (!arguments.fields.empty()) {
      columns.Append(stream->reader(), stream->event(), &lines);
    } else if (arguments.json) {
      trace::AppendEventJson(stream->reader(), stream->event(), &payloads, &lines, known_code);
    } else {
      text.Append(stream->reader(), stream->event(), &lines);
    }
    lines += '\n';
    if (lines.size() >= piece && !write()) return true;
  }
  write();
  return !activities || activities->is_complete();
}

// Prints the error of the temporary file for sorting, and what the user can do.
void PrintSortError(const std::string& path, const absl::Status& status) {
  PrintInputError("dump", path, status);
  absl::FPrintF(
      stderr,
      "nettrace dump: sorting needs a temporary file; set TMPDIR to a directory with enough "
      "space, or use --file-order to skip sorting\n");
}

absl::StatusOr<InputFiles::Opened> OpenFiles(const DumpArguments& arguments,
                                             const InputFiles& files, Progress* progress) {
  if (!arguments.follow) return files.Open(progress);
  if (!files.is_one()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--follow reads only one file, not ", files.Name(),
                     "; a directory stands for its files; name one file"));
  }
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      OpenInput(files.paths().front(), progress, nullptr, /*skip_damage=*/false, /*follow=*/true);
  if (reader.ok()) return InputFiles::Opened{*std::move(reader), nullptr};
  return absl::Status(reader.status().code(),
                      absl::StrCat(files.Name(), ": ", reader.status().message()));
}

int Dump(const DumpArguments& arguments) {
  absl::StatusOr<std::vector<std::string>> paths = FindFiles("dump", arguments.paths);
  if (!paths.ok()) {
    PrintFilesError("dump", paths.status());
    return cli::kExitUnreadable;
  }
  const InputFiles files(*std::move(paths));
  // The progress line is hidden with --follow, and if the events themselves appear on a terminal.
  Progress progress("dump", isatty(STDOUT_FILENO) == 0 && !arguments.follow);
  absl::StatusOr<InputFiles::Opened> opened = OpenFiles(arguments, files, &progress);
  if (!opened.ok()) {
    PrintFilesError("dump", opened.status());
    return cli::kExitUnreadable;
  }
  trace::EventStream stream(std::move(opened->reader),
                            {.filter = &arguments.filter, .file_order = arguments.file_order});
  const bool is_complete = PrintEvents(&stream, arguments);
  progress.Hide();
  if (const int exit_code = FinishOutput("dump", cli::kExitOk); exit_code != cli::kExitOk)
    return exit_code;
  if (!stream.sort_status().ok()) {
    PrintSortError(files.Name(), stream.sort_status());
    return cli::kExitFailed;
  }
  const nettrace::Reader& reader = stream.reader();
  if (files.is_one() && !reader.traceevent_refusal().empty()) {
    PrintInputError("dump", files.Name(), absl::UnimplementedError(RefusalText(reader)));
  }
  if (!is_complete) {
    absl::FPrintF(
        stderr,
        "nettrace dump: --activity: more than %d activities began in this activity; events "
        "of later ones are left out; use the id of an activity inside of it\n",
        ActivityTree::kMaxActivities);
  }
  const int exit_code = PrintProblems("dump", files.Problems(*opened, reader.status()));
  return is_complete ? exit_code : cli::kExitFailed;
}

}  // namespace

void AddDump(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<DumpArguments>();
  CLI::App* dump = app.add_subcommand("dump", "Print the events of a NetTrace file");
  dump->add_flag("--json", arguments->json, "Print one JSON object per line");
  dump->add_flag("--raw", arguments->raw,
                 "Show values as they are stored, without their EventHeader formats");
  dump->add_flag("--verbose", arguments->verbose,
                 "Also show tags, attributes and groups; --json always shows them");
  dump->add_flag("--stacks", arguments->stacks,
                 "Also print the stack of each event, leaf first, with the names of modules and "
                 "functions that the file has");
  dump->add_flag("--file-order", arguments->file_order,
                 "Print events in the order of the file, without sorting them");
  dump->add_flag("-f,--follow", arguments->follow,
                 "Wait at the end of the file for more events, until the recording ends");
  CLI::Option* const time =
      dump->add_option(
              "--time", arguments->time,
              "Time to print: absolute, relative (s since the first printed event) or delta "
              "(s since the previous one)")
          ->check(CLI::IsMember({kAbsolute, kRelative, kDelta}))
          ->default_val(kAbsolute);
  dump->get_option("--json")->excludes(time);
  CLI::Option* const fields =
      dump->add_option("--fields", arguments->fields,
                       "Print only these fields, in columns after the time and the name of the "
                       "event, e.g. status,request.path")
          ->delimiter(',')
          ->allow_extra_args(false);
  fields->excludes(time)
      ->excludes(dump->get_option("--json"))
      ->excludes(dump->get_option("--stacks"));
  AddColorOption(dump, &arguments->color, "Color lines by the level of the event");
  AddAddedEventOptions(
      dump, &arguments->filter, "show",
      ": losses, CPUs that went offline or online, tracepoints that were left out");
  AddFilterOptions(dump, &arguments->filter);
  dump->add_option_function<std::string>(
          "--activity",
          [arguments](const std::string& text) {
            arguments->activity = base::ParseGuid(text);
            if (!arguments->activity) {
              throw CLI::ValidationError(
                  "--activity",
                  "invalid id \"" + text + "\"; example: 00112233-4455-6677-8899-aabbccddeeff");
            }
          },
          "Only events of this activity and of activities that began in it")
      ->group("Choosing events");
  AddFilesOption(dump, &arguments->paths);
  dump->footer(
      "Events are printed in the order of time. On a terminal, the columns are aligned. Fields of "
      "EventHeader events are shown in their formats, for example errors with their names, IP "
      "addresses, and hexadecimal numbers.\n\n"
      "Exit code: 0 the file is complete; 1 it is truncated or damaged, and everything before the "
      "damage was printed; 2 it cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace dump trace.nettrace\n"
      "  nettrace dump --json trace.nettrace | \\\n"
      "      jq -c 'select(.level <= 3) | .payload'\n"
      "  nettrace dump --provider MyProvider --level 3 \\\n"
      "      --since 2026-11-21T10:00:00Z trace.nettrace\n");
  dump->callback([arguments, exit_code] {
    *exit_code = WithinMemory("dump", arguments->paths, [&] { return Dump(*arguments); });
  });
}

}  // namespace tools
