// A small collector of rings in user space, for tests of the service's side. A connection is
// inline if the service sends its events over the socket, instead of through shared memory.
#ifndef TESTS_SUPPORT_EVENTHEADER_RING_COLLECTOR_H_
#define TESTS_SUPPORT_EVENTHEADER_RING_COLLECTOR_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "libeventheader/base/ring_layout.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/ring/ring_mirror.h"
#include "tools/collector/ring/ring_region.h"

namespace tests {

namespace ring = eh::internal::ring;

// A folder that is deleted with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/ring_test_XXXXXX";
    path_ = mkdtemp(name);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The connection of one service, and its region: the memory that has the service's rings.
class RingClient {
 public:
  struct Event {
    collector::RingWriter writer;
    std::uint64_t number;
    std::uint64_t lost_before;  // events lost since the writer's previous event
    std::uint64_t timestamp;
    std::string tracepoint;
    std::vector<std::byte> bytes;
  };

  explicit RingClient(base::UniqueFd socket) : socket_(std::move(socket)) {}

  // Receives Hello and answers it. `chunks` is the number of chunks that the service
  // may use.
  void Welcome(std::uint64_t chunks = 64) {
    ring::Message hello{};
    base::UniqueFd fd;
    ASSERT_TRUE(Receive(&hello, &fd));
    ASSERT_EQ(hello.type, ring::MessageType::kHello);
    if (drops_descriptors) fd.reset();
    if (!fd.valid() && (hello.value & ring::kIsInline) == 0) {
      Send(ring::MessageType::kRefuse,
           static_cast<std::uint64_t>(ring::RefuseReason::kNoDescriptor));
      ASSERT_TRUE(Receive(&hello, &fd));
    }
    if ((hello.value & ring::kIsInline) != 0) {
      auto mirror = collector::RingMirror::Create(payload_, static_cast<std::uint32_t>(chunks));
      ASSERT_TRUE(mirror.ok()) << mirror.status();
      mirror_ = *std::move(mirror);
      inline_reason = collector::RingMirror::ReasonOf(hello.value);
      fd = mirror_->Duplicate();
    }
    auto region = collector::RingRegion::Open(std::move(fd), {std::uint64_t{2} << 30});
    ASSERT_TRUE(region.ok()) << region.status();
    region_ = *std::move(region);
    region_->DisableAll();
    Send(ring::MessageType::kWelcome, chunks);
    ReadNames();
  }

  // Enables or disables all event sets, and waits until the service has confirmed this or has
  // ended.
  void EnableAll(bool on = true) {
    ReadNames();
    for (std::uint32_t i = 0; i < names_.size(); ++i) region_->SetEnabled(i, on);
    region_->PublishEnabled();
    Send(ring::MessageType::kEnable, 1);
    for (ring::Message message{}; Receive(&message, nullptr);) {
      if (message.type == ring::MessageType::kEnabled) return;
    }
  }
  void Flush() { Ask(ring::MessageType::kFlush, ring::MessageType::kFlushed); }

  // Sends a message, waits for its answer, and returns the value in the answer.
  std::uint64_t Ask(ring::MessageType question, ring::MessageType answer, std::uint64_t value = 1) {
    Send(question, value);
    for (ring::Message message{}; Receive(&message, nullptr);) {
      if (message.type == answer) return message.value;
    }
    ADD_FAILURE() << "no answer";
    return 0;
  }

  // Reads all events that are in the region. Adds events to `events` and losses to `lost`. If
  // `give_back` is set, the service may then reuse the memory of these events.
  void Drain(bool give_back = true) {
    ReceivePatches();
    ReadNames();
    while (region_->Read(
        1 << 20,
        [this](const collector::RingRecord& record) {
          if (leaves_one_of != 0 && ++passed_ % leaves_one_of == 0) return false;
          const std::string name = record.set < names_.size() ? names_[record.set] : "?";
          const std::uint64_t before = std::exchange(trailing_[record.writer.ordinal], 0);
          events.push_back({record.writer,
                            record.number,
                            before + record.lost_before,
                            record.timestamp,
                            name,
                            {record.event.begin(), record.event.end()}});
          lost[record.writer.ordinal] += record.lost_before;
          return true;
        },
        [this](const collector::RingWriter& writer, std::uint64_t number, std::uint64_t /*next*/) {
          lost[writer.ordinal] += number;
          trailing_[writer.ordinal] += number;
        })) {
    }
    if (!give_back) return;
    region_->GiveBack();
    SendChanges();
  }
  // Receives the events that have arrived on an inline connection.
  void ReceivePatches() {
    if (mirror_ == nullptr) return;
    pollfd ready{socket_.get(), POLLIN, 0};
    for (ring::Message message{}; poll(&ready, 1, 0) == 1 && Receive(&message, nullptr);) {
    }
  }

