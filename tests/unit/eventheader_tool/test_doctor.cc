#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "eventheader/wire.h"
#include "tools/eventheader/doctor_checks.h"
#include "tools/eventheader/doctor_facts.h"
#include "tools/eventheader/mount_table.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using control::SessionStatus;

constexpr char kTracing[] = "/sys/kernel/tracing";
constexpr char kData[] = "/sys/kernel/tracing/user_events_data";
constexpr std::uint64_t kDacOverride = std::uint64_t{1} << 1;
constexpr std::uint64_t kIpcLock = std::uint64_t{1} << 14;
constexpr std::uint64_t kPerfmon = std::uint64_t{1} << 38;

// Returns the facts of a machine without problems.
Facts Well() {
  Facts facts;
  facts.release = "6.12.3";
  facts.config_user_events = true;
  facts.mounts = {
      {"/", "/", "ext4", false}, {"/sys", "/", "sysfs", false}, {kTracing, "/", "tracefs", false}};
  facts.data = FileFacts{kData, 0, 0, 0, S_IFREG | 0640};
  facts.tracepoints = std::vector<Tracepoint>{{"A_L4K1", "perf", eh::kTracepointFields, {}}};
  facts.user_events_max = 32768;
  facts.all_tracepoints = 2000;
  facts.perf_event_paranoid = 2;
  SessionStatus session;
  session.name = "web";
  session.state = SessionStatus::State::kRunning;
  facts.daemon.sessions = std::vector<SessionStatus>{session};
  facts.daemon.unit = {{"LoadState", "loaded"}, {"ActiveState", "active"}};
  return facts;
}

// Returns a process that may write to user_events_data because it is in a certain group.
ProcessFacts Service() {
  ProcessFacts process;
  process.pid = 77;
  process.name = "web";
  process.identity = Identity{1000, {1000, 900}, 0};
  process.mounts = Well().mounts;
  process.way = {{"/", 0, 0, 0, S_IFDIR | 0755},
                 {kTracing, 0, 0, 0, S_IFDIR | 0711},
                 {kData, 0, 0, 900, S_IFREG | 0660}};
  process.has_user_events_open = false;
  process.open_files = 10;
  process.open_files_limit = 1024;
  return process;
}

std::vector<std::string> ChecksOf(const Facts& facts) {
  std::vector<std::string> checks;
  for (const Finding& finding : Diagnose(facts)) {
    EXPECT_FALSE(finding.problem.empty());
    EXPECT_FALSE(finding.remedy.empty());
    checks.push_back(finding.check);
  }
  return checks;
}

using Checks = std::vector<std::string>;

TEST(DoctorChecks, FindsNothingWithoutProblems) {
  EXPECT_EQ(ChecksOf(Well()), Checks{});
  Facts facts = Well();
  facts.subject = Service();
  facts.subject->has_user_events_open = true;
  EXPECT_EQ(ChecksOf(facts), Checks{});
}

TEST(DoctorChecks, ReportsNothingAboutUnknownFacts) {
  Facts facts;
  facts.mounts = Well().mounts;
  facts.daemon.sessions = Well().daemon.sessions;
  facts.subject = ProcessFacts();
  EXPECT_EQ(ChecksOf(facts), Checks{});
}

TEST(DoctorChecks, DotnetProcessesThatCannotWriteEvents) {
  collector::DotnetSurvey survey;
  survey.runtimes = {{12, "shop", "10.0.1", "", ""}, {13, "old", "8.0.3", "why", "what to do"}};
  const std::vector<Finding> findings = CheckDotnet(survey);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].check, "dotnet");
  EXPECT_EQ(findings[0].problem, "process 13 (old, .NET 8.0.3): why");
  EXPECT_EQ(findings[0].remedy, "what to do");
}

