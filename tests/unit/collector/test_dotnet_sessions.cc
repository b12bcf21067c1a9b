// Tests the client of .NET's diagnostics protocol against a fake runtime in this process: the
// request, replies of every kind, and sockets of another process than the one that they are named
// for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/dotnet/diagnostics_ipc.h"
#include "tools/collector/dotnet/diagnostics_socket.h"
#include "tools/collector/dotnet/dotnet_provider.h"
#include "tools/collector/dotnet/dotnet_sessions.h"
#include "tools/collector/dotnet/dotnet_survey.h"

namespace collector {
namespace {

using namespace std::string_literals;
using State = DotnetProcess::State;

const std::string kMagic = "DOTNET_IPC_V1\0"s;
const std::string kStarted = kMagic + "\x1C\0\xFF\0\0\0"s + "\1\2\3\4\5\6\7\x8"s;

std::string ErrorReply(std::uint32_t code) {
  std::string reply = kMagic + "\x18\0\xFF\xFF\0\0"s;
  reply.resize(reply.size() + sizeof code);
  std::memcpy(reply.data() + reply.size() - sizeof code, &code, sizeof code);
  return reply;
}

TEST(DotnetProviders, FormsOfTheOption) {
  const auto usual = ParseDotnetProviders("");
  ASSERT_TRUE(usual.ok());
  EXPECT_EQ(*usual, (std::vector<DotnetProvider>{{kDotnetRuntimeProvider, 4, 0x100003801D, ""}}));
  const auto several = ParseDotnetProviders(
      "My-Shop,Other.Events:warning,Microsoft-Windows-DotNETRuntime:5:0x1,A:*:7");
  ASSERT_TRUE(several.ok()) << several.status();
  EXPECT_EQ(*several, (std::vector<DotnetProvider>{{"My-Shop", 5, ~std::uint64_t{0}, ""},
                                                   {"Other.Events", 3, ~std::uint64_t{0}, ""},
                                                   {kDotnetRuntimeProvider, 5, 1, ""},
                                                   {"A", 5, 7, ""}}));
}

TEST(DotnetProviders, ProfilesAreJoinedWithEachOtherAndWithProviders) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  const auto joined = ParseDotnetProviders("gc,Shop,exceptions,contention");
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(*joined, (std::vector<DotnetProvider>{{"Shop", 5, kAll, ""},
                                                  {kDotnetRuntimeProvider, 4, 0xC001, ""}}));
  EXPECT_EQ(*ParseDotnetProviders("common"), *ParseDotnetProviders(""));
  const auto beside = ParseDotnetProviders("gc,Microsoft-Windows-DotNETRuntime:5:0x10,gc");
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(*beside, (std::vector<DotnetProvider>{{kDotnetRuntimeProvider, 5, 0x11, ""}}));
  EXPECT_EQ(ParseDotnetProviders("http")->size(), 6u);
  // The name of a profile (gc, http) names an EventSource if a level follows, or if it is not in
  // lower case.
  EXPECT_EQ(*ParseDotnetProviders("gc:*,HTTP"),
            (std::vector<DotnetProvider>{{"gc", 5, kAll, ""}, {"HTTP", 5, kAll, ""}}));
}

TEST(DotnetProviders, RejectsOtherForms) {
  std::string many = "P0";
  for (int i = 1; i < 33; ++i) absl::StrAppend(&many, ",P", i);
  for (const std::string& text : {","s, "A,"s, ":4"s, "A:loud"s, "A:4:x"s, "A:4:1:1"s, "A B"s,
                                  "A,a"s, "\xC3\xA4"s, std::string(256, 'x'), many}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseDotnetProviders(text).status())) << text;
  }
}

TEST(DiagnosticsIpc, RequestNamesProvidersAndTracepoints) {
  const std::string request = MakeCollectRequest({{"A", 4, 0x11, "tp"}});
  EXPECT_EQ(request, kMagic + "\x4F\0\2\6\0\0"s +  // header
                         "\1\0\0\0"
                         "\0\0\0\0\0\0\0\0"
                         "\1\0\0\0"s +
                         "\x11\0\0\0\0\0\0\0"
                         "\4\0\0\0"
                         "\2\0\0\0"
                         "A\0\0\0"
                         "\0\0\0\0"s +
                         "\0"
                         "\0\0\0\0"
                         "\3\0\0\0"
                         "t\0p\0\0\0"
                         "\0\0\0\0"s);
}

