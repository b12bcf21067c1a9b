// Tests the parsing of cgroup paths that systemd and container engines make, and of arbitrary ones.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tools/collector/identity/cgroup_path.h"

namespace collector {
namespace {

const std::string kId = "4f8d1c9f0a3b5e7d4f8d1c9f0a3b5e7d4f8d1c9f0a3b5e7d4f8d1c9f0a3b5e7d";
const std::string kOther(64, 'e');

CgroupNames Unit(const std::string& unit) { return {.unit = unit}; }
CgroupNames Container(const std::string& container) { return {.container = container}; }

TEST(CgroupPath, UnitIsTheFirstOtherThanASlice) {
  EXPECT_EQ(ParseCgroupPath("/system.slice/nginx.service"), Unit("nginx.service"));
  EXPECT_EQ(ParseCgroupPath("/system.slice/nginx.service/worker"), Unit("nginx.service"));
  EXPECT_EQ(ParseCgroupPath("/system.slice/system-getty.slice/getty@tty1.service"),
            Unit("getty@tty1.service"));
  EXPECT_EQ(ParseCgroupPath("/system.slice/cups.socket"), Unit("cups.socket"));
  EXPECT_EQ(ParseCgroupPath("/user.slice/user-1000.slice/session-3.scope"),
            Unit("session-3.scope"));
  EXPECT_EQ(ParseCgroupPath("/init.scope"), Unit("init.scope"));
  EXPECT_EQ(ParseCgroupPath("/system.slice/dev-disk-by\\x2dlabel-a.swap"),
            Unit("dev-disk-by\\x2dlabel-a.swap"));
  // systemd adds the prefix "_", because the name looks like a file of the controller cpu.
  EXPECT_EQ(ParseCgroupPath("/system.slice/_cpu.service"), Unit("cpu.service"));
}

TEST(CgroupPath, OtherFoldersAreNotUnits) {
  for (const char* path :
       {"", "/", "//", "/docker", "/system.slice", "/system.slice/", "/system.slice/x",
        "/system.slice/.service", "/system.slice/@.service", "/system.slice/a b.service",
        "/system.slice/\xff.service", "/other/nginx.service", "/system.slice/x.device"}) {
    EXPECT_EQ(ParseCgroupPath(path), CgroupNames()) << path;
  }
  const std::string longest(247, 'a');
  EXPECT_EQ(ParseCgroupPath(absl::StrCat("/", longest, ".service")),
            Unit(absl::StrCat(longest, ".service")));
  EXPECT_EQ(ParseCgroupPath(absl::StrCat("/a", longest, ".service")), CgroupNames());
}

TEST(CgroupPath, UnitOfAUsersManagerIsBelowThat) {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  EXPECT_EQ(ParseCgroupPath(user), Unit("user@1000.service"));
  EXPECT_EQ(ParseCgroupPath(user + "/init.scope"),
            (CgroupNames{.unit = "user@1000.service", .user_unit = "init.scope"}));
  EXPECT_EQ(ParseCgroupPath(user + "/app.slice/app-firefox@x.service/tab"),
            (CgroupNames{.unit = "user@1000.service", .user_unit = "app-firefox@x.service"}));
  EXPECT_EQ(ParseCgroupPath(user + "/user.slice/libpod-" + kId + ".scope/container"),
            (CgroupNames{.unit = "user@1000.service",
                         .user_unit = absl::StrCat("libpod-", kId, ".scope"),
                         .container = kId}));
}

TEST(CgroupPath, ContainerIsThatOfItsEngine) {
  for (const char* engine : {"docker-", "cri-containerd-", "crio-", "libpod-", "nerdctl-"}) {
    const std::string scope = absl::StrCat(engine, kId, ".scope");
    EXPECT_EQ(ParseCgroupPath("/system.slice/" + scope),
              (CgroupNames{.unit = scope, .container = kId}));
    EXPECT_EQ(ParseCgroupPath(absl::StrCat("/kubepods.slice/kubepods-burstable.slice/"
                                           "kubepods-burstable-pod8f3a_1.slice/",
                                           scope, "/init.scope")),
              (CgroupNames{.unit = scope, .container = kId}));
  }
  for (const std::string& path :
       {"/docker/" + kId, "/docker/" + kId + "/system.slice/a.service",
        "/kubepods/burstable/pod5d8f/" + kId, "/kubepods/besteffort/pod5d8f/" + kId + "/a",
        "/ecs/0f1e/" + kId, "/kubepods-burstable-pod1.slice:cri-containerd:" + kId}) {
    EXPECT_EQ(ParseCgroupPath(path), Container(kId)) << path;
  }
}

TEST(CgroupPath, ContainersOfLxcAndNspawnHaveNames) {
  EXPECT_EQ(ParseCgroupPath("/lxc/web"), Container("web"));
  EXPECT_EQ(ParseCgroupPath("/lxc.payload.web/system.slice/ssh.service"), Container("web"));
  EXPECT_EQ(ParseCgroupPath("/lxc.payload/web"), Container("web"));
  EXPECT_EQ(ParseCgroupPath("/lxc.monitor.web"), CgroupNames());
  EXPECT_EQ(ParseCgroupPath("/machine.slice/machine-deb\\x2d12.scope/payload/init.scope"),
            (CgroupNames{.unit = "machine-deb\\x2d12.scope", .container = "deb-12"}));
  EXPECT_EQ(ParseCgroupPath("/machine.slice/systemd-nspawn@deb\\x2d12.service/payload"),
            (CgroupNames{.unit = "systemd-nspawn@deb\\x2d12.service", .container = "deb-12"}));
  EXPECT_EQ(ParseCgroupPath("/machine.slice/machine-\\x2.scope").container, "\\x2");
}

TEST(CgroupPath, OtherIdsAreNotContainers) {
  for (const std::string& path :
       {"/docker/" + kId.substr(1), "/docker/a" + kId, "/docker/" + kId.substr(1) + "G",
        "/docker/" + kId.substr(1) + "A"}) {
    EXPECT_EQ(ParseCgroupPath(path), CgroupNames()) << path;
  }
  for (const std::string& unit :
       {"libpod-conmon-" + kId + ".scope", "crio-conmon-" + kId + ".scope",
        "docker-" + kId + ".mount", std::string("machine-a.scope")}) {
    EXPECT_EQ(ParseCgroupPath("/system.slice/" + unit), Unit(unit));
  }
}

// A service or a container may make cgroups with any names below its own.
TEST(CgroupPath, NamesBelowAUnitDoNotChangeIt) {
  EXPECT_EQ(ParseCgroupPath("/system.slice/evil.service/system.slice/nginx.service"),
            Unit("evil.service"));
  EXPECT_EQ(ParseCgroupPath("/docker/" + kId + "/docker/" + kOther), Container(kId));
  EXPECT_EQ(ParseCgroupPath("/system.slice/docker-" + kId + ".scope/docker-" + kOther + ".scope"),
            (CgroupNames{.unit = "docker-" + kId + ".scope", .container = kId}));
  EXPECT_EQ(ParseCgroupPath("/system.slice/evil.service/user@0.service/a.service"),
            Unit("evil.service"));
}

}  // namespace
}  // namespace collector
