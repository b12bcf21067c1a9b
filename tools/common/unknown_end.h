// What a file without an end cannot tell: a recording that was killed, or a disk that was full, may
// have lost events of which nothing is written.
#ifndef TOOLS_COMMON_UNKNOWN_END_H_
#define TOOLS_COMMON_UNKNOWN_END_H_

#include <sys/stat.h>

#include <optional>
#include <string>
#include <vector>

#include "nettrace/merger.h"
#include "nettrace/reader.h"
#include "tools/common/account.h"
#include "tools/common/account_summary.h"

namespace tools {

// An AccountUnknown of the file that `reader` has read; nullopt if it has an end. Up to its last
// sequence point all is known. `file` is what the file system says of it: the recording still ran
// when the file was last written. That is not known of what is no regular file, and unreasonable if
// it is before the last sequence point.
std::optional<AccountEvent> UnknownEnd(const nettrace::Reader& reader, const struct stat& file);

// What a repaired file has of it: for MergerOptions::add_at_end.
std::vector<nettrace::AddedEvent> UnknownEndEvents(const AccountEvent& unknown);

// "from 2026-11-21T10:00:00.000000000Z to at least 2026-11-21T10:00:00.750000000Z".
std::string UnknownText(const AccountSummary::Unknown& unknown);

}  // namespace tools

#endif  // TOOLS_COMMON_UNKNOWN_END_H_
