// Tests the socket of rings in user space with real connections: of services that follow the
// protocol, and of services that do not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/eventheader/handmade_region.h"
#include "tests/support/eventheader/ring_collector.h"
#include "tests/support/eventheader/ring_peer.h"
#include "tests/support/wait_until.h"
#include "tools/base/monotonic_clock.h"
#include "tools/collector/ring/ring_refusals.h"
#include "tools/collector/ring/ring_server.h"

namespace {

// Whether the kernel makes the queues of sockets as small as it can, as it does if the sysctl
// net.core.wmem_max is low: a queue has 4608 bytes.
bool has_small_queues = false;

}  // namespace

// Replaces the function of the C library, for has_small_queues.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t size) noexcept {
  constexpr int kLeast = 1;
  const bool is_queue = level == SOL_SOCKET && name == SO_SNDBUF;
  const void* const used = has_small_queues && is_queue ? &kLeast : value;
  return static_cast<int>(syscall(SYS_setsockopt, fd, level, name, used, size));
}

namespace collector {
namespace {

namespace ring = eh::internal::ring;
using base::UniqueFd;
using ring::Message;
using ring::MessageType;

// Returns the number of descriptors of this process.
std::ptrdiff_t CountDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// Waits until this process has this many descriptors. A thread of the server may be closing some.
void ExpectDescriptors(std::ptrdiff_t count) {
  tests::WaitUntil([count] { return CountDescriptors() == count; });
}

// Returns a socket that blocks for 20 s when its last descriptor is closed: its peer, `*peer`,
// reads nothing of what was sent.
UniqueFd MakeLingeringSocket(UniqueFd* peer) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  UniqueFd result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(result.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  *peer = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::string much(1 << 20, 'x');
  while (send(result.get(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
  }
  const linger lingers{1, 20};
  EXPECT_EQ(setsockopt(result.get(), SOL_SOCKET, SO_LINGER, &lingers, sizeof lingers), 0);
  return result;
}

Message MakeMessage(MessageType type, std::uint64_t value = 0) {
  return {ring::kMessageMagic, type, value, ring::kVersion, 1};
}

// The service's end of a connection.
class Connection {
 public:
  explicit Connection(const std::string& path)
      : socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    error_ =
        connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0
            ? 0
            : errno;
  }
  int error() const { return error_; }

  bool Send(const void* data, std::size_t size, const std::vector<int>& fds = {}) const {
    const std::span bytes(static_cast<const std::byte*>(data), size);
    return tests::SendPacket(socket_.get(), bytes, fds, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
  }
  bool Send(const Message& message, const std::vector<int>& fds = {}) const {
    return Send(&message, sizeof(message), fds);
  }
  // Returns the next message that is no Patch; no value if no such message has arrived.
  std::optional<Message> Take() const {
    Message message;
    do {
      if (recv(socket_.get(), &message, sizeof message, 0) != sizeof message) return std::nullopt;
    } while (message.type == MessageType::kPatch);
    return message;
  }
  // Receives a message of up to `size` bytes. Returns its size, or 0 if there is none.
  std::size_t TakeBytes(void* message, std::size_t size) const {
    const ssize_t got = recv(socket_.get(), message, size, 0);
    return got < 0 ? 0 : static_cast<std::size_t>(got);
  }
  // Returns whether the collector has ended the connection. Returns false while a message is
  // unread, so the caller must first take all messages.
  bool HasEnded() const {
    Message message;
    const ssize_t got = recv(socket_.get(), &message, sizeof message, MSG_PEEK);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  void Close() { socket_.reset(); }

 private:
  UniqueFd socket_;
  int error_ = 0;
};

class RingServerTest : public ::testing::Test, public RingServerUser {
 protected:
  RingServerTest() { options_.path = folder_.path() + "/events"; }
  // No test leaves a descriptor behind.
  void TearDown() override {
    has_small_queues = false;
    server_.reset();
    ExpectDescriptors(descriptors_);
  }

  void Listen() {
    auto server = RingServer::Listen(options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string ListenError() {
    const auto server = RingServer::Listen(options_);
    return server.ok() ? "" : std::string(server.status().message());
  }
  // Serves until there is nothing more to do.
  void Serve() {
    pollfd ready{server_->fd(), POLLIN, 0};
    for (int i = 0; i < 10'000 && poll(&ready, 1, 0) == 1; ++i) server_->Serve(this);
  }
  // Connects and sends Hello with a correct region.
  std::unique_ptr<Connection> Join() {
    auto connection = std::make_unique<Connection>(options_.path);
    const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
    EXPECT_TRUE(connection->Send(MakeMessage(MessageType::kHello), {region.get()}));
    Serve();
    return connection;
  }
  // Expects that the connection was refused with this reason, or without a reason.
  static void ExpectRefused(const Connection& connection,
                            std::optional<ring::RefuseReason> reason = std::nullopt) {
    const std::optional<Message> answer = connection.Take();
    EXPECT_EQ(answer.has_value(), reason.has_value());
    if (answer && reason) {
      EXPECT_EQ(answer->type, MessageType::kRefuse);
      EXPECT_EQ(answer->value, static_cast<std::uint64_t>(*reason));
    }
    EXPECT_TRUE(connection.HasEnded());
  }

  void Connected(RingClient* client) override { connected_.push_back(client); }
  void SetsChanged(RingClient* /*client*/) override { ++sets_changed_; }
  void Disconnected(RingClient* client) override {
    EXPECT_EQ(client->state(), RingClient::State::kGone);
    std::erase(connected_, client);
    if (releases_) {
      server_->Release(client);
    } else {
      gone_.push_back(client);
    }
  }

  tests::TemporaryFolder folder_;
  RingServerOptions options_;
  std::unique_ptr<RingServer> server_;
  std::vector<RingClient*> connected_;
  bool releases_ = true;           // whether clients are released when their connections end
  std::vector<RingClient*> gone_;  // clients that were not released
  int sets_changed_ = 0;
  const std::ptrdiff_t descriptors_ = CountDescriptors();
};

TEST_F(RingServerTest, WelcomesAServiceAndKnowsItsProcess) {
  Listen();
  const auto service = Join();
  const std::optional<Message> answer = service->Take();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, MessageType::kWelcome);
  EXPECT_EQ(answer->value, tests::kChunks);
  EXPECT_EQ(answer->version, ring::kVersion);
  ASSERT_EQ(connected_.size(), 1U);
  RingClient& client = *connected_[0];
  EXPECT_EQ(client.pid(), getpid());
  EXPECT_EQ(client.uid(), geteuid());
  EXPECT_TRUE(client.IsAlive());
  ASSERT_TRUE(service->Send(MakeMessage(MessageType::kSets, 1)));
  ASSERT_TRUE(service->Send(MakeMessage(MessageType::kEnabled, 7)));
  Serve();
  EXPECT_EQ(sets_changed_, 1);
  EXPECT_EQ(client.enabled(), 7U);
  client.Send(MessageType::kEnable, 8);
  const std::optional<Message> enable = service->Take();
  ASSERT_TRUE(enable);
  EXPECT_EQ(enable->type, MessageType::kEnable);
  EXPECT_EQ(enable->value, 8U);
}

// A service that sends an inline Hello, and Patches.
struct InlineService {
  explicit InlineService(const std::string& path) : connection(path) {}
  bool Greet(std::uint32_t usable = 4, std::uint8_t id = 1) const {
    struct {
      Message message;
      ring::InlineHello hello;
    } greeting{MakeMessage(MessageType::kHello,
                           ring::MakeInlineFlags(ring::InlineReason::kNotSent, EPERM)),
               {}};
    greeting.hello.header = tests::CorrectHeader();
    greeting.hello.header.id[0] = id;
    greeting.hello.usable_chunks = usable;
    return connection.Send(&greeting, sizeof greeting);
  }
  template <typename Value>
  bool SendPatch(std::uint32_t offset, const Value& value) const {
    struct {
      Message message;
      ring::Patch patch;
      std::byte bytes[sizeof(Value)];
    } message{MakeMessage(MessageType::kPatch), {offset, sizeof(value)}, {}};
    static_assert(sizeof(Value) % 8 == 0);
    std::memcpy(message.bytes, &value, sizeof(value));
    return connection.Send(&message, sizeof message);
  }
  // Sends a chunk with one event of 8 bytes, with the number 0, of the writer with ordinal 1.
  void SendEvent(ring::WriterState state = ring::kWriterActive) const {
    struct {
      ring::Record record;
      std::uint64_t event;
    } event{{8, 0, ring::kUnknownCpu, 0, 0, 0, 1}, 0};
    EXPECT_TRUE(SendPatch(ring::kChunksOffset, event));
    // ring::ChunkControl: state, committed; serial; ordinal; first; writer, tid; depth
    const std::uint64_t control[] = {
        ring::kComplete | std::uint64_t{sizeof event} << 32, 1, 1, 0, std::uint64_t{77} << 32, 0};
    EXPECT_TRUE(SendPatch(ring::kServiceOffset + 16, std::uint64_t{1}));   // last_serial
    EXPECT_TRUE(SendPatch(ring::kServiceOffset, std::uint64_t{4} << 32));  // usable_chunks
    EXPECT_TRUE(SendPatch(ring::kControlsOffset, control));
    // ring::Writer: chunk; calls; lost_nested; ordinal; state, tid; nested, depth; the accounted
    // numbers
    const std::uint64_t writer[] = {0, 1, 0, 1, state | std::uint64_t{77} << 32, 0, 0, 0};
    EXPECT_TRUE(SendPatch(ring::kWritersOffset, writer));
  }

  Connection connection;
};

// Returns the number of events and of lost events in the region.
std::pair<int, std::uint64_t> ReadAll(RingRegion* region) {
  std::pair<int, std::uint64_t> read;
  region->Read(
      1 << 20,
      [&](const RingRecord& record) {
        ++read.first;
        read.second += record.lost_before;
        return true;
      },
      [&](const RingWriter&, std::uint64_t lost, std::uint64_t) { read.second += lost; });
  return read;
}

TEST_F(RingServerTest, ReadsTheCopyOfAnInlineService) {
  options_.bytes_of_client = 8 * ring::kChunkBytes;
  Listen();
  const InlineService service(options_.path);
  ASSERT_TRUE(service.Greet());
  service.SendEvent();
  Serve();
  EXPECT_EQ(service.connection.Take()->value, 8U);
  ASSERT_EQ(connected_.size(), 1U);
  RingClient& client = *connected_[0];
  EXPECT_EQ(client.inline_reason(), "the service cannot send descriptors: Operation not permitted");
  EXPECT_EQ(ReadAll(&client.region()), std::pair(1, std::uint64_t{0}));
  client.region().GiveBack();
  client.SendChanges();
  struct {
    Message message;
    ring::Patch patch;
    std::uint64_t accounted[2];
    ring::Patch chunk;
    std::uint64_t state;
    ring::Patch page;
  } changes{};
  ASSERT_EQ(service.connection.TakeBytes(&changes, sizeof changes), sizeof changes);
  EXPECT_EQ(changes.message.type, MessageType::kPatch);
  EXPECT_EQ(changes.patch.offset, ring::kWritersOffset + offsetof(ring::Writer, accounted));
  EXPECT_EQ(changes.accounted[0], 1U);
  EXPECT_EQ(changes.chunk.offset, ring::kControlsOffset);
  EXPECT_EQ(changes.state, ring::kFree);
  EXPECT_EQ(changes.page.offset, ring::kCollectorOffset);
  // Without a change, nothing is sent.
  client.SendChanges();
  EXPECT_EQ(service.connection.TakeBytes(&changes, sizeof changes), 0U);
}

TEST_F(RingServerTest, FreesAnInlineWriterAfterItsChunks) {
  Listen();
  const InlineService service(options_.path);
  ASSERT_TRUE(service.Greet());
  service.SendEvent(ring::kWriterExited);
  Serve();
  ASSERT_EQ(service.connection.Take()->type, MessageType::kWelcome);
  RingClient& client = *connected_[0];
  EXPECT_EQ(ReadAll(&client.region()), std::pair(1, std::uint64_t{0}));
  client.region().GiveBack();
  client.SendChanges();
  struct {
    Message message;
    ring::Patch numbers;
    std::uint64_t accounted[2];
    ring::Patch chunk;
    std::uint64_t chunk_state;
    ring::Patch writer;
    std::uint64_t writer_state;
  } changes{};
  ASSERT_EQ(service.connection.TakeBytes(&changes, sizeof changes), sizeof changes);
  EXPECT_EQ(changes.numbers.offset, ring::kWritersOffset + offsetof(ring::Writer, accounted));
  EXPECT_EQ(changes.accounted[0], 1U);
  EXPECT_EQ(changes.chunk.offset, ring::kControlsOffset + offsetof(ring::ChunkControl, state));
  EXPECT_EQ(changes.chunk_state, ring::kFree);
  EXPECT_EQ(changes.writer.offset, ring::kWritersOffset + offsetof(ring::Writer, state));
  EXPECT_EQ(changes.writer_state, ring::kWriterFree);
}

TEST_F(RingServerTest, ReadsAllMessagesOfAnInlineServiceThatHasEnded) {
  options_.messages_of_round = 2;
  Listen();
  releases_ = false;
  auto service = std::make_unique<InlineService>(options_.path);
  ASSERT_TRUE(service->Greet());
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  RingClient* const client = connected_[0];
  service->SendEvent();
  service.reset();
  // Sending fails, because the service has ended.
  client->Send(MessageType::kEnable, 1);
  Serve();
  ASSERT_EQ(gone_.size(), 1U);
  EXPECT_EQ(ReadAll(&client->region()), std::pair(1, std::uint64_t{0}));
}

TEST_F(RingServerTest, KnowsWhetherAnInlineServiceHasSentItsEnd) {
  Listen();
  releases_ = false;
  auto service = std::make_unique<InlineService>(options_.path);
  ASSERT_TRUE(service->Greet());
  service->SendEvent();
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_FALSE(connected_[0]->has_end());
  ASSERT_TRUE(service->connection.Send(MakeMessage(MessageType::kEnd)));
  service.reset();
  Serve();
  ASSERT_EQ(gone_.size(), 1U);
  EXPECT_TRUE(gone_[0]->has_end());
  EXPECT_EQ(server_->refused(), 0U);
}

TEST_F(RingServerTest, EndsTheConnectionAfterAMessageThatFollowsEnd) {
  releases_ = false;
  Listen();
  for (const MessageType type :
       {MessageType::kPatch, MessageType::kEnd, MessageType::kSets, MessageType::kBye}) {
    const InlineService service(options_.path);
    ASSERT_TRUE(service.Greet());
    ASSERT_TRUE(service.connection.Send(MakeMessage(MessageType::kEnd)));
    ASSERT_TRUE(service.connection.Send(MakeMessage(type)));
    Serve();
    ASSERT_FALSE(gone_.empty());
    EXPECT_FALSE(gone_.back()->has_end());
    while (service.connection.Take()) {
    }
    EXPECT_TRUE(service.connection.HasEnded());
  }
  EXPECT_EQ(server_->refused(), 4U);
  for (const RingRefusalEntry& each : server_->refusals().Latest()) {
    EXPECT_EQ(each.detail, "a message after End");
  }
}

TEST_F(RingServerTest, RejectsAnEndThatIsMalformedOrNotOfAnInlineConnection) {
  Listen();
  const InlineService service(options_.path);
  ASSERT_TRUE(service.Greet());
  const std::pair<Message, std::uint64_t> longer{MakeMessage(MessageType::kEnd), 0};
  ASSERT_TRUE(service.connection.Send(&longer, sizeof longer));
  const auto shared = Join();
  ASSERT_TRUE(shared->Send(MakeMessage(MessageType::kEnd)));
  Serve();
  EXPECT_TRUE(connected_.empty());
  EXPECT_EQ(server_->refused(), 2U);
  for (const RingRefusalEntry& each : server_->refusals().Latest()) {
    EXPECT_EQ(each.detail, "a malformed End");
  }
}

TEST_F(RingServerTest, DoesNotTrustTheTimeUpToWhichAServiceHasSentItsEvents) {
  Listen();
  const InlineService service(options_.path);
  ASSERT_TRUE(service.Greet());
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  const RingClient& client = *connected_[0];
  const std::uint64_t created = client.sent_until();
  EXPECT_EQ(created, tests::CorrectHeader().created);
  const auto state = [&](std::uint64_t time) {
    const Message message = MakeMessage(MessageType::kPatch, time);
    ASSERT_TRUE(service.connection.Send(message));
    Serve();
  };
  state(created + 1000);
  EXPECT_EQ(client.sent_until(), created + 1000);
  state(created + 500);
  EXPECT_EQ(client.sent_until(), created + 1000);
  const std::uint64_t before = base::Nanoseconds(base::MonotonicNow());
  state(~std::uint64_t{0});
  EXPECT_GE(client.sent_until(), before);
  EXPECT_LE(client.sent_until(), base::Nanoseconds(base::MonotonicNow()));
}

TEST_F(RingServerTest, LimitsTheMemoryOfTheCopiesOfAllUsers) {
  options_.bytes_of_client = 16 * ring::kChunkBytes;
  options_.bytes_of_copies = 2 * RingMirror::MemoryOf(16) - 1;
  Listen();
  auto first = std::make_unique<InlineService>(options_.path);
  ASSERT_TRUE(first->Greet());
  const InlineService second(options_.path);
  ASSERT_TRUE(second.Greet());
  Serve();
  EXPECT_EQ(first->connection.Take()->type, MessageType::kWelcome);
  ExpectRefused(second.connection, ring::RefuseReason::kTooManyClients);
  // The limit does not apply to a service that shares its memory, because the server needs no copy.
  EXPECT_EQ(Join()->Take()->type, MessageType::kWelcome);
  first.reset();
  Serve();
  const InlineService third(options_.path);
  ASSERT_TRUE(third.Greet());
  Serve();
  EXPECT_EQ(third.connection.Take()->type, MessageType::kWelcome);
}

TEST_F(RingServerTest, MakesCopiesNoLargerThanTheRegionOfTheService) {
  Listen();
  const InlineService service(options_.path);
  struct {
    Message message =
        MakeMessage(MessageType::kHello, ring::MakeInlineFlags(ring::InlineReason::kChosen, 0));
    ring::InlineHello hello{};
  } greeting;
  greeting.hello.header = tests::CorrectHeader(3);
  ASSERT_TRUE(service.connection.Send(&greeting, sizeof greeting));
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(connected_[0]->chunk_bytes(), 3 * ring::kChunkBytes);
  EXPECT_EQ(service.connection.Take()->value, 3U);
}

TEST_F(RingServerTest, AsksForAnInlineHelloIfNoDescriptorArrives) {
  Listen();
  const InlineService service(options_.path);
  ASSERT_TRUE(service.connection.Send(MakeMessage(MessageType::kHello, ring::kSupportsInline)));
  // The service may have sent further messages before it gets the answer.
  ASSERT_TRUE(service.connection.Send(MakeMessage(MessageType::kSets, 1)));
  Serve();
  const std::optional<Message> answer = service.connection.Take();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, MessageType::kRefuse);
  EXPECT_EQ(answer->value, static_cast<std::uint64_t>(ring::RefuseReason::kNoDescriptor));
  EXPECT_EQ(server_->refused(), 0U);
  ASSERT_TRUE(service.Greet());
  Serve();
  EXPECT_EQ(service.connection.Take()->type, MessageType::kWelcome);

  const Connection other(options_.path);
  ASSERT_TRUE(other.Send(MakeMessage(MessageType::kHello, ring::kSupportsInline)));
  ASSERT_TRUE(other.Send(MakeMessage(MessageType::kHello, ring::kSupportsInline)));
  Serve();
  EXPECT_EQ(other.Take()->value, static_cast<std::uint64_t>(ring::RefuseReason::kNoDescriptor));
  ExpectRefused(other, ring::RefuseReason::kBadRegion);
}

TEST_F(RingServerTest, RefusesPatchesOutsideOfTheCopy) {
  options_.bytes_of_client = 20 * ring::kChunkBytes;
  Listen();
  const std::uint32_t controls_end = ring::kControlsOffset + 20 * sizeof(ring::ChunkControl);
  const std::uint32_t names_end = ring::kSetNamesOffset + ring::kMaxSets * ring::kNameBytes;
  const auto end = static_cast<std::uint32_t>(ring::RegionBytes(20));
  for (const std::uint32_t offset :
       {0U, ring::kCollectorOffset, ring::kServiceOffset - 8, controls_end - 8, names_end - 8,
        ring::kSetNamesOffset - 8, ring::kChunksOffset - 8, end - 8, ~7U}) {
    SCOPED_TRACE(offset);
    const InlineService service(options_.path);
    ASSERT_TRUE(service.Greet());
    const std::uint64_t bytes[2] = {};
    ASSERT_TRUE(service.SendPatch(offset, bytes));
    Serve();
    EXPECT_EQ(service.connection.Take()->type, MessageType::kWelcome);
    EXPECT_TRUE(service.connection.HasEnded());
  }
  for (const std::uint32_t offset : {ring::kServiceOffset, controls_end - 16, names_end - 16,
                                     ring::kSetNamesOffset, ring::kChunksOffset, end - 16}) {
    SCOPED_TRACE(offset);
    const InlineService service(options_.path);
    ASSERT_TRUE(service.Greet());
    const std::uint64_t bytes[2] = {};
    ASSERT_TRUE(service.SendPatch(offset, bytes));
    Serve();
    EXPECT_EQ(service.connection.Take()->type, MessageType::kWelcome);
    EXPECT_FALSE(service.connection.HasEnded());
  }
  // The server ends the connection after a Patch with a size that exceeds its message, a Patch of
  // size 0, and any Patch of a service that shares its region.
  struct {
    Message message = MakeMessage(MessageType::kPatch);
    ring::Patch patch{ring::kChunksOffset, 4096};
    std::uint64_t bytes[2] = {};
  } cut;
  const InlineService service(options_.path);
  ASSERT_TRUE(service.Greet());
  ASSERT_TRUE(service.connection.Send(&cut, sizeof cut));
  cut.patch.size = 0;
  const InlineService other(options_.path);
  ASSERT_TRUE(other.Greet());
  ASSERT_TRUE(other.connection.Send(&cut, sizeof cut));
  cut.patch.size = 16;
  const auto shares = Join();
  ASSERT_TRUE(shares->Send(&cut, sizeof cut));
  Serve();
  EXPECT_EQ(service.connection.Take()->type, MessageType::kWelcome);
  EXPECT_TRUE(service.connection.HasEnded());
  EXPECT_EQ(other.connection.Take()->type, MessageType::kWelcome);
  EXPECT_TRUE(other.connection.HasEnded());
  EXPECT_EQ(shares->Take()->type, MessageType::kWelcome);
  EXPECT_TRUE(shares->HasEnded());
  EXPECT_EQ(server_->refusals().by_reason()[static_cast<std::size_t>(RingRefusal::kBadMessage)],
            12U);
}

TEST_F(RingServerTest, ChargesCopiesToTheirUserUntilTheyAreReleased) {
  options_.bytes_of_client = 16 * ring::kChunkBytes;
  options_.bytes_of_user = 2 * RingMirror::MemoryOf(16) + 1;
  Listen();
  releases_ = false;
  auto first = std::make_unique<InlineService>(options_.path);
  ASSERT_TRUE(first->Greet());
  // This service states that it already uses 32 chunks. A copy of them does not fit in the
  // bytes_of_user that `first` leaves.
  const InlineService large(options_.path);
  ASSERT_TRUE(large.Greet(32));
  Serve();
  EXPECT_EQ(first->connection.Take()->type, MessageType::kWelcome);
  ExpectRefused(large.connection, ring::RefuseReason::kTooManyClients);
  const InlineService second(options_.path);
  ASSERT_TRUE(second.Greet());
  Serve();
  EXPECT_EQ(second.connection.Take()->type, MessageType::kWelcome);
  first.reset();
  Serve();
  ASSERT_EQ(gone_.size(), 1U);
  const InlineService third(options_.path);
  ASSERT_TRUE(third.Greet());
  Serve();
  ExpectRefused(third.connection, ring::RefuseReason::kTooManyClients);
  server_->Release(gone_[0]);
  const InlineService fourth(options_.path);
  ASSERT_TRUE(fourth.Greet());
  Serve();
  EXPECT_EQ(fourth.connection.Take()->type, MessageType::kWelcome);
}

TEST_F(RingServerTest, AnInlineServiceThatConnectsAgainSendsNoEventTwice) {
  Listen();
  releases_ = false;
  auto first = std::make_unique<InlineService>(options_.path);
  ASSERT_TRUE(first->Greet());
  first->SendEvent();
  Serve();
  // The server has read the event from the socket. The connection ends before the service receives
  // a message about it.
  first.reset();
  Serve();
  ASSERT_EQ(gone_.size(), 1U);
  const InlineService second(options_.path);
  ASSERT_TRUE(second.Greet());
  Serve();
  EXPECT_EQ(ReadAll(&gone_[0]->region()), std::pair(1, std::uint64_t{0}));
  gone_[0]->region().GiveBack();
  server_->Release(gone_[0]);
  second.SendEvent();
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(ReadAll(&connected_[0]->region()), std::pair(0, std::uint64_t{0}));
}

TEST_F(RingServerTest, AnotherProcessWithTheSameIdSkipsNoEventOfAnInlineService) {
  Listen();
  releases_ = false;
  const pid_t child = fork();
  if (child == 0) {
    const InlineService other(options_.path);
    other.Greet();
    other.SendEvent();
    pause();
  }
  while (connected_.empty()) Serve();
  RingClient* const other = connected_[0];
  std::pair<int, std::uint64_t> got;
  while (got.first == 0) {
    Serve();
    got = ReadAll(&other->region());
  }
  const InlineService service(options_.path);
  ASSERT_TRUE(service.Greet());
  Serve();
  other->region().GiveBack();
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  while (gone_.empty()) Serve();
  server_->Release(gone_[0]);
  service.SendEvent();
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(ReadAll(&connected_[0]->region()), std::pair(1, std::uint64_t{0}));
}

TEST_F(RingServerTest, NoticesThatAProcessHasEnded) {
  Listen();
  const pid_t child = fork();
  if (child == 0) {
    const Connection connection(options_.path);
    const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
    connection.Send(MakeMessage(MessageType::kHello), {region.get()});
    pause();
  }
  while (connected_.empty()) Serve();
  RingClient* const client = connected_[0];
  EXPECT_EQ(client->pid(), child);
  EXPECT_TRUE(client->IsAlive());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(client->IsAlive());
  while (!connected_.empty()) Serve();
  EXPECT_EQ(server_->clients(), 0U);
}

TEST_F(RingServerTest, LimitsTheChunksOfAClientAndOfAUser) {
  options_.bytes_of_client = 8 * ring::kChunkBytes;
  options_.bytes_of_user = 20 * ring::kChunkBytes;
  Listen();
  const auto first = Join();
  const auto second = Join();
  EXPECT_EQ(first->Take()->value, 8U);
  EXPECT_EQ(second->Take()->value, 8U);
  ExpectRefused(*Join(), ring::RefuseReason::kTooManyClients);
  // A service that ends makes room.
  first->Close();
  Serve();
  EXPECT_EQ(Join()->Take()->type, MessageType::kWelcome);
}

TEST_F(RingServerTest, ReplacesTheSocketOfACollectorThatWasKilled) {
  const pid_t child = fork();
  if (child == 0) {
    const auto server = RingServer::Listen(options_);
    _exit(server.ok() ? 0 : 1);  // skips the destructor of `server`
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(options_.path));
  EXPECT_EQ(Connection(options_.path).error(), ECONNREFUSED);
  Listen();
  EXPECT_EQ(Join()->Take()->type, MessageType::kWelcome);
}

TEST_F(RingServerTest, RefusesTheSocketOfALivingCollector) {
  Listen();
  EXPECT_NE(ListenError().find("another collector receives events at this socket; stop it"),
            std::string::npos)
      << ListenError();
  EXPECT_EQ(Join()->Take()->type, MessageType::kWelcome);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  EXPECT_EQ(ListenError(), "");
}

TEST_F(RingServerTest, RefusesALivingCollectorThatTakesNoLock) {
  const tests::RingCollector other(options_.path);
  EXPECT_NE(ListenError().find("another collector receives events at this socket"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(options_.path));
}

TEST_F(RingServerTest, UsesAnOpenSocketAndLeavesItInPlace) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, options_.path.data(), options_.path.size());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  options_.listening = listener.get();
  const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
  for (int server = 0; server < 2; ++server) {
    // The service connects before there is a server.
    const Connection connection(options_.path);
    EXPECT_EQ(connection.error(), 0);
    EXPECT_TRUE(connection.Send(MakeMessage(MessageType::kHello), {region.get()}));
    Listen();
    Serve();
    const std::optional<Message> answer = connection.Take();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->type, MessageType::kWelcome);
    server_.reset();
    EXPECT_TRUE(connection.HasEnded());
    EXPECT_TRUE(std::filesystem::exists(options_.path));
    connected_.clear();
  }
  options_.listening = -1;
  EXPECT_NE(ListenError().find("another collector receives events at this socket"),
            std::string::npos);
}

TEST_F(RingServerTest, RefusesAPathThatIsNoSocketOrTooLong) {
  close(open(options_.path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_NE(ListenError().find("exists and is not a socket; remove it"), std::string::npos);
  options_.path = folder_.path() + "/" + std::string(100, 'a');
  EXPECT_NE(ListenError().find("the path is too long"), std::string::npos);
  options_.path = folder_.path() + "/missing/folder/events";
  EXPECT_NE(ListenError().find("cannot be created"), std::string::npos);
  options_.path = folder_.path() + "/made/events";
  EXPECT_EQ(ListenError(), "");
}

// Containers mount the folder services/, which contains the socket. Services of the host use a link
// in the folder above, and watch that folder for the link.
TEST_F(RingServerTest, LinksToTheSocketInASeparateFolder) {
  const std::string link = options_.path;
  const std::string socket = folder_.path() + "/services/events";
  PlaceInSubfolder(link, &options_);
  EXPECT_EQ(options_.path, socket);
  const mode_t mask = umask(0077);
  Listen();
  umask(mask);
  EXPECT_EQ(server_->path(), link);
  EXPECT_EQ(std::filesystem::read_symlink(link), "services/events");
  struct stat status;
  ASSERT_EQ(stat((folder_.path() + "/services").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755U);
  EXPECT_EQ(Connection(link).error(), 0);
  EXPECT_EQ(Connection(socket).error(), 0);
  EXPECT_NE(ListenError().find(link + ": another collector receives events"), std::string::npos);
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(link)));
  EXPECT_FALSE(std::filesystem::exists(socket));
  // The server replaces the link of a collector that was killed, and a socket of an earlier
  // version.
  std::filesystem::create_symlink("services/events", link);
  EXPECT_EQ(ListenError(), "");
  {
    RingServerOptions earlier = options_;
    earlier.link.clear();
    earlier.path = link;
    const auto server = RingServer::Listen(earlier);
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_NE(ListenError().find("another collector receives events"), std::string::npos);
  }
  close(open(link.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_NE(ListenError().find("exists and is not a socket"), std::string::npos);
}

TEST_F(RingServerTest, GivesTheSocketItsPermissions) {
  options_.mode = 0666;
  Listen();
  struct stat status;
  ASSERT_EQ(stat(options_.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666U);
}

TEST_F(RingServerTest, RefusesWrongDescriptors) {
  Listen();
  const auto neighbor = Join();
  ASSERT_EQ(neighbor->Take()->type, MessageType::kWelcome);
  const auto before = CountDescriptors();
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  std::vector<UniqueFd> fds;
  fds.emplace_back(ends[0]);
  fds.emplace_back(ends[1]);
  fds.emplace_back(open("/dev/zero", O_RDWR | O_CLOEXEC));
  fds.emplace_back(eventfd(0, EFD_CLOEXEC));
  fds.push_back(tests::MakeRegion(tests::CorrectHeader(), 0));
  fds.push_back(tests::MakeRegion(tests::CorrectHeader(), tests::kSeals, 4096));
  for (const UniqueFd& fd : fds) {
    const Connection service(options_.path);
    ASSERT_TRUE(service.Send(MakeMessage(MessageType::kHello), {fd.get()}));
    Serve();
    ExpectRefused(service, ring::RefuseReason::kBadRegion);
  }
  {
    const Connection service(options_.path);
    ASSERT_TRUE(service.Send(MakeMessage(MessageType::kHello)));
    Serve();
    ExpectRefused(service, ring::RefuseReason::kBadRegion);
  }
  {
    const Connection service(options_.path);
    const UniqueFd huge =
        tests::MakeRegion(tests::CorrectHeader(), tests::kSeals, std::uint64_t{1} << 40);
    ASSERT_TRUE(service.Send(MakeMessage(MessageType::kHello), {huge.get()}));
    Serve();
    ExpectRefused(service, ring::RefuseReason::kTooLarge);
  }
  fds.clear();
  ExpectDescriptors(before);
  EXPECT_EQ(server_->refused(), 8U);
  const std::vector<RingRefusalEntry> refusals = server_->refusals().Latest();
  ASSERT_EQ(refusals.size(), 2U);
  EXPECT_EQ(refusals[0].reason, RingRefusal::kRegionTooLarge);
  EXPECT_EQ(refusals[1].reason, RingRefusal::kBadRegion);
  EXPECT_EQ(refusals[1].count, 7U);
  EXPECT_NE(refusals[1].detail, "");
  EXPECT_EQ(server_->clients(), 1U);
  EXPECT_FALSE(neighbor->HasEnded());
}

TEST_F(RingServerTest, ClosesDescriptorsThatItDoesNotNeed) {
  Listen();
  const auto service = Join();
  ASSERT_TRUE(service->Take());
  const auto before = CountDescriptors();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(service->Send(MakeMessage(MessageType::kFull), std::vector<int>(60, 0)));
    ASSERT_TRUE(service->Send(MakeMessage(MessageType::kFull), {0, 0}));
    Serve();
  }
  ExpectDescriptors(before);
  EXPECT_FALSE(service->HasEnded());
}

TEST_F(RingServerTest, RefusesMemoryOfHugePages) {
  Listen();
  // The smallest size of a region that is a multiple of the size of a huge page.
  constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
  constexpr std::uint64_t kBytes = ring::RegionBytes(58);
  static_assert(kBytes % kHugePage == 0);
  const UniqueFd fd(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!fd.valid()) GTEST_SKIP() << "the kernel has no huge pages: " << std::strerror(errno);
  ASSERT_EQ(ftruncate(fd.get(), kBytes), 0);
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, tests::kSeals), 0);
  const Connection service(options_.path);
  ASSERT_TRUE(service.Send(MakeMessage(MessageType::kHello), {fd.get()}));
  Serve();
  ExpectRefused(service, ring::RefuseReason::kBadRegion);
}

TEST_F(RingServerTest, TakesTheFirstMemfdOfHelloAndClosesOthers) {
  Listen();
  const auto before = CountDescriptors();
  const Connection service(options_.path);
  {
    const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
    const UniqueFd other = tests::MakeRegion(tests::CorrectHeader(), 0);
    ASSERT_TRUE(service.Send(MakeMessage(MessageType::kHello), {0, region.get(), other.get(), 1}));
  }
  Serve();
  EXPECT_EQ(service.Take()->type, MessageType::kWelcome);
  // This process has both ends of the connection, a pidfd of the service, and the region.
  ExpectDescriptors(before + 4);
}

// The services send descriptors of sockets whose closing blocks. Such descriptors reach the server
// in each possible way.
TEST_F(RingServerTest, DescriptorsThatAreSlowToCloseDelayNoOtherService) {
  options_.clients_of_user = 3;
  Listen();
  const auto neighbor = Join();
  ASSERT_TRUE(neighbor->Take());
  std::vector<UniqueFd> peers(5);
  const Message hello = MakeMessage(MessageType::kHello);
  const auto send = [&](const Connection& connection, const Message& message, UniqueFd* peer) {
    // The temporary descriptor is closed after the call. After that, only the message has a
    // descriptor of the socket.
    ASSERT_TRUE(connection.Send(message, {0, MakeLingeringSocket(peer).get()}));
  };
  const Connection greets(options_.path);
  send(greets, hello, &peers[0]);
  auto welcome = Join();
  ASSERT_EQ(welcome->Take()->type, MessageType::kWelcome);
  send(*welcome, MakeMessage(MessageType::kSets), &peers[1]);
  // The server ends the connection at this message, so it does not read the next one.
  ASSERT_TRUE(welcome->Send("?", 1));
  send(*welcome, MakeMessage(MessageType::kSets), &peers[2]);
  std::vector<std::unique_ptr<Connection>> refused(3);
  for (auto& connection : refused) connection = std::make_unique<Connection>(options_.path);
  send(*refused.back(), hello, &peers[3]);

  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(neighbor->Send(MakeMessage(MessageType::kEnabled, 5)));
  Serve();
  ASSERT_FALSE(connected_.empty());
  EXPECT_EQ(connected_[0]->enabled(), 5U);
  ExpectRefused(greets, ring::RefuseReason::kBadRegion);
  EXPECT_TRUE(welcome->HasEnded());
  EXPECT_FALSE(neighbor->HasEnded());
  {
    // The end of the server does not wait for such descriptors either.
    refused.clear();
    Serve();
    const auto last = Join();
    send(*last, MakeMessage(MessageType::kSets), &peers[4]);
    server_.reset();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  // Makes the peers end the connections with a reset, so that the threads that block in close() can
  // end.
  const linger resets{1, 0};
  for (const UniqueFd& peer : peers) {
    if (peer.valid()) setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &resets, sizeof resets);
  }
}

TEST_F(RingServerTest, AcceptsNoConnectionWhileTooManyDescriptorsAreSlowToClose) {
  options_.closers = 1;
  Listen();
  const auto neighbor = Join();
  ASSERT_TRUE(neighbor->Take());
  UniqueFd peer;
  const Connection slow(options_.path);
  ASSERT_TRUE(slow.Send(MakeMessage(MessageType::kHello), {MakeLingeringSocket(&peer).get()}));
  Serve();
  EXPECT_TRUE(slow.Take());
  const Connection waits(options_.path);
  const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
  ASSERT_TRUE(waits.Send(MakeMessage(MessageType::kHello), {region.get()}));
  ASSERT_TRUE(neighbor->Send(MakeMessage(MessageType::kEnabled, 6)));
  Serve();
  EXPECT_FALSE(waits.Take());
  EXPECT_EQ(connected_[0]->enabled(), 6U);
  // The end of the slow connection lets the server continue.
  const linger resets{1, 0};
  ASSERT_EQ(setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &resets, sizeof resets), 0);
  peer.reset();
  std::optional<Message> answer;
  tests::WaitUntil([&] {
    server_->Serve(this);
    return (answer = waits.Take()).has_value();
  });
  EXPECT_EQ(answer->type, MessageType::kWelcome);
}

TEST_F(RingServerTest, KnowsTheProcessWhateverTheServiceClaims) {
  Listen();
  const Connection service(options_.path);
  Message hello = MakeMessage(MessageType::kHello);
  hello.pid = 1;
  ring::Header header = tests::CorrectHeader();
  header.pid = 1;
  const UniqueFd region = tests::MakeRegion(header);
  ASSERT_TRUE(service.Send(hello, {region.get()}));
  Serve();
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_EQ(connected_[0]->pid(), getpid());
}

TEST_F(RingServerTest, EndsConnectionsWithMalformedMessages) {
  Listen();
  const auto neighbor = Join();
  ASSERT_TRUE(neighbor->Take());
  const std::vector<std::string> malformed = {"x", std::string(12, 'x'), std::string(24, 'x'),
                                              std::string(60'000, 'x')};
  for (const std::string& bytes : malformed) {
    const auto service = Join();
    ASSERT_TRUE(service->Take());
    ASSERT_TRUE(service->Send(bytes.data(), bytes.size()));
    Serve();
    ExpectRefused(*service);
  }
  {
    // A message of a known type that is too short.
    const auto service = Join();
    ASSERT_TRUE(service->Take());
    const Message sets = MakeMessage(MessageType::kSets);
    ASSERT_TRUE(service->Send(&sets, 16));
    Serve();
    ExpectRefused(*service);
  }
  {
    // A second Hello.
    const auto service = Join();
    ASSERT_TRUE(service->Take());
    ASSERT_TRUE(service->Send(MakeMessage(MessageType::kHello)));
    Serve();
    ExpectRefused(*service);
  }
  {
    // No Hello.
    const Connection service(options_.path);
    ASSERT_TRUE(service.Send(MakeMessage(MessageType::kSets)));
    Serve();
    ExpectRefused(service);
  }
  EXPECT_EQ(connected_.size(), 1U);
  EXPECT_FALSE(neighbor->HasEnded());
}

TEST_F(RingServerTest, IgnoresMessagesOfUnknownTypes) {
  Listen();
  const auto service = Join();
  ASSERT_TRUE(service->Take());
  const Message unknown = MakeMessage(static_cast<MessageType>(1000));
  ASSERT_TRUE(service->Send(&unknown, 8));
  ASSERT_TRUE(service->Send(unknown));
  ASSERT_TRUE(service->Send(MakeMessage(MessageType::kSets)));
  Serve();
  EXPECT_EQ(sets_changed_, 1);
  EXPECT_FALSE(service->HasEnded());
}

TEST_F(RingServerTest, RefusesAnotherVersion) {
  Listen();
  const Connection service(options_.path);
  Message hello = MakeMessage(MessageType::kHello);
  hello.version = 0;
  const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
  ASSERT_TRUE(service.Send(hello, {region.get()}));
  Serve();
  ExpectRefused(service, ring::RefuseReason::kNoCommonVersion);
}

TEST_F(RingServerTest, HandlesALimitedNumberOfMessagesOfAClientAtATime) {
  options_.messages_of_round = 5;
  Listen();
  const auto flood = Join();
  const auto neighbor = Join();
  while (flood->Send(MakeMessage(MessageType::kSets))) {
  }
  ASSERT_TRUE(neighbor->Send(MakeMessage(MessageType::kEnabled, 9)));
  server_->Serve(this);
  EXPECT_EQ(sets_changed_, 5);
  EXPECT_EQ(connected_[1]->enabled(), 9U);
}

TEST_F(RingServerTest, EndsTheConnectionOfAClientThatFloods) {
  options_.messages_of_second = 100;
  Listen();
  const auto flood = Join();
  const auto neighbor = Join();
  ASSERT_TRUE(flood->Take());
  for (int i = 0; i < 1000 && flood->Send(MakeMessage(MessageType::kFull)); ++i) Serve();
  ExpectRefused(*flood);
  EXPECT_TRUE(neighbor->Send(MakeMessage(MessageType::kSets)));
  Serve();
  EXPECT_EQ(sets_changed_, 1);
}

TEST_F(RingServerTest, KeepsMessagesForWhichTheKernelHasNoQueue) {
  has_small_queues = true;
  Listen();
  const auto service = Join();
  ASSERT_EQ(service->Take()->type, MessageType::kWelcome);
  RingClient* const client = connected_.at(0);
  constexpr std::uint64_t kMessages = 500;
  for (std::uint64_t i = 0; i < kMessages; ++i) client->Send(MessageType::kFlush, i);
  Serve();
  // The service reads what the queue holds, then the server sends more.
  std::uint64_t next = 0;
  int rounds = 0;
  for (; next < kMessages && rounds < 500; ++rounds) {
    while (const std::optional<Message> message = service->Take()) {
      ASSERT_EQ(message->value, next);
      ++next;
    }
    Serve();
  }
  EXPECT_EQ(next, kMessages);
  EXPECT_GT(rounds, 2);  // the queue was really small
  EXPECT_EQ(server_->refused(), 0U);
  // The server no longer waits for room in the queue, so a caller that polls it does not loop.
  pollfd ready{server_->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);

  // The messages of a service that reads none take a limited amount of memory.
  std::uint64_t sent = 0;
  for (; sent < 10'000 && connected_.size() == 1; ++sent) {
    client->Send(MessageType::kFlush, 0);
    Serve();
  }
  EXPECT_TRUE(connected_.empty());
  // The server counts 64 bytes for each message, in addition to its size.
  EXPECT_LE(sent, 2 * ring::kQueueBytes / (64 + sizeof(Message)));
  ASSERT_EQ(server_->refused(), 1U);
  EXPECT_EQ(server_->refusals().Latest()[0].reason, RingRefusal::kReadsNothing);
}

TEST_F(RingServerTest, EndsTheConnectionOfAClientThatReadsNoMessages) {
  Listen();
  const auto service = Join();
  const auto neighbor = Join();
  RingClient* const client = connected_[0];
  for (int i = 0; i < 100'000 && connected_.size() == 2; ++i) {
    client->Send(MessageType::kFlush, 0);
    Serve();
  }
  ASSERT_EQ(connected_.size(), 1U);
  EXPECT_NE(connected_[0], client);
  ASSERT_EQ(server_->refused(), 1U);
  EXPECT_EQ(server_->refusals().Latest()[0].reason, RingRefusal::kReadsNothing);
}

TEST_F(RingServerTest, EndsConnectionsWithoutHello) {
  options_.greeting_time = 20'000'000;
  Listen();
  const auto neighbor = Join();
  ASSERT_TRUE(neighbor->Take());
  const Connection silent(options_.path);
  Serve();
  EXPECT_EQ(server_->clients(), 2U);
  usleep(30'000);
  server_->Serve(this);
  EXPECT_TRUE(silent.HasEnded());
  EXPECT_FALSE(neighbor->HasEnded());
  EXPECT_EQ(server_->clients(), 1U);
}

TEST_F(RingServerTest, SurvivesAThousandConnections) {
  options_.clients = 100;
  options_.clients_of_user = 80;
  Listen();
  const auto neighbor = Join();
  ASSERT_TRUE(neighbor->Take());
  const auto before = CountDescriptors();
  int refused = 0;
  {
    std::vector<std::unique_ptr<Connection>> many;
    for (int i = 0; i < 1000; ++i) {
      many.push_back(std::make_unique<Connection>(options_.path));
      if (i % 100 == 99) Serve();
    }
    Serve();
    EXPECT_EQ(server_->clients(), 80U);
    for (const auto& each : many) refused += each->HasEnded() || each->Take() ? 1 : 0;
  }
  EXPECT_EQ(refused, 921);
  Serve();
  ExpectDescriptors(before);
  EXPECT_EQ(server_->clients(), 1U);
  EXPECT_FALSE(neighbor->HasEnded());
  EXPECT_EQ(Join()->Take()->type, MessageType::kWelcome);
}

TEST_F(RingServerTest, RefusesConnectionsWhenThereAreNoDescriptors) {
  Listen();
  const auto neighbor = Join();
  ASSERT_TRUE(neighbor->Take());
  const Connection service(options_.path);
  rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  // Uses all descriptor numbers up to the limit.
  std::vector<UniqueFd> all;
  rlimit low = old;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (;;) {
    UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) break;
    all.push_back(std::move(fd));
  }
  Serve();
  EXPECT_TRUE(service.HasEnded());
  // The server's descriptor is not readable, so a caller that polls the descriptor does not loop.
  pollfd ready{server_->fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  all.clear();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(Join()->Take()->type, MessageType::kWelcome);
  EXPECT_FALSE(neighbor->HasEnded());
}

// Makes all further calls of the system call `number` in this process fail with ENOSPC. Returns
// false if this is not possible.
bool DenyCall(int number) {
  const sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(number)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSPC},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)),
                           const_cast<sock_filter*>(filter)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST_F(RingServerTest, RefusesAConnectionThatItCannotWaitFor) {
  Listen();
  const pid_t child = fork();
  if (child == 0) {
    const Connection service(options_.path);
    if (!DenyCall(SYS_epoll_ctl)) _exit(2);
    server_->Serve(this);
    const std::vector<RingRefusalEntry> refusals = server_->refusals().Latest();
    const bool is_right =
        service.HasEnded() && server_->clients() == 0 && server_->users() == 0 &&
        refusals.size() == 1 && refusals[0].reason == RingRefusal::kSystemError &&
        refusals[0].detail ==
            "waiting for messages of the service: epoll_ctl: No space left on device";
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A region for which the collector has no memory is not called too large or invalid.
TEST_F(RingServerTest, RefusesARegionForWhichItHasNoMemory) {
  Listen();
  const pid_t child = fork();
  if (child == 0) {
    const Connection service(options_.path);
    const UniqueFd region = tests::MakeRegion(tests::CorrectHeader());
    if (!DenyCall(SYS_fallocate)) _exit(2);
    if (!service.Send(MakeMessage(MessageType::kHello), {region.get()})) _exit(3);
    Serve();
    const std::optional<Message> answer = service.Take();
    const std::vector<RingRefusalEntry> refusals = server_->refusals().Latest();
    const bool is_right =
        answer && answer->type == MessageType::kRefuse &&
        answer->value == static_cast<std::uint64_t>(ring::RefuseReason::kTooManyClients) &&
        refusals.size() == 1 && refusals[0].reason == RingRefusal::kSystemError &&
        refusals[0].detail ==
            "cannot allocate the memory of the service's region: No space left on device";
    _exit(is_right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(RingServerTest, KeepsNothingOfAUserWithoutConnections) {
  options_.clients = 0;
  Listen();
  ExpectRefused(*Join(), ring::RefuseReason::kTooManyClients);
  EXPECT_EQ(server_->users(), 0U);
  const std::vector<RingRefusalEntry> refusals = server_->refusals().Latest();
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].reason, RingRefusal::kTooManyServices);
  EXPECT_EQ(refusals[0].uid, geteuid());
  EXPECT_EQ(refusals[0].pid, getpid());
}

TEST(RingRefusalsTest, CountsByUserAndReasonWithinALimit) {
  RingRefusals refusals;
  refusals.Add(1, 10, RingRefusal::kBadRegion, "first");
  refusals.Add(1, 11, RingRefusal::kNoHello);
  refusals.Add(2, 12, RingRefusal::kBadRegion);
  refusals.Add(1, 13, RingRefusal::kBadRegion, "second");
  std::vector<RingRefusalEntry> entries = refusals.Latest();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].uid, 1U);
  EXPECT_EQ(entries[0].pid, 13);
  EXPECT_EQ(entries[0].count, 2U);
  EXPECT_EQ(entries[0].detail, "second");
  EXPECT_EQ(entries[1].uid, 2U);
  EXPECT_EQ(entries[2].reason, RingRefusal::kNoHello);
  for (uid_t uid = 100; uid < 1100; ++uid) refusals.Add(uid, 1, RingRefusal::kNoHello);
  entries = refusals.Latest();
  EXPECT_EQ(entries.size(), RingRefusals::kMaxEntries);
  EXPECT_EQ(entries.front().uid, 1099U);
  EXPECT_EQ(refusals.count(), 1004U);
}

TEST(RingRefusalsTest, ReportsEachUserAndReasonOnce) {
  RingRefusals refusals;
  RingRefusalNews news;
  EXPECT_TRUE(news.Take(refusals).empty());
  refusals.Add(1, 10, RingRefusal::kBadRegion, "it is not sealed");
  refusals.Add(1, 11, RingRefusal::kBadRegion, "it is not sealed");
  refusals.Add(2, 12, RingRefusal::kTooManyOfUser);
  const std::vector<std::string> first = news.Take(refusals);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_TRUE(first[0].starts_with(
      "refused the service with the process id 12 of user 2: too many services "
      "of this user are connected; end services, or raise"))
      << first[0];
  EXPECT_TRUE(
      first[1].starts_with("refused the service with the process id 11 of user 1: the service sent "
                           "no valid region: it is not sealed; use a libeventheader"))
      << first[1];
  EXPECT_TRUE(news.Take(refusals).empty());
  refusals.Add(1, 10, RingRefusal::kBadRegion);
  EXPECT_TRUE(news.Take(refusals).empty());
  refusals.Add(static_cast<uid_t>(-1), 0, RingRefusal::kNoDescriptor);
  ASSERT_EQ(news.Take(refusals).size(), 1U);
  EXPECT_EQ(refusals.by_reason()[static_cast<std::size_t>(RingRefusal::kBadRegion)], 3U);
}

TEST(RingRefusalsTest, EachReasonHasATextAndARemedy) {
  for (int i = 0; i <= static_cast<int>(RingRefusal::kSystemError); ++i) {
    const RingRefusalText& text = TextOf(static_cast<RingRefusal>(i));
    EXPECT_NE(text.name, "") << i;
    EXPECT_NE(text.message, "") << i;
    EXPECT_NE(text.remedy, "") << i;
  }
}

TEST(RingSocketPathTest, IsThatOfTheVariableOrOfTheUser) {
  setenv("EVENTHEADER_SOCKET", "/a/b", 1);
  EXPECT_EQ(*RingSocketPath(), "/a/b");
  unsetenv("EVENTHEADER_SOCKET");
  if (geteuid() == 0) {
    EXPECT_EQ(*RingSocketPath(), "/run/nettraced/events");
  } else {
    setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
    EXPECT_EQ(*RingSocketPath(), "/run/user/1/nettraced/events");
  }
}

}  // namespace
}  // namespace collector