TEST(DoctorChecks, KernelsWithoutUserEvents) {
  Facts facts = Well();
  facts.data->error = ENOENT;
  facts.ring_socket = RingSocketFacts{"/run/nettraced/events", false, false};
  EXPECT_EQ(ChecksOf(facts), Checks{"kernel"});
  EXPECT_NE(CheckKernel(facts)[0].problem.find(kData), std::string::npos);
  facts.config_user_events = false;
  EXPECT_NE(CheckKernel(facts)[0].problem.find("CONFIG_USER_EVENTS"), std::string::npos);
  for (const char* release : {"5.15.0-91-generic", "6.3.9", "6.1.0-18-amd64"}) {
    facts.release = release;
    EXPECT_NE(CheckKernel(facts)[0].problem.find(release), std::string::npos);
  }
  // 6.10 is newer than 6.4.
  facts.release = "6.10";
  EXPECT_NE(CheckKernel(facts)[0].problem.find("CONFIG_USER_EVENTS"), std::string::npos);
}

TEST(DoctorChecks, SocketOfServicesWithoutUserEvents) {
  Facts facts = Well();
  EXPECT_EQ(WhyNoUserEvents(facts), "");
  facts.data->error = ENOENT;
  facts.ring_socket = RingSocketFacts{"/run/nettraced/events", false, false};
  EXPECT_NE(CheckKernel(facts)[0].problem.find("/run/nettraced/events does not exist"),
            std::string::npos);
  facts.ring_socket->exists = true;
  EXPECT_NE(CheckKernel(facts)[0].problem.find("/run/nettraced/events has no listener"),
            std::string::npos);
  EXPECT_NE(CheckKernel(facts)[0].remedy.find("nettrace record"), std::string::npos);
  facts.ring_socket->has_collector = true;
  EXPECT_EQ(ChecksOf(facts), Checks{});
  EXPECT_NE(WhyNoUserEvents(facts).find("the kernel has no user_events"), std::string::npos);
}

TEST(DoctorChecks, SocketThatTheServiceCannotReach) {
  Facts facts = Well();
  facts.data->error = ENOENT;
  facts.ring_socket = RingSocketFacts{"/run/nettraced/events", true, true};
  facts.subject = Service();
  facts.subject->identity->user = 1000;
  facts.subject->identity->capabilities = 0;
  std::vector<FileFacts>& way = facts.subject->way_to_socket;
  way = {{"/", 0, 0, 0, 0755},
         {"/run/nettraced", 0, 0, 0, 0755},
         {"/run/nettraced/events", 0, 0, 0, 0666}};
  EXPECT_EQ(CheckSocket(facts).size(), 0U);
  way.back().mode = 0600;
  ASSERT_EQ(CheckSocket(facts).size(), 1U);
  EXPECT_NE(CheckSocket(facts)[0].problem.find("connect to /run/nettraced/events (mode 0600"),
            std::string::npos);
  way[1].mode = 0700;
  EXPECT_NE(CheckSocket(facts)[0].problem.find("pass through /run/nettraced "), std::string::npos);
  facts.subject->identity->capabilities = ~std::uint64_t{0};
  EXPECT_EQ(CheckSocket(facts).size(), 0U);
  // A container without the folder.
  way[1].error = ENOENT;
  EXPECT_NE(CheckSocket(facts)[0].remedy.find("'-v /run/nettraced/services:/run/nettraced:ro'"),
            std::string::npos);
  facts.ring_socket->has_collector = false;
  EXPECT_EQ(CheckSocket(facts).size(), 0U);
}

TEST(DoctorChecks, ServicesThatTheDaemonHasRefused) {
  Facts facts = Well();
  EXPECT_EQ(CheckRefused(facts).size(), 0U);
  control::RefusedServices refused;
  refused.uid = 1000;
  refused.pid = 7;
  refused.count = 3;
  refused.message = "too many services of this user are connected";
  refused.remedy = "end services";
  facts.daemon.refused = {refused};
  ASSERT_EQ(CheckRefused(facts).size(), 1U);
  EXPECT_EQ(CheckRefused(facts)[0].problem,
            "nettraced has refused 3 connections of user 1000, the last one from process 7: too "
            "many services of this user are connected");
  EXPECT_EQ(CheckRefused(facts)[0].remedy, "end services");
}

TEST(DoctorFactsText, FindsListenersInTheListOfSockets) {
  constexpr char kText[] =
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "00000000abcdef01: 00000002 00000000 00010000 0005 01 12345 /run/a b/events\n"
      "00000000abcdef02: 00000003 00000000 00000000 0005 03 12346 /run/connected\n"
      "00000000abcdef03: 00000002 00000000 00010000 0001 01 12347\n";
  EXPECT_TRUE(ListsListener(kText, "/run/a b/events"));
  EXPECT_FALSE(ListsListener(kText, "/run/connected"));
  EXPECT_FALSE(ListsListener(kText, "/run/a"));
  EXPECT_FALSE(ListsListener("", "/run/a"));
}

