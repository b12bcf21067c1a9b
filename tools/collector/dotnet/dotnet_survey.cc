#include "tools/collector/dotnet/dotnet_survey.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/byte_reader.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/dotnet/diagnostics_socket.h"

namespace collector {
namespace {

using nettrace::internal::ByteReader;

// The request ProcessInfo2 (command 4 of set 4) for facts of a process, such as the version of its
// runtime. Runtimes since .NET 6 know it.
constexpr std::string_view kInfoRequest("DOTNET_IPC_V1\0\x14\0\x04\x04\0\0", 20);
constexpr std::string_view kInfoMagic = kInfoRequest.substr(0, 14);
constexpr std::size_t kInfoHeader = 20;
constexpr std::size_t kMaxVersion = 64;
constexpr int kFirstMajor = 10;  // first version that writes events to user_events
constexpr absl::Duration kVersionWithin = absl::Seconds(2);

constexpr char kTooOldRemedy[] =
    "'nettrace record --dotnet' records .NET Core 3.1 and newer through EventPipe, without stacks; "
    "to record through user_events, use .NET 10 or newer";

// Skips a text. Returns false if it is not complete.
bool SkipText(ByteReader* reader) {
  const auto units = reader->Number<std::uint32_t>();
  if (units > reader->size() / 2) return false;
  reader->Bytes(std::size_t{2} * units);
  return reader->ok();
}

absl::StatusOr<std::string> AskVersion(int socket, absl::Duration end) {
  if (send(socket, kInfoRequest.data(), kInfoRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kInfoRequest.size())) {
    return base::ErrnoStatus(errno, "the request for its version cannot be sent");
  }
  std::string received;
  while (true) {
    const absl::Duration left = end - base::MonotonicNow();
    pollfd wait = {socket, POLLIN, 0};
    if (left <= absl::ZeroDuration() ||
        poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) {
      return absl::DeadlineExceededError("its runtime does not reply");
    }
    std::array<char, 4096> bytes;
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return absl::AbortedError("its runtime closed the connection");
    received.append(bytes.data(), static_cast<std::size_t>(got));
    absl::StatusOr<std::string> version = ParseRuntimeVersion(received);
    if (!absl::IsUnavailable(version.status())) return version;
  }
}

// Stores the two parts of the message of `status`, which has the form `PROBLEM; REMEDY`, as the
// problem and the remedy of `*runtime`. Without a remedy in the message, stores a default remedy.
void SetProblem(const absl::Status& status, DotnetRuntime* runtime) {
  const std::string message(status.message());
  const std::size_t at = message.find("; ");
  runtime->problem = message.substr(0, at);
  runtime->remedy = at != std::string::npos ? message.substr(at + 2)
                    : absl::IsPermissionDenied(status)
                        ? "run the collector as root, or as the user of the process"
                        : "restart the process";
}

// Returns the version of a process's runtime, and the problem if the process cannot write events to
// user_events. Returns no value if it has no diagnostics socket. Waits for a reply until `end` at
// most.
std::optional<DotnetRuntime> Examine(pid_t pid, const std::string& folder, absl::Duration end) {
  const std::optional<ProcessFacts> facts = ReadProcessFacts(pid);
  if (!facts) return std::nullopt;
  const absl::StatusOr<base::UniqueFd> socket = ConnectDiagnostics(*facts, folder);
  if (absl::IsNotFound(socket.status())) return std::nullopt;
  DotnetRuntime runtime = {pid, facts->name, "", "", ""};
  if (!socket.ok()) {
    SetProblem(socket.status(), &runtime);
    return runtime;
  }
  const absl::StatusOr<std::string> version =
      AskVersion(socket->get(), std::min(end, base::MonotonicNow() + kVersionWithin));
  if (absl::IsUnimplemented(version.status())) {
    runtime.problem = "its runtime is older than .NET 6";
    runtime.remedy = kTooOldRemedy;
  } else if (!version.ok()) {
    SetProblem(version.status(), &runtime);
  } else {
    runtime.version = *version;
    int major = 0;
    if (absl::SimpleAtoi(version->substr(0, version->find('.')), &major) && major < kFirstMajor) {
      runtime.problem = "its runtime cannot write events to user_events";
      runtime.remedy = kTooOldRemedy;
    }
  }
  return runtime;
}

}  // namespace

absl::StatusOr<std::string> ParseRuntimeVersion(std::string_view received) {
  constexpr int kTextsBefore = 4;  // command line, system, architecture, assembly
  const std::size_t checked = std::min(received.size(), kInfoMagic.size());
  const absl::Status invalid = absl::InvalidArgumentError("its runtime sends no valid reply");
  if (received.substr(0, checked) != kInfoMagic.substr(0, checked)) return invalid;
  if (received.size() < kInfoHeader) return absl::UnavailableError("");
  ByteReader reader(std::as_bytes(std::span(received)).subspan(kInfoMagic.size()));
  const auto size = reader.Number<std::uint16_t>();
  const auto set = reader.Number<std::uint8_t>();
  const auto command = reader.Number<std::uint8_t>();
  reader.Number<std::uint16_t>();
  if (set != 0xFF || size < kInfoHeader) return invalid;
  if (received.size() < size) return absl::UnavailableError("");
  if (received.size() > size) return invalid;
  if (command != 0) return absl::UnimplementedError("");
  reader.Number<std::uint64_t>();  // pid
  reader.Id128();                  // id of the runtime
  for (int i = 0; i < kTextsBefore; ++i) {
    if (!SkipText(&reader)) return invalid;
  }
  const auto units = reader.Number<std::uint32_t>();
  if (units == 0 || units > kMaxVersion || units > reader.size() / 2) {
    return invalid;
  }
  std::string version;
  for (std::uint32_t i = 0; i + 1 < units; ++i) {
    const auto unit = reader.Number<std::uint16_t>();
    if (unit > 0x7F || !absl::ascii_isgraph(static_cast<unsigned char>(unit))) return invalid;
    version += static_cast<char>(unit);
  }
  return version;
}

DotnetSurvey SurveyDotnet(const std::string& folder, std::size_t max, absl::Duration limit) {
  constexpr std::size_t kMaxListed = 4096;
  const absl::Duration end = base::MonotonicNow() + limit;
  std::set<pid_t> pids;
  for (const pid_t pid : ListDiagnosticsSockets(folder, kMaxListed)) pids.insert(pid);
  for (const pid_t pid : ListProcessesWithOtherFolder(folder, kMaxListed)) pids.insert(pid);
  DotnetSurvey survey;
  for (const pid_t pid : pids) {
    if (survey.runtimes.size() == max || base::MonotonicNow() >= end) {
      survey.is_complete = false;
      break;
    }
    std::optional<DotnetRuntime> runtime = Examine(pid, folder, end);
    if (runtime) survey.runtimes.push_back(*std::move(runtime));
  }
  return survey;
}

}  // namespace collector