TEST(DiagnosticsIpc, RequestForAStream) {
  const std::string providers =
      "\1\0\0\0"
      "\x11\0\0\0\0\0\0\0"
      "\4\0\0\0"
      "\2\0\0\0"
      "A\0\0\0"
      "\0\0\0\0"s;
  EXPECT_EQ(MakeStreamRequest(StreamRequest::kWithoutStacks, {{"A", 4, 0x11, "tp"}}),
            kMagic + "\x3A\0\2\4\0\0"s + "\x40\0\0\0\1\0\0\0\0\0"s + providers);
  EXPECT_EQ(MakeStreamRequest(StreamRequest::kAny, {{"A", 4, 0x11, "tp"}}),
            kMagic + "\x39\0\2\3\0\0"s + "\x40\0\0\0\1\0\0\0\0"s + providers);
  EXPECT_EQ(MakeStopRequest(5), kMagic + "\x1C\0\2\1\0\0"s + "\5\0\0\0\0\0\0\0"s);
}

TEST(DiagnosticsIpc, RequestForAPerfMapAndItsReply) {
  using Kind = DiagnosticsReply::Kind;
  EXPECT_EQ(MakePerfMapRequest(true), kMagic + "\x18\0\4\5\0\0"s + "\3\0\0\0"s);
  EXPECT_EQ(MakePerfMapRequest(false), kMagic + "\x14\0\4\6\0\0"s);
  const std::string reply = kMagic + "\x18\0\xFF\0\0\0"s + "\0\0\0\0"s;
  for (std::size_t size = 0; size < reply.size(); ++size) {
    EXPECT_EQ(ParseDiagnosticsReply(reply.substr(0, size), RequestKind::kPerfMap).kind,
              Kind::kIncomplete);
  }
  EXPECT_EQ(ParseDiagnosticsReply(reply, RequestKind::kPerfMap).kind, Kind::kStarted);
  EXPECT_EQ(ParseDiagnosticsReply(reply).kind, Kind::kInvalid);
  EXPECT_EQ(ParseDiagnosticsReply(kStarted, RequestKind::kPerfMap).kind, Kind::kInvalid);
  EXPECT_EQ(ParseDiagnosticsReply(ErrorReply(kUnknownCommand), RequestKind::kPerfMap).kind,
            Kind::kError);
}

TEST(DiagnosticsIpc, LargestRequestFits) {
  std::vector<DotnetProvider> providers(32, {std::string(255, 'x'), 5, 1, std::string(255, 't')});
  EXPECT_LE(MakeCollectRequest(providers).size(), 65535u);
}

TEST(DiagnosticsIpc, Replies) {
  using Kind = DiagnosticsReply::Kind;
  for (std::size_t size = 0; size < kStarted.size(); ++size) {
    EXPECT_EQ(ParseDiagnosticsReply(kStarted.substr(0, size)).kind, Kind::kIncomplete) << size;
  }
  EXPECT_EQ(ParseDiagnosticsReply(kStarted).kind, Kind::kStarted);
  const DiagnosticsReply error = ParseDiagnosticsReply(ErrorReply(0x80131384));
  EXPECT_EQ(error.kind, Kind::kError);
  EXPECT_EQ(error.error, 0x80131384);
  EXPECT_EQ(ParseDiagnosticsReply("HTTP/1.1").kind, Kind::kInvalid);
  EXPECT_EQ(ParseDiagnosticsReply(kMagic + "\xFF\xFF\xFF\0\0\0"s).kind, Kind::kInvalid);
  EXPECT_EQ(ParseDiagnosticsReply(kMagic + "\x1C\0\2\0\0\0"s).kind, Kind::kInvalid);
}

// Returns a text as the protocol encodes it.
std::string Utf16(const std::string& text) {
  std::string bytes(4, '\0');
  bytes[0] = static_cast<char>(text.size() + 1);
  for (const char c : text) bytes += {c, '\0'};
  return bytes + "\0\0"s;
}

std::string InfoReply(const std::string& version) {
  const std::string payload = std::string(24, 'x') + Utf16("dotnet shop.dll") + Utf16("Linux") +
                              Utf16("x64") + Utf16("shop") + Utf16(version);
  std::string reply = kMagic + "\0\0\xFF\0\0\0"s + payload;
  reply[14] = static_cast<char>(reply.size() & 0xFF);
  reply[15] = static_cast<char>(reply.size() >> 8);
  return reply;
}