TEST(DoctorChecks, TracefsThatIsNotMounted) {
  Facts facts = Well();
  facts.ring_socket = RingSocketFacts{"/run/nettraced/events", false, false};
  facts.data.reset();
  facts.mounts.pop_back();
  EXPECT_EQ(ChecksOf(facts), Checks{"tracefs"});
  facts.release = "6.1.0";
  EXPECT_EQ(ChecksOf(facts), (Checks{"kernel", "tracefs"}));
}

TEST(DoctorChecks, ASandboxThatRuns) {
  Facts facts = Well();
  facts.unit_name = "web.service";
  facts.unit = UnitFacts{{"ProtectKernelTunables", "yes"}};
  facts.subject = Service();
  facts.subject->mounts->back().read_only = true;
  EXPECT_EQ(ChecksOf(facts), (Checks{"sandbox", "registered"}));
  EXPECT_NE(CheckSandbox(facts)[0].remedy.find(std::string("ReadWritePaths=-") + kData),
            std::string::npos);
  EXPECT_NE(CheckSandbox(facts)[0].remedy.find("systemctl edit web.service"), std::string::npos);
  // With ReadWritePaths=, user_events_data is a separate mount, which is writable.
  facts.subject->mounts->push_back({kData, "/user_events_data", "tracefs", false});
  EXPECT_EQ(CheckSandbox(facts).size(), 0U);
  // Another mount hides user_events_data.
  facts.subject->mounts->back() = {kData, "/systemd/inaccessible/reg", "tmpfs", true};
  EXPECT_NE(CheckSandbox(facts)[0].remedy.find("InaccessiblePaths"), std::string::npos);
  facts.subject->mounts->resize(2);
  EXPECT_NE(CheckSandbox(facts)[0].remedy.find("BindPaths"), std::string::npos);
}

TEST(DoctorChecks, ASandboxThatDoesNotRunYet) {
  Facts facts = Well();
  facts.unit_name = "web.service";
  facts.unit = UnitFacts{{"ProtectKernelTunables", "yes"}};
  EXPECT_EQ(ChecksOf(facts), Checks{"sandbox"});
  for (const char* paths :
       {"/var -/sys/kernel/tracing/user_events_data", "/sys/kernel/tracing", "/"}) {
    facts.unit = UnitFacts{{"ProtectKernelTunables", "yes"}, {"ReadWritePaths", paths}};
    EXPECT_EQ(ChecksOf(facts), Checks{}) << paths;
  }
  facts.unit = UnitFacts{{"ProtectKernelTunables", "yes"}, {"ReadWritePaths", "/sys/kernel/trac"}};
  EXPECT_EQ(ChecksOf(facts), Checks{"sandbox"});
  facts.unit = UnitFacts{{"InaccessiblePaths", "-/sys/kernel"}};
  EXPECT_EQ(ChecksOf(facts), Checks{"sandbox"});
  facts.unit = UnitFacts{{"RootDirectory", "/srv/web"}};
  EXPECT_EQ(ChecksOf(facts), Checks{"sandbox"});
  facts.unit = UnitFacts{{"RootDirectory", "/srv/web"},
                         {"BindPaths", "/sys/kernel/tracing:/sys/kernel/tracing:rbind"}};
  EXPECT_EQ(ChecksOf(facts), Checks{});
}

