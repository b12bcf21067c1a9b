#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/source_root.h"
#include "tools/nettraced/config/nearest_name.h"
#include "tools/nettraced/config/read_settings.h"

namespace nettraced {
namespace {

namespace fs = std::filesystem;

// Returns the text of settings with one session, `x`, that has these lines.
std::string WithSession(const std::string& lines) {
  return absl::StrCat("[session.x]\nselect = [\"P\"]\n", lines);
}

SessionSettings ParseSession(const std::string& lines) {
  const absl::StatusOr<DaemonSettings> settings = ParseSettings(WithSession(lines), "x.toml");
  EXPECT_TRUE(settings.ok()) << lines << settings.status();
  return settings.ok() && settings->sessions.size() == 1 ? settings->sessions[0]
                                                         : SessionSettings();
}

std::vector<std::string> ErrorsOf(const std::string& text) {
  const absl::StatusOr<DaemonSettings> settings = ParseSettings(text, "x.toml");
  EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return absl::StrSplit(settings.status().message(), '\n');
}

// Text of settings that has exactly one error. The message of the error begins with the file and
// `place`, and contains `remedy`.
struct WrongSetting {
  const char* text;
  const char* place;
  const char* remedy;
};

void ExpectErrors(const std::vector<WrongSetting>& cases, bool in_session) {
  for (const WrongSetting& wrong : cases) {
    const std::string text = in_session ? WithSession(wrong.text) : wrong.text;
    const std::vector<std::string> errors = ErrorsOf(text);
    ASSERT_EQ(errors.size(), 1u) << text << "\n" << errors[0] << "\n" << errors.back();
    EXPECT_TRUE(errors[0].starts_with(absl::StrCat("x.toml:", wrong.place, ": "))) << errors[0];
    EXPECT_NE(errors[0].find(wrong.remedy), std::string::npos) << errors[0];
  }
}

TEST(Settings, DefaultsMatchTheStruct) {
  const absl::StatusOr<DaemonSettings> settings = ParseSettings("", "x.toml");
  ASSERT_TRUE(settings.ok());
  EXPECT_TRUE(settings->sessions.empty());
  EXPECT_EQ(settings->state_directory, "/var/lib/nettraced");
  SessionSettings expected;
  expected.name = "x";
  expected.select = {*collector::ParseSelector("P")};
  const SessionSettings session = ParseSession("");
  EXPECT_TRUE(session.SameAs(expected));
  EXPECT_EQ(session.origin, "x.toml:1");
}

TEST(Settings, EveryKeyOfTheDaemon) {
  const absl::StatusOr<DaemonSettings> settings = ParseSettings(
      "[daemon]\nstate_directory = \"/s\"\nruntime_directory = \"/r\"\ncontrol_group = \"c\"\n"
      "look_group = \"l\"\nremembered_names = 5\n"
      "[daemon.rings]\naccept = \"always\"\nsocket = \"/e\"\nservices = 7\nservices_of_user = 6\n"
      "bytes_of_user = \"1G\"\nbytes_of_service = \"4M\"\n",
      "x.toml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->state_directory, "/s");
  EXPECT_EQ(settings->runtime_directory, "/r");
  EXPECT_EQ(settings->control_group, "c");
  EXPECT_EQ(settings->look_group, "l");
  EXPECT_EQ(settings->remembered_names, 5u);
  EXPECT_EQ(settings->rings.accept, RingsSettings::Accept::kAlways);
  EXPECT_EQ(settings->rings.socket, "/e");
  EXPECT_EQ(settings->rings.services, 7u);
  EXPECT_EQ(settings->rings.services_of_user, 6u);
  EXPECT_EQ(settings->rings.bytes_of_user, std::uint64_t{1} << 30);
  EXPECT_EQ(settings->rings.bytes_of_service, std::uint64_t{4} << 20);
}

TEST(Settings, WrongSettingsOfRings) {
  const std::string long_path =
      absl::StrCat("[daemon.rings]\nsocket = \"/", std::string(103, 'x'), "\"");
  ExpectErrors({{"[daemon.rings]\naccept = true", "2:10", "must be a string"},
                {"[daemon.rings]\naccept = \"yes\"", "2:10", "must be \"auto\""},
                {"[daemon.rings]\nsocket = \"events\"", "2:10", "not an absolute path"},
                {long_path.c_str(), "2:10", "the path has 104 bytes; the maximum is 103"},
                {"[daemon.rings]\nservices = 0", "2:12", "from 1 to 65536"},
                {"[daemon.rings]\nbytes_of_service = \"1K\"", "2:20", "from 64K to 1G"},
                {"[daemon.rings]\nbytes_of_user = 65536\nbytes_of_service = \"1M\"", "3:20",
                 "more than bytes_of_user"},
                {"[daemon.rings]\nservises = 1", "2:1", "did you mean 'services'?"},
                {"[daemon]\nrings = 1", "2:9", "must be a table"}},
               false);
}

TEST(Settings, EveryKeyOfFiles) {
  const SessionSettings session = ParseSession(
      "start = false\ninterval = \"250ms\"\nring_size = \"4M\"\nqueue_bytes = 1048576\n"
      "compression = 3\n"
      "[session.x.target]\ncommand = \"nginx\"\nunit = \"shop.service\"\n"
      "[session.x.files]\ndirectory = \"/d\"\nname = \"{host}.{session}-{time}\"\nmode = \"0600\"\n"
      "rotate_bytes = \"1M\"\nrotate_every = \"1h30min\"\nkeep_files = 7\nkeep_bytes = \"10G\"\n"
      "keep_age = \"7d\"\nkeep_free_bytes = \"1T\"\nsync = \"interval\"\n");
  EXPECT_FALSE(session.start);
  EXPECT_EQ(session.interval, absl::Milliseconds(250));
  EXPECT_EQ(session.ring_size, std::size_t{4} << 20);
  EXPECT_EQ(session.queue_bytes, std::size_t{1} << 20);
  EXPECT_EQ(session.kind, SessionSettings::Kind::kFiles);
  EXPECT_TRUE(session.compression.enabled);
  EXPECT_EQ(session.compression.level, 3);
  EXPECT_EQ(session.target.command, "nginx");
  EXPECT_EQ(session.target.unit, "shop.service");
  const output::FilesSettings& files = session.files;
  EXPECT_EQ(files.directory, "/d");
  EXPECT_EQ(files.name, "{host}.{session}-{time}");
  EXPECT_EQ(files.mode, mode_t{0600});
  EXPECT_EQ(files.rotate_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(files.rotate_every, absl::Minutes(90));
  EXPECT_EQ(files.keep_files, 7u);
  EXPECT_EQ(files.keep_bytes, std::uint64_t{10} << 30);
  EXPECT_EQ(files.keep_age, absl::Hours(168));
  EXPECT_EQ(files.keep_free_bytes, std::uint64_t{1} << 40);
  EXPECT_EQ(files.sync, output::SyncPolicy::kInterval);
}

TEST(Settings, OffMeansNoBound) {
  const SessionSettings session = ParseSession(
      "files = { rotate_bytes = \"off\", rotate_every = \"1h\", keep_bytes = \"off\", "
      "keep_free_bytes = \"1G\", keep_age = \"off\" }");
  EXPECT_EQ(session.files.rotate_bytes, 0u);
  EXPECT_EQ(session.files.keep_bytes, 0u);
  EXPECT_EQ(session.files.keep_age, absl::InfiniteDuration());
}

TEST(Settings, EveryKeyOfAFlightRecorder) {
  const SessionSettings session = ParseSession(
      "compression = true\n"
      "[session.x.flight]\nkeep_bytes = \"8M\"\nkeep_time = \"30s\"\n"
      "triggers = [\"Shop:OrderFailed\", 'Shop:Request where status >= 500']\nafter = \"0s\"\n"
      "limit_count = 2\nlimit_time = \"10min\"\n[session.x.files]\nkeep_files = 3\n");
  EXPECT_EQ(session.kind, SessionSettings::Kind::kFlight);
  EXPECT_EQ(session.flight.keep_bytes, std::uint64_t{8} << 20);
  EXPECT_EQ(session.flight.keep_time, absl::Seconds(30));
  ASSERT_EQ(session.flight.triggers.size(), 2u);
  EXPECT_EQ(session.flight.triggers[1].text, "Shop:Request where status >= 500");
  EXPECT_EQ(session.flight.after, absl::ZeroDuration());
  EXPECT_EQ(session.flight.limit_count, 2u);
  EXPECT_EQ(session.flight.limit_time, absl::Minutes(10));
  EXPECT_EQ(session.files.keep_files, 3u);
}

TEST(Settings, Pipe) {
  const SessionSettings session = ParseSession("pipe = { path = \"/run/p\" }");
  EXPECT_EQ(session.kind, SessionSettings::Kind::kPipe);
  EXPECT_EQ(session.pipe.path, "/run/p");
}

TEST(Settings, SelectorsAreTextsAndTables) {
  const absl::StatusOr<DaemonSettings> settings = ParseSettings(
      "[session.x]\nselect = [\"A:info:0x3\", \"B_L5K1\", { provider = \"C*\", level = 3, "
      "keywords = 0x6, keywords_all = \"0x2\" }, { tracepoint = \"sched:*\", filter = \"prio < 5\" "
      "}, { provider = \"D\", filter = \"common_pid == 1\" } ]",
      "x.toml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  const std::vector<collector::Selector>& select = settings->sessions[0].select;
  ASSERT_EQ(select.size(), 5u);
  EXPECT_EQ(select[0], *collector::ParseSelector("A:info:0x3"));
  EXPECT_EQ(select[1], *collector::ParseSelector("B_L5K1"));
  EXPECT_EQ(select[2].provider, "C*");
  EXPECT_EQ(select[2].max_level, 3);
  EXPECT_EQ(select[2].keyword_mask, 6u);
  EXPECT_EQ(select[2].keyword_all, 2u);
  EXPECT_EQ(select[3].system, "sched");
  EXPECT_EQ(select[3].filter, "prio < 5");
  EXPECT_EQ(select[4].provider, "D");
  EXPECT_EQ(select[4].filter, "common_pid == 1");
}

TEST(Settings, SelectorsHaveTheirStacksOrThoseOfTheSession) {
  const absl::StatusOr<DaemonSettings> settings = ParseSettings(
      "[session.x]\nstacks = \"user\"\nselect = [\"A\", { provider = \"B\", stacks = false }, "
      "{ tracepoint = \"a:b\", stacks = \"both,max=30\" }, { provider = \"C\", stacks = true }, "
      "{ provider = \"D\", stacks = \"max=5\" }]\n[session.y]\nselect = [\"A\", "
      "{ provider = \"B\", stacks = \"kernel\" }]\n",
      "x.toml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  using Stacks = collector::StackOptions;
  const std::vector<collector::Selector>& of_x = settings->sessions[0].select;
  ASSERT_EQ(of_x.size(), 5u);
  EXPECT_EQ(of_x[0].stacks, (Stacks{true, false, 0}));
  EXPECT_EQ(of_x[1].stacks, std::nullopt);
  EXPECT_EQ(of_x[2].stacks, (Stacks{true, true, 30}));
  EXPECT_EQ(of_x[3].stacks, Stacks());
  EXPECT_EQ(of_x[4].stacks, (Stacks{false, false, 5}));
  const std::vector<collector::Selector>& of_y = settings->sessions[1].select;
  ASSERT_EQ(of_y.size(), 2u);
  EXPECT_EQ(of_y[0].stacks, std::nullopt);
  EXPECT_EQ(of_y[1].stacks, (Stacks{false, true, 0}));
}

TEST(Settings, StacksByCopiesAreRefused) {
  const std::vector<std::string> errors =
      ErrorsOf("[session.x]\nselect = [\"A\"]\nstacks = \"dwarf,max=30\"\n");
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("nettrace record only"), std::string::npos) << errors[0];
}

TEST(Settings, SamplesNeedNoSelectors) {
  for (const auto& [line, rate] : {std::pair{"cpu = true", 997u},
                                   {"cpu = 99", 99u},
                                   {"cpu = \"99Hz\"", 99u},
                                   {"cpu = \"99\"", 99u},
                                   {"off_cpu = true", 0u},
                                   {"off_cpu = true\ncpu = false", 0u}}) {
    const auto settings = ParseSettings(absl::StrCat("[session.x]\n", line), "x.toml");
    ASSERT_TRUE(settings.ok()) << settings.status();
    const SessionSettings& session = settings->sessions[0];
    EXPECT_EQ(session.cpu_rate, rate) << line;
    EXPECT_EQ(session.off_cpu, rate == 0) << line;
    EXPECT_TRUE(session.select.empty());
    EXPECT_TRUE(session.has_samples());
  }
  const SessionSettings session = ParseSession("cpu = 5\noff_cpu = true");
  EXPECT_EQ(session.select.size(), 1u);
  EXPECT_EQ(session.cpu_rate, 5u);
  EXPECT_TRUE(session.off_cpu);
}

TEST(Settings, ProvidersOfDotnetNeedNoSelectors) {
  const auto settings =
      ParseSettings("[session.x]\ndotnet = [\"MyCompany-Shop:info:0x3\", \"Other\"]\n", "x.toml");
  ASSERT_TRUE(settings.ok()) << settings.status();
  const SessionSettings& session = settings->sessions[0];
  EXPECT_EQ(session.dotnet, (std::vector<std::string>{"MyCompany-Shop:info:0x3", "Other"}));
  EXPECT_TRUE(session.select.empty());
  EXPECT_FALSE(session.SameAs(ParseSession("")));
}

TEST(Settings, WrongProvidersOfDotnet) {
  ExpectErrors({{"[session.x]\ndotnet = [\"A\", \"B:loud\"]", "2:16", "dotnet: "},
                {"[session.x]\ndotnet = [\"A\", \"B:4:x\"]", "2:16", "neither a number nor *"},
                {"[session.x]\ndotnet = [\"\"]", "2:11", "not a provider; use e.g. dotnet = ["},
                {"[session.x]\ndotnet = [1]", "2:11", "not a provider; use e.g. dotnet = ["},
                {"[session.x]\ndotnet = [\"A\", \"a\"]", "2:10", "named twice"},
                {"[session.x]\ndotnet = \"A\"", "2:10", "dotnet = ["},
                {"[session.x]\ndotnet = []", "2:10", ""}},
               false);
}

TEST(Settings, WrongSamplesAndStacks) {
  ExpectErrors(
      {{"[session.x]\ncpu = false", "1:1", "cpu = true"},
       {"[session.x]\ncpu = 0", "2:7", "for example 997Hz"},
       {"[session.x]\ncpu = -1", "2:7", "invalid rate \"-1\""},
       {"[session.x]\ncpu = 100001", "2:7", "1Hz to 100000Hz"},
       {"[session.x]\ncpu = \"fast\"", "2:7", "for example 997Hz"},
       {"[session.x]\ncpu = 99.5", "2:7", "must be true, false or a rate"},
       {"[session.x]\noff_cpu = 1", "2:11", "must be true or false"},
       {"[session.x]\ncpu = true\nstacks = \"user\"", "3:10", "samples always have stacks"},
       {"[session.x]\ncpu = true\ntarget = { command = \"nginx\" }", "3:10", "use pids, cgroup"},
       {"[session.x]\nselect = [\"P\"]\nstacks = 1", "3:10", "\"both,max=30\""},
       {"[session.x]\nselect = [\"P\"]\nstacks = \"all\"", "3:10", "examples: user, kernel"},
       {"[session.x]\nselect = [{ provider = \"P\", stacks = \"user,max=0\" }]", "2:38",
        "max= takes 1 to 8190"},
       {"[session.x]\nselect = [{ provider = \"P\", stack = \"user\" }]", "2:29",
        "did you mean 'stacks'?"}},
      false);
}

TEST(Settings, WrongKeysOfASessionNameTheNearest) {
  ExpectErrors({{"ring_sice = \"1M\"", "3:1",
                 "[session.x] unknown key 'ring_sice'; did you mean 'ring_size'?"},
                {"[session.x.files]\nrotate_size = \"1M\"", "4:1", "did you mean 'rotate_bytes'?"},
                {"[session.x.target]\npid = [1]\npids = [1]", "4:1", "did you mean 'pids'?"},
                {"[session.x.flight]\ntrigger = 1", "4:1", "did you mean 'triggers'?"},
                {"[session.x.pipe]\npath=\"/p\"\nqqq = 1", "5:1", "valid keys: path"}},
               true);
}

TEST(Settings, WrongValuesOfASession) {
  ExpectErrors(
      {{"start = 1", "3:9", "true or false"},
       {"ring_size = \"1X\"", "3:13", "\"64M\""},
       {"ring_size = -1", "3:13", "must be a size"},
       {"ring_size = \"3M\"", "3:13", "use 2M or 4M"},
       {"queue_bytes = \"1K\"", "3:15", "from 128K to 16G"},
       {"interval = \"2h\"", "3:12", "30s"},
       {"interval = 5", "3:12", "30s"},
       {"compression = 20", "3:15", "from 1 to 19"},
       {"compression = \"lz4\"", "3:15", "zstd"},
       {"target = 1", "3:10", "must be a table"},
       {"target = {}", "3:10", "pids, cgroup, unit or command"},
       {"target = { pids = [] }", "3:19", "pids = [1234]"},
       {"target = { pids = [0] }", "3:20", "not a process id"},
       {"target = { command = \"sixteen-letters-\" }", "3:22", "1 to 15 bytes"},
       {"target = { unit = \"shop\" }", "3:19", "shop.service"},
       {"target = { unit = \"\" }", "3:19", "shop.service"},
       {"target = { unit = \"a.service\", cgroup = \"/b\" }", "3:10", "more than one of pids"},
       {"files = { name = \"{session}\" }", "3:18",
        "without {time} all files would have the same name"},
       {"files = { name = \"{time}-{hots}\" }", "3:18",
        "only {host}, {session} and {time} are allowed in braces"},
       {"files = { name = \"{time}-{hos\" }", "3:18", "are allowed in braces"},
       {"files = { name = \"{time} {host}\" }", "3:18", "no spaces"},
       {"files = { name = \".{time}\" }", "3:18", "begins with '.'"},
       {"files = { name = \"a/{time}\" }", "3:18", "'/'"},
       {"files = { mode = \"0222\" }", "3:18", "\"0640\""},
       {"files = { mode = 640 }", "3:18", "\"0640\""},
       {"files = { mode = \"0666\" }", "3:18", "allow only the owner and group to write"},
       {"files = { mode = \"0642\" }", "3:18", "allow only the owner and group to write"},
       {"files = { directory = \"d\" }", "3:23", "is not an absolute path"},
       {"files = { sync = \"always\" }", "3:18", "\"rotation\""},
       {"files = { keep_files = -1 }", "3:24", "from 0 to 1000000"},
       {"files = { rotate_every = \"0s\" }", "3:26", "from 1s"},
       {"files = { keep_bytes = \"1M\", rotate_bytes = \"64M\" }", "3:24", "rotate_bytes (64M)"},
       {"files = { keep_bytes = 0 }", "3:24", "no other key limits"},
       {"flight = { keep_bytes = \"2G\" }\nfiles = { keep_bytes = \"1G\" }", "4:24",
        "flight.keep_bytes"},
       {"flight = { keep_bytes = \"off\" }", "3:25", "from 1M to 1T"},
       {"flight = { limit_count = 0 }", "3:26", "from 1 to 10000"},
       {"flight = { triggers = [\"Shop\"] }", "3:24", "column 5"},
       {"flight = { triggers = [1] }", "3:24", "\"Shop:OrderFailed\""},
       {"flight = {}\nfiles = { rotate_every = \"1h\" }", "4:26", "remove it"},
       {"pipe = {}", "3:8", "path"},
       {"pipe = { path = \"/p\" }\nfiles = {}", "3:8", "another session"}},
      true);
}

// A flight recorder keeps at least 1 MiB in memory, so only the limit of the files can change.
TEST(Settings, AdvisesNoSizeBelowItsMinimum) {
  const std::vector<std::string> errors =
      ErrorsOf(WithSession("flight = {}\nfiles = { keep_bytes = \"512K\" }"));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0],
            "x.toml:4:24: [session.x.files] keep_bytes: 512K is less than flight.keep_bytes (1M), "
            "the size of one file; raise keep_bytes");
}

TEST(Settings, WrongSelectors) {
  ExpectErrors(
      {{"[session.x]", "1:1", "select = ["},
       {"[session.x]\nselect = \"P\"", "2:10", "must be an array"},
       {"[session.x]\nselect = []", "2:10", "must be an array"},
       {"[session.x]\nselect = [1]", "2:11", "must be a string or a table"},
       {"[session.x]\nselect = [\"P\",\n\"P Q\"]", "3:1", "use Provider"},
       {"[session.x]\nselect = [{}]", "2:11", "either provider or tracepoint"},
       {"[session.x]\nselect = [{provider = \"P:1\"}]", "2:23", "a colon is not allowed"},
       {"[session.x]\nselect = [{provider = \"P\", level = 0}]", "2:36", "1..255"},
       {"[session.x]\nselect = [{provider = \"P\", keywords = -1}]", "2:39", "64-bit"},
       {"[session.x]\nselect = [{tracepoint = \"P\"}]", "2:11", "system:event"},
       {"[session.x]\nselect = [{tracepoint = \"a:b\", level = 1}]", "2:40", "use filter"},
       {"[session.x]\nselect = [{tracepoint = \"a:b\", filter = \" \"}]", "2:41", "remove it"},
       {"[session.x]\nselect = [{provider = \"P\", levle = 1}]", "2:28", "did you mean 'level'?"}},
      false);
}

TEST(Settings, WrongTables) {
  ExpectErrors({{"look_group = \"x\"", "1:1", "use [daemon] or [session.NAME]"},
                {"session = 1", "1:1", "[session.NAME]"},
                {"[session]\nx = 1", "2:1", "[session.NAME]"},
                {"[[session]]\nname = \"x\"", "1:3", "[session.NAME]"},
                {"[session.\"../x\"]\nselect = [\"P\"]", "1:10", "'../x'"},
                {"[daemon]\nlook_group = \"a:b\"", "2:14", "not a group name"},
                {"[daemon]\nstate_directory = \"x\"", "2:19", "not an absolute path"},
                {"[daemon]\nremembered_names = \"5\"", "2:20", "from 0 to 65536"},
                {"[daemon]\ncontrol_gruop = \"x\"", "2:1", "did you mean 'control_group'?"}},
               false);
}

TEST(Settings, SyntaxErrorsHaveTheirPlace) {
  for (const auto& [text, place] :
       {std::pair{"[session.x\n", "1:11"}, {"a = 1\na = 2", "2:5"}, {"a = \"\xff\"", "1:"}}) {
    const std::vector<std::string> errors = ErrorsOf(text);
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_TRUE(errors[0].starts_with(absl::StrCat("x.toml:", place))) << errors[0];
  }
}

TEST(Settings, ReportsAllErrorsInTheOrderOfTheirPlaces) {
  const std::vector<std::string> errors = ErrorsOf(
      "[session.b]\nselect = [\"P Q\", \"R S\"]\nring_size = \"3M\"\nx = 1\n[daemon]\ny = 2\n");
  ASSERT_EQ(errors.size(), 5u);
  const char* const kPlaces[] = {"2:11", "2:18", "3:13", "4:1", "6:1"};
  for (std::size_t i = 0; i < errors.size(); ++i) {
    EXPECT_TRUE(errors[i].starts_with(absl::StrCat("x.toml:", kPlaces[i], ": "))) << errors[i];
  }
}

TEST(Settings, ErrorsAreBounded) {
  std::string text = "[daemon]\n";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&text, "k", i, " = 1\n");
  const std::vector<std::string> errors = ErrorsOf(text);
  EXPECT_EQ(errors.size(), 51u);
  EXPECT_EQ(errors.back(), "and 2950 more");
}

TEST(Settings, HostileTextsAreRefusedInLittleTime) {
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += ".a";
  EXPECT_NE(ErrorsOf(deep + " = 1")[0].find("dots"), std::string::npos);
  EXPECT_EQ(ErrorsOf("a = " + std::string(100000, '[')).size(), 1u);
  EXPECT_NE(ErrorsOf(std::string(300000, '\n'))[0].find("256K"), std::string::npos);
  std::string many;
  for (int i = 0; i < 257; ++i) absl::StrAppend(&many, "[session.s", i, "]\nselect=[\"P\"]\n");
  EXPECT_NE(ErrorsOf(many)[0].find("the maximum is 256"), std::string::npos);
}

TEST(Settings, SessionsThatGetInEachOthersWay) {
  const auto both = [](const char* a, const char* b) {
    return absl::StrCat("[session.a]\nselect=[\"P\"]\n", a, "\n[session.b]\nselect=[\"P\"]\n", b);
  };
  ExpectErrors({{both("pipe = { path = \"/p\" }", "pipe = { path = \"/p\" }").c_str(), "4:10",
                 "has the same pipe as session 'a' in x.toml:1"}},
               false);
  ExpectErrors({{both("files = { directory = \"/d\", name = \"b-{time}\" }",
                      "files = { directory = \"/d\" }")
                     .c_str(),
                 "4:10", "{session}"}},
               false);
  EXPECT_TRUE(
      ParseSettings(both("files = { directory = \"/d\" }", "files = { directory = \"/d\" }"),
                    "x.toml")
          .ok());
}

TEST(Settings, DefaultsFollowTheOtherKeys) {
  const std::uint64_t mega = std::uint64_t{1} << 20;
  EXPECT_EQ(ParseSession("files = { keep_bytes = \"10M\" }").files.rotate_bytes, 10 * mega);
  EXPECT_EQ(ParseSession("files = { keep_bytes = \"off\" , keep_files = 2 }").files.rotate_bytes,
            64 * mega);
  EXPECT_EQ(ParseSession("files = { rotate_bytes = \"2G\" }").files.keep_bytes, 8192 * mega);
  EXPECT_EQ(ParseSession("files = { rotate_bytes = \"off\" }").files.keep_bytes, 1024 * mega);
  EXPECT_EQ(ParseSession("flight = { keep_bytes = \"2G\" }").files.keep_bytes, 8192 * mega);
  EXPECT_EQ(ParseSession("flight = {}\nfiles = { keep_bytes = \"10M\" }").flight.keep_bytes,
            10 * mega);
}

TEST(Settings, RejectsSessionsWithTheSameFiles) {
  char folder[] = "/tmp/settings-XXXXXX";
  const std::string state = mkdtemp(folder);
  fs::create_directory(state + "/b");
  fs::create_directory_symlink(state + "/b", state + "/link");
  const auto status = [&state](const std::string& files_of_a, const std::string& files_of_b) {
    const std::string text = absl::StrCat(
        "[daemon]\nstate_directory = \"", state, "\"\n[session.a]\nselect=[\"P\"]\n", "files = { ",
        files_of_a, " }\n[session.b]\nselect=[\"P\"]\nfiles = { ", files_of_b, " }\n");
    return ParseSettings(text, "x.toml").status();
  };
  const std::string name = ", name = \"b-{time}\"";
  for (const char* path : {"/b", "/b/", "/./b", "/c/../b", "/link", "/link/../b"}) {
    const absl::Status shared = status(absl::StrCat("directory = \"", state, path, "\"", name), "");
    EXPECT_EQ(shared.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_NE(
        shared.message().find("x.toml:6:10: session 'b' writes files with the same names into the "
                              "same directory as session 'a' in x.toml:3; each would delete the "
                              "other's files"),
        absl::string_view::npos)
        << shared;
  }
  // Directories that do not exist yet are compared, too.
  const std::string absent = absl::StrCat("directory = \"", state, "/new/one\"");
  EXPECT_FALSE(
      status(absent + name, absl::StrCat("directory = \"", state, "/link/../new/./one\"")).ok());
  EXPECT_FALSE(status(absent + ", name = \"x{time}\"", absent + ", name = \"x{time}\"").ok());
  // The sessions have no file name in common, or their directories differ.
  EXPECT_TRUE(status(absent + ", name = \"x-{time}\"", absent + ", name = \"y-{time}\"").ok());
  EXPECT_TRUE(status(absent, absent).ok());
  EXPECT_TRUE(status("name = \"b-{time}\"", "").ok());
  fs::remove_all(state);
}

TEST(Settings, SessionsContinueIfTheirSettingsAreUnchanged) {
  const SessionSettings session = ParseSession("");
  EXPECT_TRUE(ParseSession("start = false\n").SameAs(session));
  for (const char* lines :
       {"ring_size = \"2M\"", "queue_bytes = \"1M\"", "interval = \"2s\"", "compression = true",
        "target = { pids = [1] }", "files = { keep_files = 1 }", "flight = {}",
        "pipe = { path = \"/p\" }", "dotnet = [\"A\"]"}) {
    EXPECT_FALSE(ParseSession(lines).SameAs(session)) << lines;
  }
  SessionSettings other = session;
  other.select[0].keyword_all = 1;
  EXPECT_FALSE(other.SameAs(session));
}

TEST(Settings, SessionsAtRunTimeSayNothingOfTheDaemon) {
  const auto sessions = ParseSessions(WithSession(""), "request");
  ASSERT_TRUE(sessions.ok());
  EXPECT_EQ(sessions->at(0).name, "x");
  EXPECT_NE(ParseSessions("[daemon]\n" + WithSession(""), "request").status().message().find("1:2"),
            absl::string_view::npos);
  EXPECT_NE(ParseSessions("", "request").status().message().find("[session.NAME]"),
            absl::string_view::npos);
}

// Two directories of settings.
class SettingsFiles : public ::testing::Test {
 protected:
  SettingsFiles() {
    char folder[] = "/tmp/settings-XXXXXX";
    folder_ = mkdtemp(folder);
    for (const char* name : {"etc", "lib"}) fs::create_directory(folder_ + "/" + name);
  }
  ~SettingsFiles() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
  }
  absl::StatusOr<DaemonSettings> Read() const { return ReadSettings({Path("etc"), Path("lib")}); }
  std::vector<std::string> Names() const {
    const absl::StatusOr<DaemonSettings> settings = Read();
    EXPECT_TRUE(settings.ok()) << settings.status();
    std::vector<std::string> names;
    if (!settings.ok()) return names;
    for (const SessionSettings& session : settings->sessions) names.push_back(session.name);
    return names;
  }
  static std::string Session(const std::string& name) {
    return absl::StrCat("[session.", name, "]\nselect = [\"P\"]\n");
  }

 private:
  std::string folder_;
};

TEST_F(SettingsFiles, FileHidesTheOneWithItsNameInTheOtherDirectory) {
  Write("lib/a.toml", Session("packaged"));
  Write("lib/b.toml", Session("other"));
  Write("etc/a.toml", Session("own"));
  EXPECT_EQ(Names(), (std::vector<std::string>{"other", "own"}));
}

TEST_F(SettingsFiles, AnEmptyFileAndALinkToNullMask) {
  Write("lib/a.toml", "not toml");
  Write("lib/b.toml", "not toml");
  Write("lib/c.toml", Session("c"));
  Write("etc/a.toml", "");
  fs::create_symlink("/dev/null", Path("etc/b.toml"));
  EXPECT_EQ(Names(), std::vector<std::string>{"c"});
}

TEST_F(SettingsFiles, OtherFilesAreNotRead) {
  for (const char* name : {"etc/a.toml~", "etc/.a.toml", "etc/a.conf"}) Write(name, "not toml");
  EXPECT_TRUE(Names().empty());
}

TEST_F(SettingsFiles, DaemonSettingsAreFromTheLastFileThatHasThem) {
  Write("etc/10.toml", "[daemon]\nlook_group = \"a\"\ncontrol_group = \"a\"\n");
  Write("lib/20.toml", "[daemon]\nlook_group = \"b\"\n");
  const absl::StatusOr<DaemonSettings> settings = Read();
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->look_group, "b");
  EXPECT_EQ(settings->control_group, "a");
}

TEST_F(SettingsFiles, ASessionIsInOneFile) {
  Write("etc/a.toml", Session("s"));
  Write("lib/b.toml", "\n" + Session("s"));
  const absl::StatusOr<DaemonSettings> settings = Read();
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->sessions.size(), 1u);
  EXPECT_EQ(
      settings->errors.message(),
      absl::StrCat(Path("lib/b.toml"), ":2:10: session 's' has the same name as session 's' in ",
                   Path("etc/a.toml"), ":1; rename one of them"));
}

