// Describes the time for which the losses of a file are unknown, because the file has no end block.
// If the collector was killed or the disk was full, events may be lost that the file does not
// report.
#ifndef TOOLS_TRACE_UNKNOWN_END_H_
#define TOOLS_TRACE_UNKNOWN_END_H_

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "nettrace/merger.h"
#include "nettrace/reader.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"

namespace trace {

// Returns an AccountUnknown event for the file that `reader` has read to its last byte, or nullopt
// if the stream has an end block. The unknown time begins at the last sequence point, because all
// earlier losses are known, or at the start of the trace if there is no sequence point. It lasts at
// least until `file` was last modified, because the recording still ran at that time. Its end is
// unknown if `file` is not a regular file, or was last modified before the last sequence point.
std::optional<AccountEvent> UnknownEnd(const nettrace::Reader& reader, const struct stat& file);

// Returns `unknown` as an event to add to a repaired file, for MergerOptions::add_at_end.
std::vector<nettrace::AddedEvent> UnknownEndEvents(const AccountEvent& unknown);

// Returns e.g. "from 2026-11-21T10:00:00.000000000Z to at least 2026-11-21T10:00:00.750000000Z".
std::string UnknownText(const AccountSummary::Unknown& unknown);

}  // namespace trace

#endif  // TOOLS_TRACE_UNKNOWN_END_H_
