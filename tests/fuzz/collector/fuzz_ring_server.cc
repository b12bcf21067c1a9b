// Sends messages that the input chooses to the socket of rings in user space, from several
// connections of services. Another service, the neighbor, follows the protocol and must stay
// connected. The input is a list of steps: a number that selects what happens, a connection, a type
// of message, descriptors, and a value or the number of bytes that follow. In a step that sends a
// Patch, the bytes for the type and the descriptors select the place that it changes.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libeventheader/base/ring_layout.h"
#include "tests/support/eventheader/ring_peer.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/ring/ring_mirror.h"
#include "tools/collector/ring/ring_server.h"

namespace {

namespace ring = eh::internal::ring;
using base::UniqueFd;
using ring::Message;
using ring::MessageType;

constexpr std::uint32_t kChunks = 4;
constexpr std::size_t kConnections = 6;
constexpr std::size_t kClientsOfUser = 5;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

void Require(bool promise) {
  if (!promise) std::abort();
}

UniqueFd MakeRegion(int seals, std::uint32_t chunks) {
  UniqueFd fd(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const ring::Header header = tests::CorrectHeader(kChunks);
  Require(ftruncate(fd.get(), static_cast<off_t>(ring::RegionBytes(chunks))) == 0);
  Require(pwrite(fd.get(), &header, sizeof(header), 0) == sizeof(header));
  Require(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

// The descriptors that a message may carry: one for each bit of a step's byte.
const std::vector<UniqueFd>& Descriptors() {
  static const std::vector<UniqueFd>* const all = [] {
    auto* const fds = new std::vector<UniqueFd>;
    fds->push_back(MakeRegion(kSeals, kChunks));
    fds->push_back(MakeRegion(kSeals, kChunks));
    fds->push_back(MakeRegion(0, kChunks));
    fds->push_back(MakeRegion(kSeals, kChunks + 1));
    fds->push_back(MakeRegion(kSeals | F_SEAL_WRITE, kChunks));
    int ends[2];
    Require(pipe2(ends, O_CLOEXEC) == 0);
    fds->emplace_back(ends[0]);
    fds->emplace_back(ends[1]);
    fds->emplace_back(open("/dev/zero", O_RDWR | O_CLOEXEC));
    return fds;
  }();
  return *all;
}

const std::string& SocketPath() {
  static const std::string* const path = [] {
    char name[] = "/tmp/fuzz_ring_server_XXXXXX";
    Require(mkdtemp(name) != nullptr);
    std::atexit(
        [] { std::filesystem::remove_all(std::filesystem::path(SocketPath()).parent_path()); });
    return new std::string(std::string(name) + "/events");
  }();
  return *path;
}

UniqueFd Connect() {
  UniqueFd result(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, SocketPath().data(), SocketPath().size());
  if (connect(result.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    result.reset();
  }
  return result;
}

void Send(int to, std::span<const std::byte> bytes, std::uint8_t descriptors) {
  std::vector<int> fds;
  for (unsigned i = 0; i < Descriptors().size(); ++i) {
    if ((descriptors >> i & 1) != 0) fds.push_back(Descriptors()[i].get());
  }
  static_cast<void>(tests::SendPacket(to, bytes, fds, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Send(int to, const Message& message, std::uint8_t descriptors) {
  Send(to, std::as_bytes(std::span(&message, 1)), descriptors);
}

// Sends an inline Hello of a service whose region has the number `id`.
void SendInlineHello(int to, std::uint8_t id, std::uint8_t usable) {
  struct {
    Message message;
    ring::InlineHello hello;
  } greeting{};
  greeting.message = {ring::kMessageMagic, MessageType::kHello,
                      ring::MakeInlineFlags(ring::InlineReason::kNotSent, usable), ring::kVersion,
                      1};
  greeting.hello.header = tests::CorrectHeader(kChunks);
  greeting.hello.header.id[0] = id;
  greeting.hello.usable_chunks = usable % 32;
  Send(to, std::as_bytes(std::span(&greeting, 1)), 0);
}

// Sends a Patch. `place` selects the part of the region, `step` the offset in it.
void SendPatch(int to, std::uint8_t place, std::uint8_t step, std::span<const std::uint8_t> bytes) {
  constexpr std::uint32_t kPlaces[] = {
      0,
      ring::kCollectorOffset,
      ring::kServiceOffset,
      ring::kSetUsersOffset,
      ring::kWritersOffset,
      ring::kControlsOffset,
      ring::kControlsOffset + 16 * sizeof(ring::ChunkControl) - 128,
      ring::kSetNamesOffset,
      ring::kSetNamesOffset + ring::kMaxSets * ring::kNameBytes - 128,
      ring::kChunksOffset,
      static_cast<std::uint32_t>(ring::RegionBytes(16)) - 128,
      ~std::uint32_t{0} - 128,
  };
  const Message message{ring::kMessageMagic, MessageType::kPatch, 0, ring::kVersion, 1};
  const ring::Patch patch{kPlaces[place % std::size(kPlaces)] + step,
                          static_cast<std::uint32_t>(bytes.size())};
  std::vector<std::byte> packet(sizeof(message) + ring::PatchBytes(patch.size));
  std::memcpy(packet.data(), &message, sizeof(message));
  std::memcpy(packet.data() + sizeof(message), &patch, sizeof(patch));
  std::copy_n(std::as_bytes(bytes).begin(), bytes.size(),
              packet.begin() + sizeof(message) + sizeof(patch));
  Send(to, packet, 0);
}

// Receives all messages that have arrived. Returns whether the connection still exists.
bool TakeAll(int from) {
  for (;;) {
    Message message;
    const ssize_t got = recv(from, &message, sizeof message, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    if (got < 0) return true;
    Require(got == sizeof message && message.magic == ring::kMessageMagic);
  }
}

// The collector.
class User : public collector::RingServerUser {
 public:
  void Connected(collector::RingClient* client) override {
    Require(client->state() == collector::RingClient::State::kConnected);
    Require(client->pid() == getpid() && client->uid() == geteuid());
    clients_.push_back(client);
  }
  void SetsChanged(collector::RingClient* client) override {
    Require(std::find(clients_.begin(), clients_.end(), client) != clients_.end());
    client->region().ReadNames(8, [](std::uint32_t, std::string_view) {});
  }
  void Disconnected(collector::RingClient* client) override {
    Require(client->state() == collector::RingClient::State::kGone);
    Require(std::erase(clients_, client) == 1);
    Require(client->sent_until() <= base::Nanoseconds(base::MonotonicNow()));
    Require(!client->has_end() || !client->inline_reason().empty());
    gone_.push_back(client);
  }
  // Reads the regions of all clients, and returns the chunks that were read to the services.
  void Read() {
    for (collector::RingClient* const client : clients_) {
      client->region().Read(
          ring::kChunkBytes,
          [](const collector::RingRecord& record) {
            Require(record.event.size() >= 8 && record.event.size() <= ring::kMaxEventBytes);
            return true;
          },
          [](const collector::RingWriter&, std::uint64_t lost, std::uint64_t /*next*/) {
            Require(lost > 0);
          });
      client->region().GiveBack();
      client->SendChanges();
    }
  }
  const std::vector<collector::RingClient*>& clients() const { return clients_; }
  void ReleaseGone(collector::RingServer* server) {
    for (collector::RingClient* const client : std::exchange(gone_, {})) server->Release(client);
  }

 private:
  std::vector<collector::RingClient*> clients_;
  std::vector<collector::RingClient*> gone_;
};

void Serve(collector::RingServer* server, User* user) {
  pollfd ready{server->fd(), POLLIN, 0};
  for (int i = 0; poll(&ready, 1, 0) == 1; ++i) {
    Require(i < 10'000);
    server->Serve(user);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  collector::RingServerOptions options;
  options.path = SocketPath();
  options.clients_of_user = kClientsOfUser;
  options.messages_of_round = 3;
  options.bytes_of_client = std::uint64_t{2} * ring::kChunkBytes;
  options.bytes_of_user =
      4 * options.bytes_of_client + 3 * collector::RingMirror::MemoryOf(ring::kFirstChunks);
  auto listening = collector::RingServer::Listen(options);
  Require(listening.ok());
  collector::RingServer& server = **listening;
  User user;
  const UniqueFd neighbor = Connect();
  Send(neighbor.get(), {ring::kMessageMagic, MessageType::kHello, 0, ring::kVersion, 1}, 1);
  Serve(&server, &user);
  Require(user.clients().size() == 1);
  collector::RingClient* const client = user.clients()[0];

  std::array<UniqueFd, kConnections> connections;
  std::span<const std::uint8_t> rest(bytes, size);
  while (rest.size() >= 5) {
    const std::uint8_t kind = rest[0] % 9;
    UniqueFd& connection = connections[rest[1] % kConnections];
    const auto type = static_cast<MessageType>(rest[2]);
    const std::uint8_t descriptors = rest[3];
    const std::uint8_t value = rest[4];
    rest = rest.subspan(5);
    if (kind == 0) {
      connection = Connect();
    } else if (kind == 1 && connection.valid()) {
      Send(connection.get(), {ring::kMessageMagic, type, value, ring::kVersion, value},
           descriptors);
    } else if (kind == 2 && connection.valid()) {
      const auto content = rest.first(std::min<std::size_t>(value, rest.size()));
      rest = rest.subspan(content.size());
      Send(connection.get(), std::as_bytes(content), descriptors);
    } else if (kind == 3) {
      connection.reset();
    } else if (kind == 4) {
      server.Serve(&user);
      user.Read();
    } else if (kind == 7 && connection.valid()) {
      SendInlineHello(connection.get(), static_cast<std::uint8_t>(type), value);
    } else if (kind == 8) {
      const auto content = rest.first(std::min<std::size_t>(value, rest.size()));
      rest = rest.subspan(content.size());
      if (connection.valid()) {
        SendPatch(connection.get(), static_cast<std::uint8_t>(type), descriptors, content);
      }
    } else if (kind == 5) {
      for (collector::RingClient* const each : user.clients()) each->Send(type, value);
    } else if (connection.valid()) {
      TakeAll(connection.get());
      user.ReleaseGone(&server);
    }
    Require(user.clients().size() <= kClientsOfUser);
  }
  // The neighbor's message arrives.
  Send(neighbor.get(), {ring::kMessageMagic, MessageType::kEnabled, size + 1, ring::kVersion, 1},
       0);
  Serve(&server, &user);
  Require(client->state() == collector::RingClient::State::kConnected);
  Require(client->enabled() == size + 1 && TakeAll(neighbor.get()));
  for (UniqueFd& each : connections) each.reset();
  Serve(&server, &user);
  user.ReleaseGone(&server);
  Require(server.clients() == 1 && user.clients().size() == 1);
  return 0;
}