  void ReadNames() {
    region_->ReadNames(ring::kMaxSets, [this](std::uint32_t set, std::string_view name) {
      ASSERT_EQ(set, names_.size());
      names_.emplace_back(name);
    });
  }

  // Returns false if the service has closed the connection.
  bool Receive(ring::Message* message, base::UniqueFd* fd) {
    pollfd ready{socket_.get(), POLLIN, 0};
    if (poll(&ready, 1, 60'000) != 1) {
      ADD_FAILURE() << "no message";
      return false;
    }
    payload_.resize(ring::kMaxPayload);
    iovec parts[2] = {{message, sizeof(*message)}, {payload_.data(), payload_.size()}};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    header.msg_control = room;
    header.msg_controllen = sizeof(room);
    const ssize_t got = recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (got < static_cast<ssize_t>(sizeof(*message))) return false;
    payload_.resize(static_cast<std::size_t>(got) - sizeof(*message));
    EXPECT_FALSE(has_end) << "a message after End";
    has_end = message->type == ring::MessageType::kEnd;
    if (message->type == ring::MessageType::kPatch) {
      EXPECT_TRUE(mirror_->Apply(payload_));
    }
    if (const cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr && fd != nullptr) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(control), sizeof(received));
      *fd = base::UniqueFd(received);
    }
    return true;
  }
  void Send(ring::MessageType type, std::uint64_t value) {
    SendChanges();
    const ring::Message message{ring::kMessageMagic, type, value, ring::kVersion, 0};
    const ssize_t sent = send(socket_.get(), &message, sizeof(message), MSG_NOSIGNAL);
    // Ignores the errors that mean that the service has ended.
    if (sent < 0 && (errno == EPIPE || errno == ECONNRESET)) return;
    ASSERT_EQ(sent, static_cast<ssize_t>(sizeof(message)));
  }
  // On an inline connection, sends the service what this collector has changed in its copy of the
  // region.
  void SendChanges() {
    if (mirror_ == nullptr) return;
    mirror_->TakeChanges(ring::kMaxPayload, [this](std::span<const std::byte> patches) {
      const ring::Message message{ring::kMessageMagic, ring::MessageType::kPatch, 0, ring::kVersion,
                                  0};
      std::vector<std::byte> bytes(sizeof(message) + patches.size());
      std::memcpy(bytes.data(), &message, sizeof(message));
      std::memcpy(bytes.data() + sizeof(message), patches.data(), patches.size());
      static_cast<void>(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
    });
  }
  // Closes the connection, as a collector that has crashed does.
  void Close() { socket_.reset(); }

  int socket() const { return socket_.get(); }
  collector::RingRegion& region() { return *region_; }
  const std::vector<std::string>& names() const { return names_; }

  std::vector<Event> events;
  std::map<std::uint64_t, std::uint64_t> lost;  // lost events of each writer, by its ordinal
  // If this is N and not 0, Drain leaves each Nth event in the region, for a later call of Drain.
  std::uint64_t leaves_one_of = 0;
  std::string inline_reason;       // "": the connection is not inline
  bool has_end = false;            // the service has sent the message End
  bool drops_descriptors = false;  // Acts like a security module that forbids to pass descriptors.

 private:
  base::UniqueFd socket_;
  std::unique_ptr<collector::RingMirror> mirror_;  // of an inline connection
  std::vector<std::byte> payload_;                 // bytes after the last Message received
  std::unique_ptr<collector::RingRegion> region_;
  std::vector<std::string> names_;
  std::map<std::uint64_t, std::uint64_t> trailing_;  // lost after the last event, by ordinal
  std::uint64_t passed_ = 0;                         // events passed to Drain
};

// The socket that services connect to.
class RingCollector {
 public:
  explicit RingCollector(const std::string& path) {
    socket_ = base::UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof(address.sun_path), "%s", path.c_str());
    unlink(path.c_str());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0)
        << path;
    EXPECT_EQ(listen(socket_.get(), 64), 0);
  }

  // Waits until a service connects. Returns false if none connects within `ms`.
  bool WaitForClient(int ms = 60'000) const {
    pollfd ready{socket_.get(), POLLIN, 0};
    return poll(&ready, 1, ms) == 1;
  }
  // Throws if no service connects within a minute, which ends and fails the test.
  std::unique_ptr<RingClient> Accept() const {
    if (!WaitForClient()) throw std::runtime_error("no service has connected");
    return std::make_unique<RingClient>(
        base::UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }

 private:
  base::UniqueFd socket_;
};

}  // namespace tests

#endif  // TESTS_SUPPORT_EVENTHEADER_RING_COLLECTOR_H_
