// Reads any bytes as the stream of a .NET process, through a socket, and describes each event as a
// recording does. The process is untrusted: the stream must end, with a reason if it is malformed.
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "tools/base/monotonic_clock.h"
#include "tools/collector/convert/dotnet_schemas.h"
#include "tools/collector/dotnet/eventpipe_stream.h"

namespace {

using Step = collector::EventPipeStream::Step;

void Require(bool promise) {
  if (!promise) std::abort();
}

// Returns the stream with the present time in its header. EventPipeStream refuses a stream whose
// start differs from the present time by more than a minute.
std::string SetTime(std::string_view data) {
  constexpr std::size_t kTimeAt = 69;  // offset of the time in a stream of the runtime
  std::string stream(data);
  const std::int64_t now = absl::ToInt64Nanoseconds(base::MonotonicNow());
  if (stream.size() >= kTimeAt + sizeof now) std::memcpy(&stream[kTimeAt], &now, sizeof now);
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes = SetTime({reinterpret_cast<const char*>(data), size});
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  base::UniqueFd process(ends[1]);
  collector::EventPipeConnection connection;
  connection.socket = base::UniqueFd(ends[0]);
  collector::EventPipeStream stream(std::move(connection));
  // The stream arrives in two halves, so the reader must continue after an incomplete stream.
  const std::size_t half = bytes.size() / 2;
  Require(write(process.get(), bytes.data(), half) == static_cast<ssize_t>(half));

  constexpr int kStreams = 7;
  collector::SlotAllocator forms;
  collector::DotnetSchemas schemas(&forms, {});
  schemas.AddTracepoint(kStreams, "EventPipe");
  bool is_complete = false;
  for (Step step = Step::kWait; step != Step::kEnd;) {
    stream.Allow(bytes.size() + 1);
    step = stream.Next();
    if (step == Step::kWait) {
      Require(!is_complete);
      is_complete = true;
      const std::size_t rest = bytes.size() - half;
      Require(write(process.get(), bytes.data() + half, rest) == static_cast<ssize_t>(rest));
      process.reset();
    }
    if (step != Step::kEvent) continue;
    const nettrace::Event& event = stream.reader().event();
    const collector::DotnetStreamEvent of_stream = {1, ToNumber(event.metadata_id), event.metadata,
                                                    event.labels};
    std::string_view reason;
    const auto* row = schemas.FindOfStream(kStreams, 100, of_stream, 1, &reason);
    Require(row != nullptr || !reason.empty());
    if (row != nullptr) collector::IsDotnetPayload(row->metadata.fields, event.payload);
  }
  Require(!stream.is_cut() || !stream.reason().empty());
  schemas.RemoveTracepoint(kStreams);
  return 0;
}
