#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nettrace/commands.h"
#include "nettrace/event_json.h"
#include "nettrace/open_input.h"

namespace tools {
namespace {

std::string EventToText(const nettrace::Reader& reader, const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  std::string line = FormatUtc(reader.TimeOf(event.timestamp));
  absl::StrAppendFormat(&line, " cpu %d %s %d/%d %s %s level=%d keywords=0x%x", event.processor,
                        event.thread->name.value_or("?"), event.thread->process_id.value_or(0),
                        event.thread->thread_id.value_or(0), metadata.provider, metadata.name,
                        event.level(), event.keywords());
  if (event.opcode() != 0) absl::StrAppendFormat(&line, " opcode=%d", event.opcode());
  if (event.labels->activity_id) {
    absl::StrAppend(&line, " activity=", FormatGuid(*event.labels->activity_id));
  }
  if (event.labels->related_activity_id) {
    absl::StrAppend(&line, " related=", FormatGuid(*event.labels->related_activity_id));
  }
  absl::StrAppend(&line, " ", PayloadToJson(event));
  // One event, one line: what is not printable in names comes out as '?'.
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  }
  return line;
}

int Dump(const std::string& path, bool json) {
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader = OpenInput(path);
  if (!reader.ok()) {
    PrintInputError("dump", path, reader.status());
    return kExitUnreadable;
  }
  using Step = nettrace::Reader::Step;
  for (Step step = (*reader)->Next(); step != Step::kEnd; step = (*reader)->Next()) {
    if (step != Step::kEvent) continue;
    const nettrace::Event& event = (*reader)->event();
    std::string line = json ? EventToJson(**reader, event) : EventToText(**reader, event);
    line += '\n';
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) break;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    absl::FPrintF(stderr, "nettrace dump: standard output cannot be written\n");
    return kExitDamaged;
  }
  if ((*reader)->status().ok()) return 0;
  PrintInputError("dump", path, (*reader)->status());
  return kExitDamaged;
}

}  // namespace

void AddDump(CLI::App& app, int* exit_code) {
  struct Arguments {
    std::string path;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* dump = app.add_subcommand("dump", "Print every event of a NetTrace file");
  dump->add_flag("--json", arguments->json, "One JSON object a line");
  dump->add_option("file", arguments->path, "File to read; - is standard input")->required();
  dump->footer(
      "Events come in the order of the file: sorted by time for each CPU, and between sequence\n"
      "points.\n\n"
      "Exit code: 0 the file is whole; 1 it is cut or damaged, and all that came before was "
      "printed;\n"
      "2 it cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace dump trace.nettrace\n"
      "  nettrace dump --json trace.nettrace | jq -c 'select(.level <= 3) | .payload'\n");
  dump->callback([arguments, exit_code] { *exit_code = Dump(arguments->path, arguments->json); });
}

}  // namespace tools
