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

// Begins each message, with its NUL.
constexpr std::string_view kMagic("DOTNET_IPC_V1\0", 14);
constexpr std::size_t kHeaderSize = 20;

constexpr std::uint8_t kEventPipe = 2;        // command set
constexpr std::uint8_t kCollectTracing5 = 6;  // command
constexpr std::uint8_t kServer = 0xFF;        // command set of replies
constexpr std::uint8_t kOk = 0;
constexpr std::uint8_t kError = 0xFF;
constexpr std::uint32_t kUserEventsSession = 1;

void PutBytes(std::string_view text, ByteWriter* out) {
  out->Bytes(std::as_bytes(std::span(text)));
}

// Appends ASCII text as UTF-16 with a NUL, after the number of its units; "" has no units.
void PutText(std::string_view text, ByteWriter* out) {
  out->Fixed(static_cast<std::uint32_t>(text.empty() ? 0 : text.size() + 1));
  for (const char c : text) out->Fixed(static_cast<std::uint16_t>(static_cast<unsigned char>(c)));
  if (!text.empty()) out->Fixed(std::uint16_t{0});
}

void PutProvider(const DotnetProvider& provider, ByteWriter* out) {
  out->Fixed(provider.keywords);
  out->Fixed(std::uint32_t{provider.max_level});
  PutText(provider.name, out);
  PutText("", out);              // arguments
  out->Fixed(std::uint8_t{0});   // no filter of event ids:
  out->Fixed(std::uint32_t{0});  // no ids
  PutText(provider.tracepoint, out);
  out->Fixed(std::uint32_t{0});  // no further tracepoints
}

}  // namespace

std::string MakeCollectRequest(const std::vector<DotnetProvider>& providers) {
  ByteWriter out;
  PutBytes(kMagic, &out);
  const std::size_t size_at = out.Reserve(sizeof(std::uint16_t));
  out.Fixed(kEventPipe);
  out.Fixed(kCollectTracing5);
  out.Fixed(std::uint16_t{0});
  out.Fixed(kUserEventsSession);
  out.Fixed(std::uint64_t{0});  // no rundown: the runtime writes none to user_events
  out.Fixed(static_cast<std::uint32_t>(providers.size()));
  for (const DotnetProvider& provider : providers) PutProvider(provider, &out);
  out.FixedAt(size_at, static_cast<std::uint16_t>(out.size()));
  return {reinterpret_cast<const char*>(out.bytes().data()), out.size()};
}

DiagnosticsReply ParseDiagnosticsReply(std::string_view received) {
  using Kind = DiagnosticsReply::Kind;
  const std::size_t checked = std::min(received.size(), kMagic.size());
  if (received.substr(0, checked) != kMagic.substr(0, checked)) return {Kind::kInvalid};
  if (received.size() < kHeaderSize) return {};
  ByteReader reader(std::as_bytes(std::span(received)).subspan(kMagic.size()));
  const auto size = reader.Number<std::uint16_t>();
  const auto set = reader.Number<std::uint8_t>();
  const auto command = reader.Number<std::uint8_t>();
  reader.Number<std::uint16_t>();
  const std::size_t values =
      command == kError ? sizeof(std::uint32_t) : sizeof(std::uint64_t);  // HRESULT or session id
  if (set != kServer || (command != kOk && command != kError) || size != kHeaderSize + values) {
    return {Kind::kInvalid};
  }
  if (received.size() < size) return {};
  if (command == kOk) return {Kind::kStarted};
  return {Kind::kError, reader.Number<std::uint32_t>()};
}

}  // namespace collector
