// Tests that notifications reach a supervisor, and that a supervisor that does not read blocks
// nothing.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/unique_fd.h"
#include "tools/nettraced/supervisor.h"

namespace nettraced {
namespace {

class SupervisorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/supervisor-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder_ + "/notify";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  // Begins to receive at `name`, which may be an abstract name with '@'.
  void Bind(const std::string& name) {
    socket_ = base::UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    ASSERT_LT(name.size(), sizeof address.sun_path);
    std::copy(name.begin(), name.end(), std::begin(address.sun_path));
    if (name.front() == '@') address.sun_path[0] = '\0';
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
  }
  std::vector<std::string> Received() {
    std::vector<std::string> received;
    std::array<char, 1000> buffer = {};
    ssize_t size = 0;
    while ((size = recv(socket_.get(), buffer.data(), buffer.size(), 0)) >= 0) {
      received.emplace_back(buffer.data(), static_cast<std::size_t>(size));
    }
    return received;
  }

  std::string folder_;
  std::string path_;
  base::UniqueFd socket_;
};

TEST_F(SupervisorTest, SendsToAPathAndToAnAbstractName) {
  for (const std::string& name : {path_, absl::StrCat("@nettraced-test-", getpid())}) {
    Bind(name);
    Supervisor supervisor(name.c_str());
    supervisor.Notify("READY=1");
    supervisor.Notify("STOPPING=1\nSTATUS=ends");
    EXPECT_FALSE(supervisor.has_kept());
    EXPECT_EQ(Received(), (std::vector<std::string>{"READY=1", "STOPPING=1\nSTATUS=ends"})) << name;
  }
}

TEST_F(SupervisorTest, KeepsTheLastValueOfEachVariableWhileTheSupervisorDoesNotRead) {
  Bind(path_);
  Supervisor supervisor(path_.c_str());
  // The kernel limits the number of datagrams that wait: net.unix.max_dgram_qlen, 10 by default.
  int taken = 0;
  for (; !supervisor.has_kept() && taken < 100'000; ++taken) supervisor.Notify("WATCHDOG=1");
  ASSERT_TRUE(supervisor.has_kept());
  supervisor.Notify("STATUS=first");
  supervisor.Notify("READY=1");
  supervisor.Notify("RELOADING=1\nMONOTONIC_USEC=7");
  supervisor.Notify("STATUS=last");
  supervisor.Notify("READY=1");
  EXPECT_EQ(Received(),
            std::vector<std::string>(static_cast<std::size_t>(taken - 1), "WATCHDOG=1"));
  supervisor.Retry();
  EXPECT_FALSE(supervisor.has_kept());
  EXPECT_EQ(Received(), (std::vector<std::string>{"WATCHDOG=1", "RELOADING=1\nMONOTONIC_USEC=7",
                                                  "STATUS=last", "READY=1"}));
}

TEST_F(SupervisorTest, KeepsLinesUntilTheSocketExists) {
  Supervisor supervisor(path_.c_str());
  supervisor.Notify("READY=1");
  EXPECT_TRUE(supervisor.has_kept());
  Bind(path_);
  supervisor.Retry();
  EXPECT_EQ(Received(), std::vector<std::string>{"READY=1"});
}

TEST_F(SupervisorTest, DoesNothingWithoutASupervisor) {
  const std::string too_long = absl::StrCat("/", std::string(sizeof(sockaddr_un::sun_path), 'a'));
  for (const char* name : std::initializer_list<const char*>{nullptr, "", "@", "notify",
                                                             "vsock:2:9", too_long.c_str()}) {
    Supervisor supervisor(name);
    supervisor.Notify("READY=1");
    EXPECT_FALSE(supervisor.has_kept());
  }
}

}  // namespace
}  // namespace nettraced