TEST(RuntimeVersion, IsReadFromAReply) {
  const std::string reply = InfoReply("10.0.12");
  EXPECT_EQ(*ParseRuntimeVersion(reply), "10.0.12");
  for (std::size_t size = 0; size < reply.size(); ++size) {
    EXPECT_TRUE(absl::IsUnavailable(ParseRuntimeVersion(reply.substr(0, size)).status())) << size;
  }
  EXPECT_TRUE(absl::IsUnimplemented(ParseRuntimeVersion(ErrorReply(kUnknownCommand)).status()));
  std::string long_text = reply;
  long_text[20 + 24 + 3] = '\x7F';  // the first text would have 2 G units
  for (const std::string& wrong : {"HTTP/1.1"s, reply + "x", InfoReply(std::string(100, '1')),
                                   InfoReply("10\n"), long_text, kMagic + "\x14\0\xFF\0\0\0"s}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRuntimeVersion(wrong).status()));
  }
}

TEST(ProcessFacts, AreReadFromFilesOfProc) {
  const std::string stat = "69 (a) (b)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 2281 20 21";
  const auto facts = ParseProcessFacts(69, stat, "Name:\ta\nUid:\t1\t2\t3\t4\nNSpid:\t69\t7\n");
  ASSERT_TRUE(facts);
  EXPECT_EQ(*facts, (ProcessFacts{69, 2281, 7, 2, "a) (b)"}));
  EXPECT_FALSE(ParseProcessFacts(69, "69 (a) Z" + stat.substr(13), "Uid:\t1\t2\n"));
  EXPECT_FALSE(ParseProcessFacts(69, stat, "Name:\ta\n"));
  EXPECT_FALSE(ParseProcessFacts(69, "", ""));
  const auto own = ReadProcessFacts(getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->user, geteuid());
}

// A runtime that listens at the socket of a process, by default this one.
class FakeRuntime {
 public:
  using Serve = std::function<void(int)>;  // takes a connection

  // `serve` gets all connections except those with a request to end a session, which `serve_stop`
  // gets. There is one connection at a time.
  FakeRuntime(
      const std::string& folder, pid_t pid, Serve serve, Serve serve_stop = [](int) {})
      : serve_(std::move(serve)), serve_stop_(std::move(serve_stop)) {
    const auto facts = ReadProcessFacts(pid);
    path_ =
        absl::StrCat(folder, "/dotnet-diagnostic-", facts->own_pid, "-", facts->start, "-socket");
    listener_ = base::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] {
      while (true) {
        const base::UniqueFd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!SetPeer(peer.get())) return;
        if (HasStopRequest(peer.get())) {
          serve_stop_(peer.get());
        } else {
          ++connections;
          serve_(peer.get());
        }
        SetPeer(-1);
      }
    });
  }
  ~FakeRuntime() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
      shutdown(listener_.get(), SHUT_RDWR);
      if (peer_ >= 0) shutdown(peer_, SHUT_RDWR);
    }
    thread_.join();
  }

  const std::string& path() const { return path_; }
  std::atomic<int> connections = 0;  // those that `serve` got

 private:
  static bool HasStopRequest(int peer) {
    const std::string stop = MakeStopRequest(0);
    std::array<char, 18> start;  // the magic bytes, the size and the command
    const ssize_t got = recv(peer, start.data(), start.size(), MSG_PEEK);
    return got == static_cast<ssize_t>(start.size()) &&
           stop.compare(0, start.size(), start.data(), start.size()) == 0;
  }
  // Sets the connection that the destructor shuts down; -1: none. Returns false if the thread must
  // end.
  bool SetPeer(int peer) {
    const std::lock_guard lock(mutex_);
    peer_ = peer;
    return peer >= 0 && !stops_;
  }

  Serve serve_;
  Serve serve_stop_;
  std::mutex mutex_;
  int peer_ = -1;
  bool stops_ = false;
  std::string path_;
  base::UniqueFd listener_;
  std::thread thread_;
};