TEST_F(SettingsFiles, ReportsErrorsOfAllFiles) {
  Write("etc/a.toml", "x = 1");
  Write("etc/b.toml", "y = 1");
  mkfifo(Path("etc/c.toml").c_str(), 0600);
  const absl::StatusOr<DaemonSettings> settings = Read();
  ASSERT_TRUE(settings.ok()) << settings.status();
  const std::string message(settings->errors.message());
  EXPECT_EQ(settings->wrong_files, (std::vector<std::string>{"a.toml", "b.toml", "c.toml"}));
  for (const char* name : {"a.toml:1:1: ", "b.toml:1:1: ", "c.toml: not a regular file"}) {
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TEST_F(SettingsFiles, WrongFileAffectsOnlyItsSessions) {
  Write("etc/10.toml", "[daemon]\nlook_group = \"a\"\n" + Session("first"));
  Write("etc/20.toml", "[daemon]\nlook_group = \"b\"\n" + Session("second") + "selct = 1\n");
  // The session in 20.toml is left out because of the wrong key, so its name is free for this file.
  Write("etc/30.toml", Session("second"));
  EXPECT_EQ(Names(), (std::vector<std::string>{"first", "second"}));
  const absl::StatusOr<DaemonSettings> settings = Read();
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->look_group, "a");
  EXPECT_EQ(settings->sessions[1].file, "30.toml");
  EXPECT_EQ(settings->wrong_files, std::vector<std::string>{"20.toml"});
  EXPECT_EQ(settings->errors.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(settings->errors.message().find("20.toml:5:1: "), absl::string_view::npos)
      << settings->errors;
}

TEST_F(SettingsFiles, DirectoriesThatAreNotThereHaveNoFiles) {
  EXPECT_TRUE(ReadSettings({Path("nowhere")}).ok());
}

TEST_F(SettingsFiles, APathMayBeOneFile) {
  Write("one.conf", Session("one"));
  Write("etc/other.toml", Session("other"));
  const absl::StatusOr<DaemonSettings> settings = ReadSettings({Path("one.conf"), Path("etc")});
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->sessions.size(), 2u);
  EXPECT_EQ(settings->sessions[0].name, "one");
  EXPECT_FALSE(ReadSettings({Path("missing.toml")}).ok());
}

TEST(SettingsExample, IsRead) {
  const absl::StatusOr<DaemonSettings> settings =
      ReadSettings({tests::SourcePath("tools/nettraced/settings")});
  ASSERT_TRUE(settings.ok()) << settings.status();
  ASSERT_EQ(settings->sessions.size(), 2u);
  EXPECT_EQ(settings->sessions[0].name, "shop");
  EXPECT_EQ(settings->sessions[0].kind, SessionSettings::Kind::kFlight);
  EXPECT_FALSE(settings->sessions[0].start);
  EXPECT_EQ(settings->sessions[1].name, "warnings");
  EXPECT_TRUE(settings->sessions[1].start);
}

// The manual page must have each key that the parser knows.
TEST(SettingsManual, HasEveryKey) {
  std::ifstream file(tests::SourcePath("docs/man/nettraced.toml.5"));
  std::set<std::string> words;
  for (std::string word; file >> word;) words.insert(word);
  std::size_t keys = 0;
  for (const char* text : {"[daemon]\nqqqqqq = 1", "[daemon.rings]\nqqqqqq = 1",
                           "[session.x]\nselect = [\"P\"]\nqqqqqq = 1",
                           "[session.x]\nselect = [\"P\"]\ntarget = { pids = [1], qqqqqq = 1 }",
                           "[session.x]\nselect = [\"P\"]\nfiles = { qqqqqq = 1 }",
                           "[session.x]\nselect = [\"P\"]\npipe = { path = \"/p\", qqqqqq = 1 }",
                           "[session.x]\nselect = [\"P\"]\nflight = { qqqqqq = 1 }",
                           "[session.x]\nselect = [{ provider = \"P\", qqqqqq = 1 }]"}) {
    const std::string error = ErrorsOf(text)[0];
    const std::size_t list = error.find("valid keys: ");
    ASSERT_NE(list, std::string::npos) << error;
    const std::string known = error.substr(list + 12);
    for (const absl::string_view key : absl::StrSplit(known, ", ")) {
      const std::string name(key);
      EXPECT_TRUE(words.contains(name) || words.contains("." + name + "]")) << name;
      ++keys;
    }
  }
  EXPECT_GT(keys, 40u);
}

TEST(Nearest, DiffersInFewLetters) {
  const std::vector<std::string> names = {"rotate_bytes", "rotate_every", "mode"};
  EXPECT_EQ(Nearest("rotate_byte", names), "rotate_bytes");
  EXPECT_EQ(Nearest("mdoe", names), "mode");
  EXPECT_EQ(Nearest("rotate_size", names), "rotate_bytes");
  EXPECT_EQ(Nearest("mod", names), "mode");
  EXPECT_EQ(Nearest("something", names), "");
  EXPECT_EQ(Nearest(std::string(100000, 'x'), names), "");
}

}  // namespace
}  // namespace nettraced
