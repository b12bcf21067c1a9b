// Tests the control server with a FakeService in place of the daemon: framing, limits, clients that
// do nothing or too much, tails, and shutdown.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/collector/fake_service.h"
#include "tools/base/unique_fd.h"
#include "tools/control/client.h"
#include "tools/control/messages.h"
#include "tools/control/server.h"

namespace control {
namespace {

using base::UniqueFd;

constexpr char kReload[] = R"({"method":"net.nettrace.Collector.Reload"})";
constexpr char kReloaded[] = R"({"parameters":{}})";
constexpr char kTail[] =
    R"({"method":"net.nettrace.Collector.Tail","parameters":{"session":"web"},"upgrade":true})";

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    char name[] = "/tmp/control.XXXXXX";
    directory_ = mkdtemp(name);
    options_.path = directory_ + "/control";
  }
  ~ControlServerTest() override {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Start() {
    auto server = ControlServer::Start(&service_, options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  UniqueFd Connect() const {
    UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, options_.path.c_str());
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  // Reads until the server closes the connection. Fails if no data arrives for 20 s.
  static std::string ReadAll(const UniqueFd& fd) {
    std::string all;
    for (;;) {
      pollfd entry = {fd.get(), POLLIN, 0};
      if (poll(&entry, 1, 20'000) != 1) {
        ADD_FAILURE() << "the server sent nothing for 20 s, after: " << all;
        return all;
      }
      char buffer[1 << 16];
      const ssize_t got = read(fd.get(), buffer, sizeof buffer);
      if (got <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(got));
    }
  }
  static void Send(const UniqueFd& fd, const std::string& text) {
    ASSERT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Sends a message with its NUL.
  static void SendMessage(const UniqueFd& fd, const std::string& message) {
    Send(fd, message + '\0');
  }
  // Returns the messages until the server closes the connection, one on each line.
  static std::string Messages(const UniqueFd& fd) {
    std::string all = ReadAll(fd);
    for (char& c : all) {
      if (c == '\0') c = '\n';
    }
    return all;
  }
  static void EndSending(const UniqueFd& fd) { shutdown(fd.get(), SHUT_WR); }

  FakeService service_;
  ControlServerOptions options_;
  std::string directory_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, RepliesInOrderHoweverTheMessagesAreCut) {
  Start();
  const UniqueFd fd = Connect();
  SendMessage(fd, absl::StrCat(kReload, std::string(1, '\0'), R"({"method":"a.b.C"})"));
  for (const char c : std::string(kReload) + '\0') Send(fd, std::string(1, c));
  EndSending(fd);
  EXPECT_EQ(Messages(fd), absl::StrCat(kReloaded,
                                       "\n{\"error\":\"org.varlink.service.InterfaceNotFound\","
                                       "\"parameters\":{\"interface\":\"a.b\"}}\n",
                                       kReloaded, "\n"));
  EXPECT_EQ(service_.reloads, 2);
}

TEST_F(ControlServerTest, ReportsChangesWithTheirUsers) {
  std::mutex mutex;
  std::vector<std::string> changes;
  options_.on_change = [&](const std::string& change) {
    const std::lock_guard lock(mutex);
    changes.push_back(change);
  };
  Start();
  auto client = ControlClient::Connect(options_.path);
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(client->Call("List", "{}").ok());
  EXPECT_EQ(client->Call("Stop", R"({"session":"x"})").status(),
            absl::NotFoundError("there is no session 'x'"));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(changes, std::vector{absl::StrCat("uid ", getuid(), " pid ", getpid(),
                                              ": Stop x: NOT_FOUND: there is no session 'x'")});
}

// The server may be stopped while it accepts a client that has just connected.
TEST_F(ControlServerTest, StopsAtAnyTime) {
  for (int i = 0; i < 300; ++i) {
    Start();
    { const UniqueFd gone = Connect(); }
    // A different moment in each round.
    absl::SleepFor(absl::Microseconds(i));
    server_.reset();
  }
}

TEST_F(ControlServerTest, RefusesTooLongMessages) {
  Start();
  const UniqueFd fd = Connect();
  std::string text(kMaxRequest + 1, ' ');
  std::thread sender([&] { send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL); });
  EXPECT_NE(Messages(fd).find("ResourceExhausted"), std::string::npos);
  sender.join();
  // A message of exactly kMaxRequest bytes, including its NUL, is read.
  const UniqueFd other = Connect();
  const std::string request = kReload + std::string(kMaxRequest - 1 - strlen(kReload), ' ');
  std::thread other_sender([&] {
    SendMessage(other, request);
    EndSending(other);
  });
  EXPECT_EQ(Messages(other), absl::StrCat(kReloaded, "\n"));
  other_sender.join();
}

TEST_F(ControlServerTest, DisconnectsSlowAndIdleClients) {
  options_.message_timeout = absl::Milliseconds(100);
  options_.idle_timeout = absl::Milliseconds(200);
  Start();
  const UniqueFd slow = Connect();
  const absl::Time begin = absl::Now();
  std::thread writer([&] {
    // Single bytes from time to time do not keep the connection open.
    for (int i = 0; i < 1000; ++i) {
      if (send(slow.get(), "{", 1, MSG_NOSIGNAL) != 1) return;
      absl::SleepFor(absl::Milliseconds(20));
    }
  });
  EXPECT_EQ(ReadAll(slow), "");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(10));
  writer.join();
  const UniqueFd idle = Connect();
  EXPECT_EQ(ReadAll(idle), "");
  // A client that sends requests and does not read the replies.
  service_.Update("web", [](SessionStatus* web) { web->error = std::string(1 << 20, 'x'); });
  const UniqueFd deaf = Connect();
  SendMessage(deaf, R"({"method":"net.nettrace.Collector.List"})");
  pollfd ended = {deaf.get(), POLLRDHUP, 0};  // The server has closed the connection.
  ASSERT_EQ(poll(&ended, 1, 60'000), 1);
  const std::string cut = ReadAll(deaf);
  EXPECT_GT(cut.size(), 0U);
  EXPECT_LT(cut.size(), std::size_t{1} << 20);
}

TEST_F(ControlServerTest, ClientsThatNeverReadDoNotDelayOthers) {
  options_.message_timeout = absl::Minutes(1);
  service_.Update("web", [](SessionStatus* web) { web->error = std::string(1 << 20, 'x'); });
  Start();
  std::vector<UniqueFd> deaf;
  for (int i = 0; i < 20; ++i) {
    deaf.push_back(Connect());
    SendMessage(deaf.back(), R"({"method":"net.nettrace.Collector.List"})");
  }
  auto client = ControlClient::Connect(options_.path);
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(client->Call("Reload", "{}").ok());
  const absl::Time begin = absl::Now();
  server_.reset();
  // The shutdown does not wait for the time limit of a message, which is one minute here.
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST_F(ControlServerTest, ThatHangsIsWaitedForAsLongAsTheClientWants) {
  const UniqueFd listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  options_.path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listening.get(), 0), 0);
  auto client = ControlClient::Connect(options_.path, absl::Milliseconds(50));
  ASSERT_TRUE(client.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Call("List", "{}").status()));
  // The first connection fills the queue of the socket, so a second connection is not accepted in
  // time.
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      ControlClient::Connect(options_.path, absl::Milliseconds(50)).status()));
}

TEST_F(ControlServerTest, RefusesMoreConnectionsThanItHasPlacesFor) {
  options_.max_connections = 3;
  Start();
  std::vector<UniqueFd> open;
  for (int i = 0; i < 3; ++i) {
    open.push_back(Connect());
    // The reply shows that the client is served.
    SendMessage(open.back(), kReload);
    char buffer[64];
    EXPECT_GT(read(open.back().get(), buffer, sizeof buffer), 0);
  }
  EXPECT_NE(Messages(Connect()).find("ResourceExhausted"), std::string::npos);
  open.pop_back();
  // The place is free once the server has detected the end of the connection.
  for (int i = 0;; ++i) {
    ASSERT_LT(i, 3000);
    auto client = ControlClient::Connect(options_.path);
    ASSERT_TRUE(client.ok());
    const auto reply = client->Call("Reload", "{}");
    if (reply.ok()) break;
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kResourceExhausted);
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TEST_F(ControlServerTest, WaitsWithItsCallerAndNoLonger) {
  Start();
  std::thread later([this] {
    absl::SleepFor(absl::Milliseconds(150));
    service_.Update("web", [](SessionStatus* web) { web->events = 5; });
  });
  auto client = ControlClient::Connect(options_.path);
  ASSERT_TRUE(client.ok());
  const auto reply = client->Call("Wait", R"({"session":"web","events":5})");
  later.join();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(ParseSession((*reply)["session"])->events, 5U);
  EXPECT_EQ(client->Call("Wait", R"({"session":"web","events":6,"timeout":50})").status().code(),
            absl::StatusCode::kDeadlineExceeded);
  // A wait ends when its client disconnects; other waits end with the server.
  SendMessage(Connect(), R"({"method":"net.nettrace.Collector.Wait",)"
                         R"("parameters":{"session":"web","events":6}})");
  const UniqueFd waiting = Connect();
  SendMessage(waiting, R"({"method":"net.nettrace.Collector.Wait",)"
                       R"("parameters":{"session":"box","events":6}})");
  while (service_.Asked("box") == 0) absl::SleepFor(absl::Milliseconds(1));
  server_.reset();
  EXPECT_NE(Messages(waiting).find("the daemon is stopping"), std::string::npos);
}

TEST_F(ControlServerTest, HandsTheSocketToATail) {
  Start();
  auto client = ControlClient::Connect(options_.path);
  ASSERT_TRUE(client.ok());
  std::string rest;
  auto stream = (*std::move(client)).Upgrade("Tail", R"({"session":"web"})", &rest);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ(service_.tails, 1);
  EndSending(*stream);
  EXPECT_EQ(rest + ReadAll(*stream), "bodyend");
  // The connection stays usable after an error.
  const UniqueFd fd = Connect();
  SendMessage(fd, R"({"method":"net.nettrace.Collector.Tail","parameters":{"session":"x"},)"
                  R"("upgrade":true})");
  SendMessage(fd, R"({"method":"net.nettrace.Collector.Tail","parameters":{"session":"web"}})");
  SendMessage(fd, kReload);
  EndSending(fd);
  const std::string replies = Messages(fd);
  EXPECT_NE(replies.find("NotFound"), std::string::npos);
  EXPECT_NE(replies.find("FailedPrecondition"), std::string::npos);
  EXPECT_NE(replies.find(kReloaded), std::string::npos);
}

TEST_F(ControlServerTest, EndsATailWhenItsPeerDisconnects) {
  service_.tail_body = std::string(std::size_t{4} << 20, 'x');
  Start();
  {
    const UniqueFd gone = Connect();
    SendMessage(gone, kTail);
    for (int i = 0; i < 6000 && service_.tails == 0; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(service_.tails, 1);
  }
  for (int i = 0; i < 6000 && service_.tails != 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(service_.tails, 0);
}

TEST_F(ControlServerTest, ShutsDownATailThatIsNotRead) {
  service_.tail_body = std::string(std::size_t{4} << 20, 'x');
  Start();
  const UniqueFd deaf = Connect();
  SendMessage(deaf, kTail);
  const UniqueFd ending = Connect();
  SendMessage(ending, kTail);
  for (int i = 0; i < 6000 && service_.tails != 2; ++i) absl::SleepFor(absl::Milliseconds(10));
  // A client that requests the end of a tail has some seconds to read the rest. The shutdown of the
  // server waits for unread tails for the same time.
  EndSending(ending);
  for (int i = 0; i < 6000 && service_.tails != 1; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(service_.tails, 1);
  const absl::Time begin = absl::Now();
  server_.reset();
  EXPECT_EQ(service_.tails, 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30));
}

TEST_F(ControlServerTest, ReplacesTheSocketOfADeadDaemonOnly) {
  {
    // A socket file without a listener.
    UniqueFd dead(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, options_.path.c_str());
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_EQ(ControlClient::Connect(options_.path).status().code(), absl::StatusCode::kNotFound);
  Start();
  const auto second = ControlServer::Start(&service_, options_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists) << second.status();
  auto client = ControlClient::Connect(options_.path);
  ASSERT_TRUE(client.ok()) << "the second one has taken the first one's socket";
  EXPECT_TRUE(client->Call("Reload", "{}").ok());
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  Start();
}

TEST_F(ControlServerTest, DoesNotReplaceAFileThatIsNotASocket) {
  std::ofstream(options_.path) << "precious";
  const auto server = ControlServer::Start(&service_, options_);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(std::filesystem::file_size(options_.path), 8U);
}

TEST_F(ControlServerTest, RefusesWrongOptionsWithAReason) {
  options_.look_group = "no-such-group";
  EXPECT_NE(ControlServer::Start(&service_, options_)
                .status()
                .message()
                .find("look_group no-such-group: no such group"),
            std::string::npos);
  options_.look_group = "";
  options_.path = directory_ + "/none/control";
  EXPECT_EQ(ControlServer::Start(&service_, options_).status().code(), absl::StatusCode::kNotFound);
  options_.path = directory_ + "/" + std::string(120, 'x');
  EXPECT_EQ(ControlServer::Start(&service_, options_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlServerTest, SocketIsPrivateWithoutGroups) {
  Start();
  struct stat facts = {};
  ASSERT_EQ(lstat(options_.path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(ControlServerTest, ContinuesWithoutFreeDescriptors) {
  Start();
  // The client's descriptor is made before the process has none left.
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::vector<UniqueFd> all;
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few = {64, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  // Takes all free descriptors. Returns whether there were any.
  const auto take_all = [&] {
    const std::size_t taken = all.size();
    for (UniqueFd one(dup(fd.get())); one.valid(); one = UniqueFd(dup(fd.get()))) {
      all.push_back(std::move(one));
    }
    return all.size() != taken;
  };
  // Other threads may close descriptors that they had opened before.
  while (take_all()) absl::SleepFor(absl::Milliseconds(50));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, options_.path.c_str());
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  SendMessage(fd, kReload);
  absl::SleepFor(absl::Milliseconds(150));
  EXPECT_EQ(service_.reloads, 0);
  all.clear();
  setrlimit(RLIMIT_NOFILE, &before);
  EndSending(fd);
  EXPECT_EQ(Messages(fd), absl::StrCat(kReloaded, "\n"));
}

}  // namespace

}  // namespace control