TEST(DoctorChecks, Permissions) {
  Facts facts = Well();
  facts.subject = Service();
  facts.subject->pid = 0;
  facts.user_name = "web";
  EXPECT_EQ(ChecksOf(facts), Checks{});  // its group may write
  facts.subject->identity->groups = {1000};
  EXPECT_EQ(ChecksOf(facts), Checks{"permission"});
  EXPECT_NE(CheckPermission(facts)[0].remedy.find("usermod -aG 900 web"), std::string::npos);
  facts.subject->identity->capabilities = kDacOverride;
  EXPECT_EQ(ChecksOf(facts), Checks{});
  facts.subject->identity->capabilities = 0;
  facts.subject->way[1].mode = S_IFDIR | 0700;
  EXPECT_NE(CheckPermission(facts)[0].problem.find("pass through /sys/kernel/tracing"),
            std::string::npos);
  // Only the owner's mode bits apply to the owner.
  facts.subject->way[1].mode = S_IFDIR | 0711;
  facts.subject->identity->user = 0;
  EXPECT_EQ(ChecksOf(facts), Checks{});
  facts.subject->way[2].mode = S_IFREG | 0066;
  EXPECT_EQ(ChecksOf(facts), Checks{"permission"});
}

TEST(DoctorChecks, CapabilitiesInAUserNamespaceAreWorthNothing) {
  Facts facts = Well();
  facts.subject = Service();
  facts.subject->identity = Identity{100000, {100000}, ~std::uint64_t{0}};
  facts.subject->uid_map = "its user 0 is user 100000 of the machine";
  EXPECT_EQ(ChecksOf(facts), (Checks{"permission", "user-namespace", "registered"}));
  facts.subject->identity->groups.push_back(900);
  EXPECT_EQ(ChecksOf(facts), Checks{"registered"});
}

TEST(DoctorChecks, Limits) {
  Facts facts = Well();
  facts.subject = Service();
  facts.subject->has_user_events_open = true;
  facts.subject->open_files = 1023;
  EXPECT_EQ(ChecksOf(facts), Checks{"limits"});
  facts.subject.reset();
  facts.user_events_max = 1;
  EXPECT_EQ(ChecksOf(facts), Checks{"limits"});
  facts = Well();
  facts.all_tracepoints = 65535;
  EXPECT_EQ(ChecksOf(facts), Checks{"limits"});
  facts = Well();
  facts.daemon.process = Service();
  EXPECT_EQ(ChecksOf(facts), Checks{"limits"});
  facts.daemon.process->identity->capabilities = kPerfmon;
  EXPECT_EQ(ChecksOf(facts), Checks{});
  facts.daemon.process->open_files_limit = 11;
  EXPECT_EQ(ChecksOf(facts), Checks{"limits"});
}

TEST(DoctorChecks, RingsThatMayNotBeLocked) {
  Facts facts = Well();
  facts.daemon.process = Service();
  facts.daemon.process->identity->capabilities = kPerfmon;
  facts.daemon.process->locked_bytes_limit = 64 << 10;
  facts.perf_event_mlock_kib = 516;
  facts.cpus = 2;
  // The rings of the two CPUs need exactly what is allowed: 516 KiB for each CPU, and 64 KiB for
  // the process.
  (*facts.daemon.sessions)[0].ring_bytes = (516 << 10) + (32 << 10);
  EXPECT_EQ(ChecksOf(facts), Checks{});
  (*facts.daemon.sessions)[0].ring_bytes += 4096;
  EXPECT_EQ(ChecksOf(facts), Checks{"limits"});
  EXPECT_NE(CheckLimits(facts)[0].problem.find("1104 KiB"), std::string::npos);
  EXPECT_NE(CheckLimits(facts)[0].problem.find("limit of 1096"), std::string::npos);

  facts.daemon.process->identity->capabilities |= kIpcLock;
  EXPECT_EQ(ChecksOf(facts), Checks{});
  facts.daemon.process->identity->capabilities = kPerfmon;
  facts.perf_event_paranoid = -1;
  EXPECT_EQ(ChecksOf(facts), Checks{});
  facts.perf_event_paranoid = 2;
  facts.daemon.process->locked_bytes_limit.reset();
  EXPECT_EQ(ChecksOf(facts), Checks{});
}

TEST(DoctorChecks, NamesThatAreTaken) {
  Facts facts = Well();
  (*facts.tracepoints)->push_back({"B_L1K1", "", "u32 a", {}});
  (*facts.tracepoints)->push_back({"Plain", "", "u32 a", {}});
  EXPECT_EQ(ChecksOf(facts), Checks{"name"});
  EXPECT_NE(CheckNames(facts)[0].problem.find("'u32 a'"), std::string::npos);
  facts.tracepoints = absl::StatusOr<std::vector<Tracepoint>>(absl::PermissionDeniedError("x"));
  EXPECT_EQ(ChecksOf(facts), Checks{});
}

