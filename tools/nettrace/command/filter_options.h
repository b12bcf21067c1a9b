// Options that select events, for the subcommands that show or copy a part of a file.
#ifndef TOOLS_NETTRACE_COMMAND_FILTER_OPTIONS_H_
#define TOOLS_NETTRACE_COMMAND_FILTER_OPTIONS_H_

#include <string>

#include "tools/trace/event_filter.h"

namespace CLI {
class App;
}

namespace tools {

// Adds --provider, --event, --pid, --tid, --level, --keyword, --since and --until. Parsing the
// command line fills `filter`, which must live until the parsing has ended. Also accepts --from,
// the older name of --since, and with `has_to`, --to, the older name of --until.
void AddFilterOptions(CLI::App* command, trace::EventFilter* filter, bool has_to = true);

// Makes `filter` hide the events that describe processes, and the events of the account
// (tools/trace/account.h), which state what the recording lacks. Adds --processes and --account,
// which make `filter` treat these events like other events. `filter` must live until the command
// line has been parsed. The help of both options begins with "Also VERB the events", where VERB is
// `verb`. The help of --account ends with `account_help`.
void AddAddedEventOptions(CLI::App* command, trace::EventFilter* filter, const std::string& verb,
                          const std::string& account_help);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_FILTER_OPTIONS_H_
