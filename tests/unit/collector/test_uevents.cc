// Tests the reader of uevents: messages of the kernel about CPUs and modules, and messages that
// other processes send.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tools/base/unique_fd.h"
#include "tools/collector/system/uevents.h"

namespace collector {
namespace {

using namespace std::string_view_literals;

TEST(ParseUevent, CpusThatComeAndGo) {
  EXPECT_EQ(ParseUevent("online@/devices/system/cpu/cpu1\0ACTION=online\0"sv), Uevent::kCpu);
  EXPECT_EQ(ParseUevent("offline@/devices/system/cpu/cpu127\0"sv), Uevent::kCpu);
  EXPECT_EQ(ParseUevent("offline@/devices/system/cpu/cpu0"), Uevent::kCpu);
}

TEST(ParseUevent, ModulesThatAreLoaded) {
  EXPECT_EQ(ParseUevent("add@/module/ext4\0ACTION=add\0"sv), Uevent::kModule);
}

TEST(ParseUevent, IgnoresOtherMessages) {
  for (const std::string_view message :
       {""sv,
        "\0"sv,
        "@"sv,
        "online"sv,
        "online@"sv,
        "online@/devices/system/memory/memory3\0"sv,
        "online@/devices/system/cpu/cpu"sv,
        "online@/devices/system/cpu/cpux"sv,
        "online@/devices/system/cpu/cpu1/cache"sv,
        "online@/devices/system/cpu/cpu-1"sv,
        "online@/devices/system/cpu/cpu\0001"sv,
        "change@/devices/system/cpu/cpu1\0"sv,
        "add@/devices/system/cpu/cpu1\0"sv,
        "remove@/module/ext4\0"sv,
        "add@/module/\0"sv,
        "add@/module/ext4/holders\0"sv,
        "ONLINE@/devices/system/cpu/cpu1\0"sv,
        "libudev\0\xFE\xED\xCA\xFE online@/devices/system/cpu/cpu1"sv,
        "\0online@/devices/system/cpu/cpu1"sv,
        "x\0online@/devices/system/cpu/cpu1"sv}) {
    EXPECT_EQ(ParseUevent(message), Uevent::kOther) << message;
  }
}

// The parser must not read beyond the end of a message, whatever its bytes and its length are.
TEST(ParseUevent, ReadsNoFurtherThanTheMessage) {
  const std::string whole = "offline@/devices/system/cpu/cpu12";
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string copy = whole.substr(0, size);
    ParseUevent(std::string_view(copy.data(), copy.size()));
    for (std::size_t i = 0; i < size; ++i) {
      std::string other = copy;
      other[i] = '\xFF';
      ParseUevent(other);
    }
  }
  EXPECT_EQ(ParseUevent(std::string(100'000, '9')), Uevent::kOther);
  EXPECT_EQ(ParseUevent("online@/devices/system/cpu/cpu" + std::string(100'000, '9')),
            Uevent::kCpu);
}

class UeventSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<UeventSocket> opened = UeventSocket::Open();
    if (!opened.ok()) GTEST_SKIP() << opened.status().message();
    socket_.emplace(*std::move(opened));
  }
  bool IsReadable(int timeout_ms) const {
    pollfd ready = {socket_->fd(), POLLIN, 0};
    return poll(&ready, 1, timeout_ms) == 1;
  }
  std::optional<UeventSocket> socket_;
};

TEST_F(UeventSocketTest, ReceivesMessagesOfTheKernel) {
  // Makes the kernel announce again that the CPU is online.
  const base::UniqueFd announce(open("/sys/devices/system/cpu/cpu0/uevent", O_WRONLY | O_CLOEXEC));
  if (!announce.valid()) GTEST_SKIP() << "writing to cpu0/uevent: " << strerror(errno);
  socket_->Take();
  if (write(announce.get(), "online", 6) != 6)
    GTEST_SKIP() << "writing to cpu0/uevent: " << strerror(errno);
  ASSERT_TRUE(IsReadable(10'000));
  const UeventSocket::Changes changes = socket_->Take();
  EXPECT_TRUE(changes.cpus);
  EXPECT_FALSE(changes.modules);
}

TEST_F(UeventSocketTest, IgnoresOtherSenders) {
  const base::UniqueFd other(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
  ASSERT_TRUE(other.valid());
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = 1;
  socket_->Take();
  constexpr std::string_view kMessage = "add@/module/eventheader_test\0"sv;
  if (sendto(other.get(), kMessage.data(), kMessage.size(), 0,
             reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    GTEST_SKIP() << "sending a uevent: " << strerror(errno);
  }
  ASSERT_TRUE(IsReadable(10'000));  // The message has arrived.
  EXPECT_FALSE(socket_->Take().modules);
}

}  // namespace
}  // namespace collector