TEST(DoctorChecks, AUnitThatHasFailed) {
  Facts facts = Well();
  facts.subject.reset();
  facts.unit_name = "web.service";
  facts.unit = UnitFacts{{"ActiveState", "failed"}, {"Result", "signal"}};
  EXPECT_EQ(ChecksOf(facts), Checks{"registered"});
  EXPECT_NE(CheckRegistered(facts)[0].problem.find("web.service has failed (signal)"),
            std::string::npos);
}

TEST(DoctorChecks, TheDaemon) {
  Facts facts = Well();
  facts.daemon.sessions = absl::NotFoundError("nobody is there");
  facts.daemon.unit["ActiveState"] = "inactive";
  EXPECT_NE(CheckDaemon(facts)[0].remedy.find("systemctl enable --now nettraced"),
            std::string::npos);
  facts.daemon.unit["ActiveState"] = "failed";
  EXPECT_NE(CheckDaemon(facts)[0].remedy.find("journalctl"), std::string::npos);
  facts.daemon.unit["ActiveState"] = "activating";
  EXPECT_EQ(CheckDaemon(facts)[0].problem, "nettraced is not running (activating)");
  facts.daemon.unit["Result"] = "exit-code";  // systemd is about to restart it
  EXPECT_EQ(CheckDaemon(facts)[0].problem, "nettraced has failed (exit-code)");
  facts.daemon.unit["ExecMainStatus"] = "78";
  EXPECT_NE(CheckDaemon(facts)[0].remedy.find("--check-config"), std::string::npos);
  facts.daemon.unit.clear();
  EXPECT_NE(CheckDaemon(facts)[0].problem.find("no unit"), std::string::npos);
  facts.daemon.sessions = absl::PermissionDeniedError("control: permission denied");
  EXPECT_NE(CheckDaemon(facts)[0].remedy.find("root"), std::string::npos);
  EXPECT_EQ(ChecksOf(facts), Checks{"daemon"});
}

TEST(DoctorChecks, Sessions) {
  Facts facts = Well();
  facts.daemon.sessions->clear();
  EXPECT_EQ(ChecksOf(facts), Checks{"sessions"});
  for (const auto state : {SessionStatus::State::kStopped, SessionStatus::State::kSuspended,
                           SessionStatus::State::kFailed}) {
    facts = Well();
    facts.daemon.sessions->front().state = state;
    facts.daemon.sessions->front().error = "the disk is full";
    EXPECT_EQ(ChecksOf(facts), Checks{"sessions"});
    EXPECT_NE(CheckSessions(facts)[0].problem.find("the disk is full"), std::string::npos);
  }
  facts = Well();
  facts.daemon.sessions->front().unmatched = {"Nobody:4"};
  facts.daemon.sessions->front().left_out = {"user_events:x: too large"};
  EXPECT_EQ(ChecksOf(facts), (Checks{"selector", "left-out"}));
}

TEST(MountTable, FindsTheNearestAndLastMount) {
  const auto mounts = ParseMountInfo(
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "23 22 0:21 / /sys ro,nosuid - sysfs sysfs rw\n"
      "30 23 0:12 / /sys/kernel/tracing ro,nosuid master:5 propagate_from:2 - tracefs tracefs rw\n"
      "31 30 0:12 /user_events_data /sys/kernel/tracing/user_events_data rw - tracefs tracefs rw\n"
      "32 22 0:13 / /srv/a\\040b rw - tmpfs none rw\n"
      "not a line\n33 1 - x\n34 22 0:14 / /short rw -\n");
  ASSERT_EQ(mounts.size(), 5U);
  EXPECT_EQ(mounts[4].point, "/srv/a b");
  EXPECT_TRUE(MountOf(mounts, "/sys/kernel/tracing/trace")->read_only);
  EXPECT_FALSE(MountOf(mounts, kData)->read_only);
  EXPECT_EQ(MountOf(mounts, "/sys/kernel/tracingx")->type, "sysfs");
  EXPECT_EQ(TracefsMount(mounts)->point, kTracing);
  EXPECT_EQ(MountOf({}, "/"), nullptr);
  EXPECT_EQ(TracefsMount({}), nullptr);
}

