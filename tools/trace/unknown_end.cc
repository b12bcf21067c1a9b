#include "tools/trace/unknown_end.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace trace {
namespace {

// Returns ns since 1970. Times before 1970 become 0; no recording has such times.
std::uint64_t UnixTime(absl::Time time) {
  return static_cast<std::uint64_t>(std::max(absl::ToUnixNanos(time), std::int64_t{0}));
}

}  // namespace

std::optional<AccountEvent> UnknownEnd(const nettrace::Reader& reader, const struct stat& file) {
  const nettrace::Reader::Stats& stats = reader.stats();
  if (stats.complete) return std::nullopt;
  AccountEvent unknown;
  unknown.kind = AccountEvent::Kind::kAccountUnknown;
  unknown.since = UnixTime(stats.last_sequence_point ? reader.TimeOf(*stats.last_sequence_point)
                                                     : reader.trace().sync_time);
  if (S_ISREG(file.st_mode)) {
    const std::uint64_t written = UnixTime(absl::TimeFromTimespec(file.st_mtim));
    if (written > unknown.since) unknown.until = written;
  }
  return unknown;
}

std::vector<nettrace::AddedEvent> UnknownEndEvents(const AccountEvent& unknown) {
  absl::StatusOr<std::vector<std::byte>> payload = AccountPayload(unknown);
  if (!payload.ok()) return {};
  return {{AccountMetadata(unknown.kind), *std::move(payload), "repair"}};
}

std::string UnknownText(const AccountSummary::Unknown& unknown) {
  const std::string since =
      unknown.since == 0 ? "" : absl::StrCat("from ", AccountTimeText(unknown.since));
  const std::string until =
      unknown.until == 0 ? "on" : absl::StrCat("to at least ", AccountTimeText(unknown.until));
  return since.empty() ? absl::StrCat("from some time ", until) : absl::StrCat(since, " ", until);
}

}  // namespace trace