// Receives the request and the descriptor. Returns the request.
std::string ReceiveRequest(int peer, base::UniqueFd* passed) {
  std::string request;
  while (true) {
    char bytes[4096];
    iovec data = {bytes, sizeof bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = recvmsg(peer, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return request;
    request.append(bytes, static_cast<std::size_t>(got));
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      *passed = base::UniqueFd(fd);
      request.pop_back();
      return request;
    }
  }
}

// Receives a request without a descriptor, and replies.
std::string ReplyTo(int peer, const std::string& reply) {
  char bytes[4096];
  const ssize_t got = read(peer, bytes, sizeof bytes);
  if (got <= 0 || send(peer, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return "";
  return {bytes, static_cast<std::size_t>(got)};
}

void WaitForEnd(int peer) {
  char bytes[16];
  while (read(peer, bytes, sizeof bytes) > 0) {
  }
}

class DotnetSessionsTest : public ::testing::Test {
 protected:
  DotnetSessionsTest() {
    std::string folder = "/tmp/dotnet-sessions-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    options_.providers = {{"Shop", 4, 1, "tracepoint"}};
    options_.folder = folder_;
    options_.reply_within = absl::Milliseconds(300);
    options_.open_data = [] { return open("/dev/null", O_RDWR | O_CLOEXEC); };
  }
  ~DotnetSessionsTest() override { std::filesystem::remove_all(folder_); }

  void Start() {
    auto sessions = DotnetSessions::Create(options_);
    ASSERT_TRUE(sessions.ok()) << sessions.status();
    sessions_ = *std::move(sessions);
    sessions_->Begin();
  }
  // Waits until the only process has this state, and returns it.
  DotnetProcess Await(State state) {
    DotnetProcess process;
    for (int i = 0; i < 500; ++i) {
      const DotnetReport report = sessions_->Report();
      if (!report.processes.empty()) process = report.processes.front();
      if (!report.processes.empty() && process.state == state) return process;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "state " << static_cast<int>(process.state) << ": " << process.reason;
    return process;
  }
  FakeRuntime::Serve Replies(std::string reply) {
    return [reply = std::move(reply)](int peer) {
      base::UniqueFd passed;
      ReceiveRequest(peer, &passed);
      // The client may close the connection before it has read everything.
      if (send(peer, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
      WaitForEnd(peer);
    };
  }

  std::string folder_;
  DotnetOptions options_;
  std::unique_ptr<DotnetSessions> sessions_;
};

TEST_F(DotnetSessionsTest, SendsRequestAndDescriptorAndKeepsTheConnection) {
  std::string request;
  struct stat passed_facts = {};
  std::atomic<bool> ended = false;
  FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    base::UniqueFd passed;
    request = ReceiveRequest(peer, &passed);
    EXPECT_EQ(fstat(passed.get(), &passed_facts), 0);
    // The reply comes in two parts.
    EXPECT_EQ(write(peer, kStarted.data(), 10), 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(write(peer, kStarted.data() + 10, 18), 18);
    WaitForEnd(peer);
    ended = true;
  });
  Start();
  const DotnetProcess process = Await(State::kEnabled);
  EXPECT_EQ(process.pid, getpid());
  EXPECT_EQ(process.reason, "");
  EXPECT_FALSE(ended);
  sessions_->Stop();
  for (int i = 0; i < 500 && !ended; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(ended);
  EXPECT_EQ(request, MakeCollectRequest(options_.providers));
  struct stat null_facts = {};
  ASSERT_EQ(stat("/dev/null", &null_facts), 0);
  EXPECT_EQ(passed_facts.st_rdev, null_facts.st_rdev);
  EXPECT_EQ(runtime.connections, 1);
}

TEST_F(DotnetSessionsTest, FindsAProcessThatListensLater) {
  options_.pids = {getpid()};
  Start();
  EXPECT_NE(Await(State::kNoSocket).reason.find("no diagnostics socket"), std::string::npos);
  const FakeRuntime runtime(folder_, getpid(), Replies(kStarted));
  Await(State::kEnabled);
}

TEST_F(DotnetSessionsTest, ReportsAnOlderRuntimeAndAnError) {
  {
    const FakeRuntime runtime(folder_, getpid(), Replies(ErrorReply(kUnknownCommand)));
    Start();
    EXPECT_EQ(Await(State::kTooOld).reason, "its runtime is older than .NET 10");
    sessions_->Stop();
    std::filesystem::remove(runtime.path());
  }
  const FakeRuntime runtime(folder_, getpid(), Replies(ErrorReply(0x80131384)));
  Start();
  EXPECT_EQ(Await(State::kRefused).reason, "its runtime refused the request with error 0x80131384");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(runtime.connections, 1) << "an error is final";
}

TEST_F(DotnetSessionsTest, WaitsForALateReplyOnTheSameConnection) {
  std::promise<void> may_reply;
  const std::shared_future<void> allowed = may_reply.get_future().share();
  const FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    base::UniqueFd passed;
    ReceiveRequest(peer, &passed);
    allowed.wait();
    ASSERT_EQ(write(peer, kStarted.data(), kStarted.size()), 28);
    WaitForEnd(peer);
  });
  options_.reply_within = absl::Milliseconds(50);
  Start();
  DotnetProcess process = Await(State::kAsked);
  for (int i = 0; i < 500 && !process.given_up; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    process = Await(State::kAsked);
  }
  EXPECT_TRUE(process.given_up);
  EXPECT_EQ(process.reason, "its runtime did not reply within 50ms");
  EXPECT_EQ(sessions_->Report().not_enabled, 1U);
  may_reply.set_value();
  process = Await(State::kEnabled);
  EXPECT_FALSE(process.given_up);
  EXPECT_EQ(process.reason, "");
  EXPECT_EQ(sessions_->Report().not_enabled, 0U);
  EXPECT_EQ(sessions_->Report().enabled, 1U);
  EXPECT_EQ(runtime.connections, 1);
}

// If the connection of a session ends first, .NET 10 may disable events of the next session.
TEST_F(DotnetSessionsTest, EndsTheSessionBeforeItsConnection) {
  base::UniqueFd session;
  std::string request;
  bool was_open = false;
  const auto begin = [&](int peer) {
    session = base::UniqueFd(dup(peer));
    base::UniqueFd passed;
    ReceiveRequest(peer, &passed);
    EXPECT_EQ(write(peer, kStarted.data(), kStarted.size()), 28);
  };
  const auto end = [&](int peer) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    char byte;
    was_open = recv(session.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    request = ReplyTo(peer, kStarted);
  };
  std::optional<FakeRuntime> runtime(std::in_place, folder_, getpid(), begin, end);
  Start();
  Await(State::kEnabled);
  sessions_->Stop();
  runtime.reset();  // waits for its thread, which sets the variables
  EXPECT_EQ(request, MakeStopRequest(ParseDiagnosticsReply(kStarted).session));
  EXPECT_TRUE(was_open);
  char byte;
  EXPECT_EQ(recv(session.get(), &byte, 1, MSG_DONTWAIT), 0);
}

TEST_F(DotnetSessionsTest, GivesUpARuntimeThatSendsGarbageOrEndlessly) {
  const FakeRuntime runtime(folder_, getpid(), [](int peer) {
    const std::string garbage(65536, 'x');
    while (send(peer, garbage.data(), garbage.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  Start();
  EXPECT_EQ(Await(State::kRefused).reason, "its diagnostics socket sent bytes that are no reply");
}

TEST_F(DotnetSessionsTest, GivesUpARuntimeThatSendsMoreThanAReply) {
  const FakeRuntime runtime(folder_, getpid(), Replies(kStarted + "x"));
  Start();
  EXPECT_EQ(Await(State::kRefused).reason, "its diagnostics socket sent bytes that are no reply");
}

TEST_F(DotnetSessionsTest, AsksAgainAfterAClosedConnection) {
  std::atomic<int> number = 0;
  const FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    base::UniqueFd passed;
    ReceiveRequest(peer, &passed);
    if (number++ == 0) return;
    EXPECT_EQ(write(peer, kStarted.data(), kStarted.size()), 28);
    WaitForEnd(peer);
  });
  Start();
  Await(State::kEnabled);
  EXPECT_EQ(runtime.connections, 2);
}

TEST_F(DotnetSessionsTest, ReportsARuntimeThatEndsTheSessionAndRuns) {
  const FakeRuntime runtime(folder_, getpid(), [](int peer) {
    base::UniqueFd passed;
    ReceiveRequest(peer, &passed);
    EXPECT_EQ(write(peer, kStarted.data(), kStarted.size()), 28);
  });
  Start();
  EXPECT_EQ(Await(State::kRefused).reason, "its runtime ended the session early");
  EXPECT_EQ(runtime.connections, 1);
}

TEST_F(DotnetSessionsTest, AProcessMayEndItsSessionBeforeItExits) {
  // The runtime is a separate process, so that it can exit.
  const pid_t child = fork();
  if (child == 0) {
    const auto facts = ReadProcessFacts(getpid());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    absl::StrCat(folder_, "/dotnet-diagnostic-", facts->own_pid, "-", facts->start, "-socket")
        .copy(address.sun_path, sizeof address.sun_path - 1);
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) _exit(1);
    if (listen(listener, 1) != 0) _exit(1);
    const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    base::UniqueFd passed;
    ReceiveRequest(peer, &passed);
    if (write(peer, kStarted.data(), kStarted.size()) != 28) _exit(1);
    close(listener);
    close(peer);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    _exit(0);
  }
  options_.reply_within = absl::Seconds(30);
  Start();
  Await(State::kEnabled);
  int status = -1;
  while (waitpid(child, &status, WNOHANG) == 0) {
    ASSERT_EQ(Await(State::kEnabled).reason, "");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(status, 0);
  DotnetProcess process = Await(State::kEnabled);
  for (int i = 0; i < 500 && !process.ended; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    process = Await(State::kEnabled);
  }
  EXPECT_TRUE(process.ended);
}

TEST_F(DotnetSessionsTest, AsksAnOlderRuntimeForAStreamAndPassesItOn) {
  options_.streams = std::make_shared<EventPipeInbox>(std::vector<std::string>{"Shop"});
  std::array<std::string, 3> requests;
  std::atomic<std::size_t> received = 0;  // requests that are complete
  FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    if (received == 0) {
      base::UniqueFd passed;
      requests[0] = ReceiveRequest(peer, &passed);
      received = 1;
      const std::string unknown = ErrorReply(kUnknownCommand);
      EXPECT_EQ(write(peer, unknown.data(), unknown.size()), 24);
      return WaitForEnd(peer);
    }
    const std::size_t index = received;
    ASSERT_LT(index, requests.size());
    requests[index] =
        ReplyTo(peer, index == 2 ? kStarted + "Nettrace" : ErrorReply(kUnknownCommand));
    received = index + 1;
    WaitForEnd(peer);
  });
  Start();
  const DotnetProcess process = Await(State::kEnabled);
  EXPECT_TRUE(process.by_stream);
  std::vector<EventPipeConnection> streams = options_.streams->Take();
  ASSERT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams[0].process.pid, getpid());
  EXPECT_EQ(streams[0].folder, folder_);
  EXPECT_EQ(streams[0].session, 0x0807060504030201u);
  char bytes[16] = {};
  EXPECT_EQ(read(streams[0].socket.get(), bytes, sizeof bytes), 8) << "the stream follows";
  EXPECT_EQ(std::string(bytes, 8), "Nettrace");
  // The last request is stored only after its reply was sent.
  while (received < requests.size()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(requests[0], MakeCollectRequest(options_.providers));
  EXPECT_EQ(requests[1], MakeStreamRequest(StreamRequest::kWithoutStacks, options_.providers));
  EXPECT_EQ(requests[2], MakeStreamRequest(StreamRequest::kAny, options_.providers));
  options_.streams->AddEnd({getpid(), streams[0].process.start, "its stream is bad", false, false});
  EXPECT_EQ(Await(State::kRefused).reason, "its stream is bad");
}

TEST_F(DotnetSessionsTest, AsksForAPerfMapAndEndsItAtTheEnd) {
  options_.streams = std::make_shared<EventPipeInbox>(std::vector<std::string>{"Shop"});
  options_.open_data = nullptr;
  options_.perf_maps = true;
  std::mutex mutex;
  std::vector<std::string> requests;
  FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    char bytes[4096];
    const ssize_t got = read(peer, bytes, sizeof bytes);
    const std::string request(bytes, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    const bool is_map = request == MakePerfMapRequest(true);
    const std::string reply = is_map ? kMagic + "\x18\0\xFF\0\0\0"s + "\0\0\0\0"s : kStarted;
    {
      const std::lock_guard lock(mutex);
      requests.push_back(request);
    }
    if (send(peer, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
  });
  Start();
  const auto await = [](const auto& is_true) {
    for (int i = 0; i < 500 && !is_true(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return is_true();
  };
  EXPECT_TRUE(await([&] {
    const DotnetReport report = sessions_->Report();
    return !report.processes.empty() && report.processes.front().has_perf_map;
  }));
  sessions_->Stop();
  EXPECT_TRUE(await([&] {
    const std::lock_guard lock(mutex);
    return !requests.empty() && requests.back() == MakePerfMapRequest(false);
  }));
}

TEST_F(DotnetSessionsTest, AsksForAStreamIfThereAreNoTracepoints) {
  options_.streams = std::make_shared<EventPipeInbox>(std::vector<std::string>{"Shop"});
  options_.open_data = nullptr;
  FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    EXPECT_EQ(ReplyTo(peer, kStarted),
              MakeStreamRequest(StreamRequest::kWithoutStacks, options_.providers));
    WaitForEnd(peer);
  });
  Start();
  Await(State::kEnabled);
  const std::vector<EventPipeConnection> streams = options_.streams->Take();
  ASSERT_EQ(streams.size(), 1u);
  // The recording has asked the process to end its stream.
  options_.streams->AddEnd({getpid(), streams[0].process.start, "", false, true});
  for (int i = 0; i < 500 && options_.streams->has_unrecorded(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_FALSE(options_.streams->has_unrecorded());
  EXPECT_EQ(Await(State::kEnabled).reason, "");
  EXPECT_EQ(runtime.connections, 1);
}

TEST_F(DotnetSessionsTest, ReportsARuntimeThatKnowsNoStream) {
  options_.streams = std::make_shared<EventPipeInbox>(std::vector<std::string>{"Shop"});
  options_.open_data = nullptr;
  FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    ReplyTo(peer, ErrorReply(kUnknownCommand));
    WaitForEnd(peer);
  });
  Start();
  EXPECT_EQ(Await(State::kTooOld).reason, "its runtime is older than .NET Core 3.1");
  EXPECT_EQ(runtime.connections, 2);
}

// Starts a process that sleeps, optionally as another user. Ends it with the object.
class Sleeper {
 public:
  explicit Sleeper(uid_t user) {
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (user != geteuid() && setresuid(user, user, user) != 0) _exit(1);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      pause();
      _exit(0);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Sleeper() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

TEST_F(DotnetSessionsTest, RefusesASocketOfAnotherProcess) {
  const Sleeper sleeper(geteuid());
  const FakeRuntime runtime(folder_, sleeper.pid(), Replies(kStarted));
  Start();
  const DotnetProcess process = Await(State::kRefused);
  EXPECT_EQ(process.pid, sleeper.pid());
  EXPECT_NE(process.reason.find(absl::StrCat("the process that listens at ", runtime.path(),
                                             " does not belong to process ", sleeper.pid())),
            std::string::npos)
      << process.reason;
}

TEST_F(DotnetSessionsTest, RefusesASocketOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to start a process of another user";
  const Sleeper sleeper(65534);
  const FakeRuntime runtime(folder_, sleeper.pid(), Replies(kStarted));
  Start();
  const DotnetProcess process = Await(State::kRefused);
  EXPECT_NE(process.reason.find("-socket does not belong to process"), std::string::npos)
      << process.reason;
  EXPECT_EQ(runtime.connections, 0);
}

TEST_F(DotnetSessionsTest, SurveyFindsVersionsAndProblems) {
  const auto survey = [this] { return SurveyDotnet(folder_, 10, absl::Seconds(5)); };
  const auto serve = [](std::string reply) {
    return [reply = std::move(reply)](int peer) {
      char request[20];
      if (read(peer, request, sizeof request) != sizeof request) return;
      if (send(peer, reply.data(), reply.size(), MSG_NOSIGNAL) > 0) WaitForEnd(peer);
    };
  };
  EXPECT_TRUE(survey().runtimes.empty());
  for (const auto& [reply, version, problem] :
       {std::tuple{InfoReply("10.0.12"), "10.0.12", ""},
        {InfoReply("8.0.3"), "8.0.3", "its runtime cannot write events to user_events"},
        {ErrorReply(kUnknownCommand), "", "its runtime is older than .NET 6"},
        {"garbage-garbage-garbage"s, "", "its runtime sends no valid reply"}}) {
    const FakeRuntime runtime(folder_, getpid(), serve(reply));
    const DotnetSurvey found = survey();
    ASSERT_EQ(found.runtimes.size(), 1u);
    EXPECT_TRUE(found.is_complete);
    EXPECT_EQ(found.runtimes[0].pid, getpid());
    EXPECT_EQ(found.runtimes[0].version, version);
    EXPECT_EQ(found.runtimes[0].problem, problem);
    EXPECT_EQ(found.runtimes[0].remedy.empty(), found.runtimes[0].problem.empty());
    std::filesystem::remove(runtime.path());
  }
  const Sleeper sleeper(geteuid());
  const FakeRuntime runtime(folder_, sleeper.pid(), WaitForEnd);
  ASSERT_EQ(survey().runtimes.size(), 1u);
  EXPECT_EQ(survey().runtimes[0].problem,
            absl::StrCat("the process that listens at ", runtime.path(),
                         " does not belong to process ", sleeper.pid()));
  EXPECT_FALSE(SurveyDotnet(folder_, 0, absl::Seconds(5)).is_complete);
}

TEST_F(DotnetSessionsTest, FollowsNoSymbolicLink) {
  const std::string other = folder_ + "/other";
  ASSERT_EQ(mkdir(other.c_str(), 0700), 0);
  const FakeRuntime runtime(other, getpid(), Replies(kStarted));
  const std::string link =
      folder_ + "/" + std::filesystem::path(runtime.path()).filename().string();
  ASSERT_EQ(symlink(runtime.path().c_str(), link.c_str()), 0);
  Start();
  EXPECT_NE(Await(State::kRefused).reason.find("symbolic links"), std::string::npos);
  EXPECT_EQ(runtime.connections, 0);
}

TEST_F(DotnetSessionsTest, AsksAgainAfterAFailureOfTheRuntime) {
  std::atomic<int> number = 0;
  const FakeRuntime runtime(folder_, getpid(), [&](int peer) {
    base::UniqueFd passed;
    ReceiveRequest(peer, &passed);
    const std::string reply = number++ < 2 ? ErrorReply(kFailed) : kStarted;
    if (send(peer, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
    WaitForEnd(peer);
  });
  Start();
  Await(State::kEnabled);
  EXPECT_EQ(runtime.connections, 3);
  EXPECT_EQ(sessions_->Report().enabled, 1u);
  EXPECT_EQ(sessions_->Report().not_enabled, 0u);
}

TEST_F(DotnetSessionsTest, CountsAProcessThatEndsBeforeItListens) {
  Start();
  {
    const Sleeper sleeper(geteuid());
    const auto facts = ReadProcessFacts(sleeper.pid());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    absl::StrCat(folder_, "/dotnet-diagnostic-", facts->own_pid, "-", facts->start, "-socket")
        .copy(address.sun_path, sizeof address.sun_path - 1);
    const base::UniqueFd bound(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(bound.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    // The thread of the sessions must find the socket file while the process runs.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const DotnetProcess process = Await(State::kRefused);
  EXPECT_EQ(process.reason, "it ended before the request was sent");
  EXPECT_TRUE(process.ended);
  EXPECT_EQ(sessions_->Report().not_enabled, 1u);
}

TEST_F(DotnetSessionsTest, CountsProcessesBeyondTheLimit) {
  options_.max_processes = 1;
  const Sleeper sleeper(geteuid());
  const FakeRuntime other(folder_, sleeper.pid(), Replies(kStarted));
  Start();
  Await(State::kRefused);
  const FakeRuntime runtime(folder_, getpid(), Replies(kStarted));
  for (int i = 0; i < 500 && sessions_->Report().not_asked == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const DotnetReport report = sessions_->Report();
  EXPECT_EQ(report.not_asked, 1u);
  EXPECT_EQ(report.enabled, 0u);
  EXPECT_EQ(report.processes.size(), 1u);
}

TEST_F(DotnetSessionsTest, LeavesAQuarterOfTheProcessesToOtherUsers) {
  options_.max_processes = 4;
  const std::array<Sleeper, 3> sleepers = {Sleeper(geteuid()), Sleeper(geteuid()),
                                           Sleeper(geteuid())};
  std::vector<std::unique_ptr<FakeRuntime>> others;
  others.reserve(sleepers.size());
  for (const Sleeper& sleeper : sleepers) {
    others.push_back(std::make_unique<FakeRuntime>(folder_, sleeper.pid(), Replies(kStarted)));
  }
  Start();
  for (int i = 0; i < 500 && sessions_->Report().processes.size() < sleepers.size(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const FakeRuntime runtime(folder_, getpid(), Replies(kStarted));
  for (int i = 0; i < 500 && sessions_->Report().not_asked == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const DotnetReport report = sessions_->Report();
  EXPECT_EQ(report.not_asked, 1u);
  EXPECT_EQ(report.processes.size(), sleepers.size());
}

TEST_F(DotnetSessionsTest, AsksOnlyProcessesOfTheCgroups) {
  const FakeRuntime runtime(folder_, getpid(), Replies(kStarted));
  options_.cgroups = {"no-such.slice", "/no/such"};
  Start();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(sessions_->Report().processes.empty());
  EXPECT_EQ(runtime.connections, 0);
  sessions_->Stop();
  options_.cgroups = {"no-such.slice", "/"};
  Start();
  Await(State::kEnabled);
}

TEST_F(DotnetSessionsTest, IgnoresSocketsOfProcessesThatHaveEnded) {
  std::string path;
  {
    const Sleeper sleeper(geteuid());
    const FakeRuntime runtime(folder_, sleeper.pid(), Replies(kStarted));
    path = runtime.path();
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  Start();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(sessions_->Report().processes.empty());
}

}  // namespace
}  // namespace collector