TEST(MountTable, IgnoresAHiddenTracefs) {
  const std::vector<Mount> mounts = {{"/", "/", "ext4", false},
                                     {kTracing, "/", "tracefs", false},
                                     {kTracing, "/", "tmpfs", false},
                                     {"/tracing", "/", "tracefs", false},
                                     {"/t", "/events", "tracefs", false}};
  EXPECT_EQ(TracefsMount(mounts)->point, "/tracing");
}

// A root folder of another machine. The test writes the parts of /proc, /sys and /boot that it
// needs.
class DoctorFacts : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/test_doctor.XXXXXX";
    root_ = mkdtemp(name);
    sources_.root = root_;
    sources_.show_unit = [this](const std::string& unit) {
      return unit == "web.service" ? web_ : UnitFacts{{"LoadState", "not-found"}};
    };
    sources_.daemon_sessions = [] { return absl::NotFoundError("no daemon"); };
    sources_.tracepoints = [] { return std::vector<Tracepoint>(); };
    sources_.ring_socket = [] { return RingSocketFacts{"/run/nettraced/events", false, false}; };
    Write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    Write("/proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:12 / /sys/kernel/tracing rw - tracefs t "
          "rw\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // Adds process 77, in a mount namespace in which tracefs is read-only.
  void AddProcess() {
    Write("/proc/77/comm", "web\n");
    Write("/proc/77/status",
          "Name:\tweb\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n"
          "Groups:\t900 1000 \nCapEff:\t0000004000000000\n");
    Write("/proc/77/mountinfo", "30 22 0:12 / /sys/kernel/tracing ro - tracefs tracefs rw\n");
    Write("/proc/77/uid_map", "         0     100000      65536\n");
    Write("/proc/77/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            256                  524288               files     \n"
          "Max locked memory         8388608              8388608              bytes     \n"
          "Max address space         unlimited            unlimited            bytes     \n");
    Write(std::string("/proc/77/root") + kData, "");
    chmod((root_ + "/proc/77/root" + kData).c_str(), 0660);
    fs::create_directories(root_ + "/proc/77/fd");
    fs::create_symlink("/dev/null", root_ + "/proc/77/fd/0");
  }

  std::string root_;
  UnitFacts web_;
  FactSources sources_;
};

TEST_F(DoctorFacts, OfAMachineWithoutUserEvents) {
  Write("/boot/config-6.1.0-18-amd64", "CONFIG_A=y\n# CONFIG_USER_EVENTS is not set\n");
  // 2.2 MB, more than the text of any other file that is read.
  std::string available;
  for (int i = 0; i < 65534; ++i)
    available += "user_events:ALongerName_L" + std::to_string(i) + "\n";
  Write("/sys/kernel/tracing/available_events", available);
  const Facts facts = GatherFacts({}, sources_);
  EXPECT_EQ(facts.release, "6.1.0-18-amd64");
  EXPECT_EQ(facts.config_user_events, false);
  ASSERT_TRUE(facts.data);
  EXPECT_EQ(facts.data->error, ENOENT);
  EXPECT_EQ(facts.all_tracepoints, 65534U);
  EXPECT_FALSE(facts.tracepoints);
  EXPECT_EQ(ChecksOf(facts), (Checks{"kernel", "daemon"}));
}

TEST_F(DoctorFacts, OfAMachineWithoutAnything) {
  fs::remove_all(root_ + "/proc");
  const Facts facts = GatherFacts({}, sources_);
  EXPECT_EQ(facts.release, "");
  EXPECT_FALSE(facts.config_user_events || facts.data || facts.user_events_max);
  EXPECT_EQ(ChecksOf(facts), (Checks{"tracefs", "daemon"}));
}

