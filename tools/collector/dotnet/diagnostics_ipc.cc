#include "tools/collector/dotnet/diagnostics_ipc.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "libnettrace-writer/core/byte_reader.h"
#include "libnettrace-writer/core/byte_writer.h"

namespace collector {
namespace {

using nettrace::internal::ByteReader;
using nettrace::internal::ByteWriter;

// First bytes of each message, including a NUL.
constexpr std::string_view kMagic("DOTNET_IPC_V1\0", 14);
constexpr std::size_t kHeaderSize = 20;

constexpr std::uint8_t kEventPipe = 2;        // command set
constexpr std::uint8_t kStopTracing = 1;      // command
constexpr std::uint8_t kCollectTracing2 = 3;  // command
constexpr std::uint8_t kCollectTracing3 = 4;  // command
constexpr std::uint8_t kCollectTracing5 = 6;  // command
constexpr std::uint8_t kProcess = 4;          // command set
constexpr std::uint8_t kEnablePerfMap = 5;    // command
constexpr std::uint8_t kDisablePerfMap = 6;   // command
constexpr std::uint32_t kOnlyPerfMap = 3;     // type: perf-PID.map, no file for perf inject
constexpr std::uint8_t kServer = 0xFF;        // command set of replies
constexpr std::uint8_t kOk = 0;
constexpr std::uint8_t kError = 0xFF;
constexpr std::uint32_t kUserEventsSession = 1;
constexpr std::uint32_t kNetTraceV4 = 1;  // format of a stream
// Maximum size of the buffers in which the runtime keeps events until it writes them to the stream,
// in MB.
constexpr std::uint32_t kBuffers = 64;

void PutBytes(std::string_view text, ByteWriter* out) {
  out->Bytes(std::as_bytes(std::span(text)));
}

// Appends the number of UTF-16 units of an ASCII text, then the units. The last unit is a NUL; ""
// has no units.
void PutText(std::string_view text, ByteWriter* out) {
  out->Fixed(static_cast<std::uint32_t>(text.empty() ? 0 : text.size() + 1));
  for (const char c : text) out->Fixed(static_cast<std::uint16_t>(static_cast<unsigned char>(c)));
  if (!text.empty()) out->Fixed(std::uint16_t{0});
}

void PutProvider(const DotnetProvider& provider, ByteWriter* out) {
  out->Fixed(provider.keywords);
  out->Fixed(std::uint32_t{provider.max_level});
  PutText(provider.name, out);
  PutText("", out);  // arguments
}

void PutTracepoint(const DotnetProvider& provider, ByteWriter* out) {
  out->Fixed(std::uint8_t{0});   // the event ids that follow are excluded
  out->Fixed(std::uint32_t{0});  // number of these ids
  PutText(provider.tracepoint, out);
  out->Fixed(std::uint32_t{0});  // no further tracepoints
}

// Appends the header of a request. Returns the offset of the request's size, which Finish sets.
std::size_t PutHeader(std::uint8_t set, std::uint8_t command, ByteWriter* out) {
  PutBytes(kMagic, out);
  const std::size_t size_at = out->Reserve(sizeof(std::uint16_t));
  out->Fixed(set);
  out->Fixed(command);
  out->Fixed(std::uint16_t{0});
  return size_at;
}

std::string Finish(std::size_t size_at, ByteWriter* out) {
  out->FixedAt(size_at, static_cast<std::uint16_t>(out->size()));
  return {reinterpret_cast<const char*>(out->bytes().data()), out->size()};
}

}  // namespace

std::string MakeCollectRequest(const std::vector<DotnetProvider>& providers) {
  ByteWriter out;
  const std::size_t size_at = PutHeader(kEventPipe, kCollectTracing5, &out);
  out.Fixed(kUserEventsSession);
  out.Fixed(std::uint64_t{0});  // no rundown: the runtime writes none to user_events
  out.Fixed(static_cast<std::uint32_t>(providers.size()));
  for (const DotnetProvider& provider : providers) {
    PutProvider(provider, &out);
    PutTracepoint(provider, &out);
  }
  return Finish(size_at, &out);
}

std::string MakeStreamRequest(StreamRequest kind, const std::vector<DotnetProvider>& providers) {
  const bool has_stacks = kind == StreamRequest::kAny;
  ByteWriter out;
  const std::size_t size_at =
      PutHeader(kEventPipe, has_stacks ? kCollectTracing2 : kCollectTracing3, &out);
  out.Fixed(kBuffers);
  out.Fixed(kNetTraceV4);
  out.Fixed(std::uint8_t{0});                   // no rundown
  if (!has_stacks) out.Fixed(std::uint8_t{0});  // no stacks
  out.Fixed(static_cast<std::uint32_t>(providers.size()));
  for (const DotnetProvider& provider : providers) PutProvider(provider, &out);
  return Finish(size_at, &out);
}

std::string MakeStopRequest(std::uint64_t session) {
  ByteWriter out;
  const std::size_t size_at = PutHeader(kEventPipe, kStopTracing, &out);
  out.Fixed(session);
  return Finish(size_at, &out);
}

std::string MakePerfMapRequest(bool enable) {
  ByteWriter out;
  const std::size_t size_at = PutHeader(kProcess, enable ? kEnablePerfMap : kDisablePerfMap, &out);
  if (enable) out.Fixed(kOnlyPerfMap);
  return Finish(size_at, &out);
}

DiagnosticsReply ParseDiagnosticsReply(std::string_view received, RequestKind request) {
  using Kind = DiagnosticsReply::Kind;
  const std::size_t checked = std::min(received.size(), kMagic.size());
  if (received.substr(0, checked) != kMagic.substr(0, checked)) return {Kind::kInvalid};
  if (received.size() < kHeaderSize) return {};
  ByteReader reader(std::as_bytes(std::span(received)).subspan(kMagic.size()));
  const auto size = reader.Number<std::uint16_t>();
  const auto set = reader.Number<std::uint8_t>();
  const auto command = reader.Number<std::uint8_t>();
  reader.Number<std::uint16_t>();
  const std::size_t values = command == kError || request == RequestKind::kPerfMap
                                 ? sizeof(std::uint32_t)   // HRESULT
                                 : sizeof(std::uint64_t);  // session id
  if (set != kServer || (command != kOk && command != kError) || size != kHeaderSize + values) {
    return {Kind::kInvalid};
  }
  if (received.size() < size) return {};
  if (command == kOk && request == RequestKind::kPerfMap) return {Kind::kStarted};
  if (command == kOk) return {Kind::kStarted, 0, reader.Number<std::uint64_t>()};
  return {Kind::kError, reader.Number<std::uint32_t>()};
}

}  // namespace collector
