#include "tools/collector/dotnet/eventpipe_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nettrace/source.h"
#include "tools/base/monotonic_clock.h"
#include "tools/collector/dotnet/diagnostics_ipc.h"

namespace collector {
namespace {

constexpr std::int64_t kTicks = 1'000'000'000;  // ticks per second of the clock of .NET on Linux
// Largest difference between the start time that the stream states and the current time of this
// process's clock. The stream started seconds ago at most, so a larger difference means that the
// clocks differ.
constexpr absl::Duration kMaxClockDifference = absl::Minutes(1);

}  // namespace

// Reads the bytes of the connection without waiting, up to the number that Allow has set.
class EventPipeStream::SocketSource : public nettrace::Source {
 public:
  explicit SocketSource(base::UniqueFd socket) : socket_(std::move(socket)) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    if (has_ended_) return std::size_t{0};
    if (allowed_ == 0) return absl::UnavailableError("the allowed number of bytes was read");
    const ssize_t got =
        recv(socket_.get(), buffer.data(), std::min(buffer.size(), allowed_), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return absl::UnavailableError("no bytes");
    // An error means that the process has reset the connection.
    has_ended_ = got <= 0;
    if (has_ended_) return std::size_t{0};
    allowed_ -= static_cast<std::size_t>(got);
    return static_cast<std::size_t>(got);
  }

  void Allow(std::size_t bytes) { allowed_ = bytes; }
  bool is_exhausted() const { return allowed_ == 0; }
  bool has_ended() const { return has_ended_; }

 private:
  base::UniqueFd socket_;
  std::size_t allowed_ = 0;
  bool has_ended_ = false;
};

EventPipeStream::EventPipeStream(EventPipeConnection connection)
    : process_(std::move(connection.process)),
      folder_(std::move(connection.folder)),
      session_(connection.session) {
  auto source = std::make_unique<SocketSource>(std::move(connection.socket));
  source_ = source.get();
  // Open cannot fail, because the source has no bytes yet.
  reader_ = *nettrace::Reader::Open(
      std::move(source),
      {.max_table_bytes = kMaxTables, .max_legacy_block_size = kMaxBlock, .waits = true});
}

EventPipeStream::~EventPipeStream() = default;

void EventPipeStream::Allow(std::size_t bytes) { source_->Allow(bytes); }

bool EventPipeStream::has_more() const { return !has_ended_ && source_->is_exhausted(); }

std::string EventPipeStream::CheckStart() const {
  if (reader_->major_version() > 5) {
    return absl::StrCat("its stream has version ", reader_->major_version(),
                        " of the NetTrace format; at most version 5 is supported");
  }
  const nettrace::TraceInfo& trace = reader_->trace();
  const absl::Duration difference = absl::Nanoseconds(trace.sync_ticks) - base::MonotonicNow();
  if (trace.ticks_per_second != kTicks || absl::AbsDuration(difference) > kMaxClockDifference) {
    return "its clock is not that of the collector; it may be in another time namespace";
  }
  return "";
}

EventPipeStream::Step EventPipeStream::End(std::string reason) {
  has_ended_ = true;
  reason_ = std::move(reason);
  return Step::kEnd;
}

EventPipeStream::Step EventPipeStream::Next() {
  if (has_ended_) return Step::kEnd;
  const nettrace::Reader::Step step = reader_->Next();
  if (reader_->is_waiting()) return Step::kWait;
  if (step == nettrace::Reader::Step::kEnd) {
    if (reader_->status().ok()) return End("");
    is_cut_ = source_->has_ended();
    return End(is_cut_ ? "its stream was cut; its last events may be missing"
                       : absl::StrCat("its stream cannot be read: ", reader_->status().message()));
  }
  if (!is_checked_) {
    std::string fault = CheckStart();
    if (!fault.empty()) return End(std::move(fault));
    is_checked_ = true;
  }
  return step == nettrace::Reader::Step::kEvent ? Step::kEvent : Step::kSequencePoint;
}

bool EventPipeStream::RequestStop() {
  if (stopping_.valid() || has_ended_) return true;
  absl::StatusOr<base::UniqueFd> socket = ConnectDiagnostics(process_, folder_);
  if (!socket.ok()) return false;
  const std::string request = MakeStopRequest(session_);
  const ssize_t sent = send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(request.size())) return false;
  stopping_ = *std::move(socket);
  return true;
}

}  // namespace collector