TEST_F(DoctorFacts, OfAProcess) {
  AddProcess();
  Write(kData, "");
  Write("/proc/sys/kernel/user_events_max", "32768\n");
  Write("/proc/sys/kernel/perf_event_paranoid", "-1\n");
  Write("/proc/sys/kernel/perf_event_mlock_kb", "516\n");
  Write("/sys/devices/system/cpu/online", "0-2,5\n");
  const auto subject = ParseSubject("77", sources_);
  ASSERT_TRUE(subject.ok());
  const Facts facts = GatherFacts(*subject, sources_);
  EXPECT_EQ(facts.user_events_max, 32768U);
  EXPECT_EQ(facts.perf_event_paranoid, -1);
  EXPECT_EQ(facts.perf_event_mlock_kib, 516U);
  EXPECT_EQ(facts.cpus, 4U);
  ASSERT_TRUE(facts.subject && facts.subject->identity && facts.subject->mounts);
  EXPECT_EQ(facts.subject->name, "web");
  EXPECT_EQ(facts.subject->identity->user, 1000U);
  EXPECT_EQ(facts.subject->identity->groups, (std::vector<gid_t>{1000, 900, 1000}));
  EXPECT_EQ(facts.subject->identity->capabilities, kPerfmon);
  EXPECT_EQ(facts.subject->open_files, 1U);
  EXPECT_EQ(facts.subject->open_files_limit, 256U);
  EXPECT_EQ(facts.subject->locked_bytes_limit, 8388608U);
  EXPECT_FALSE(facts.subject->has_user_events_open);
  EXPECT_NE(facts.subject->uid_map.find("100000"), std::string::npos);
  ASSERT_EQ(facts.subject->way.size(), 5U);
  EXPECT_EQ(facts.subject->way.back().path, kData);
  EXPECT_EQ(facts.subject->way.back().mode & 0777, 0660U);
  EXPECT_EQ(CheckSandbox(facts).size(), 1U);
  fs::create_symlink(kData, root_ + "/proc/77/fd/5");
  EXPECT_TRUE(GatherFacts(*subject, sources_).subject->has_user_events_open);
}

TEST_F(DoctorFacts, OfAUnit) {
  AddProcess();
  web_ = ParseUnitProperties("LoadState=loaded\nMainPID=77\nReadWritePaths=/a=b /c\n\nX\n");
  EXPECT_EQ(web_["ReadWritePaths"], "/a=b /c");
  for (const char* name : {"web", "web.service"}) {
    const auto subject = ParseSubject(name, sources_);
    ASSERT_TRUE(subject.ok()) << name;
    const Facts facts = GatherFacts(*subject, sources_);
    EXPECT_EQ(facts.unit_name, "web.service");
    ASSERT_TRUE(facts.subject);
    EXPECT_EQ(facts.subject->pid, 77);
  }
  web_["MainPID"] = "0";
  EXPECT_FALSE(GatherFacts(*ParseSubject("web", sources_), sources_).subject);
}

TEST_F(DoctorFacts, OfAUser) {
  const auto subject = ParseSubject("nobody", sources_);
  ASSERT_TRUE(subject.ok());
  const Facts facts = GatherFacts(*subject, sources_);
  ASSERT_TRUE(facts.subject && facts.subject->identity);
  EXPECT_EQ(facts.subject->identity->user, 65534U);
  EXPECT_EQ(facts.subject->identity->capabilities, 0U);
}

TEST_F(DoctorFacts, FindsAUnitWithTheNameOfItsUser) {
  sources_.show_unit = [](const std::string&) { return UnitFacts{{"LoadState", "loaded"}}; };
  EXPECT_EQ(ParseSubject("nobody", sources_)->unit, "nobody.service");
}

TEST_F(DoctorFacts, UnknownUserIsAnError) {
  for (const char* name : {"78", "0", "-1", "no-such-user", "none.service", "99999999999"}) {
    EXPECT_FALSE(ParseSubject(name, sources_).ok()) << name;
  }
}

TEST(DoctorTexts, DamagedOnesHaveNoValue) {
  EXPECT_FALSE(ParseProcessStatus(""));
  EXPECT_FALSE(ParseProcessStatus("Uid:\t1\n"));
  EXPECT_FALSE(ParseProcessStatus("Uid:\t1\t1\t1\t1\nCapEff:\tx\n"));
  EXPECT_TRUE(HasConfigUserEvents("A=y\nCONFIG_USER_EVENTS=y\n"));
  EXPECT_FALSE(HasConfigUserEvents("A=y\nCONFIG_USER_EVENTS=yes\n"));
  EXPECT_FALSE(HasConfigUserEvents(""));
}

}  // namespace
}  // namespace tools
