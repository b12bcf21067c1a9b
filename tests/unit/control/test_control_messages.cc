// Tests the messages of the control socket without a socket: calls of the service, and replies.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/collector/fake_service.h"
#include "tools/control/dispatcher.h"
#include "tools/control/messages.h"

namespace control {
namespace {

class FakeCaller : public Caller {
 public:
  explicit FakeCaller(Access access = Access::kChange) : access_(access) {}
  Access access() const override { return access_; }
  bool Pause(absl::Duration) override { return pauses-- > 0; }
  absl::StatusOr<base::UniqueFd> DuplicateSocket() override {
    return absl::InternalError("there is none");
  }
  int pauses = 0;  // calls of Pause that still return true

 private:
  const Access access_;
};

class ControlMessages : public testing::Test {
 protected:
  // Returns the reply to a message, without its NUL.
  std::string Ask(const std::string& message) {
    last_ = Dispatcher(&service_, "1.2").Handle(message, &caller_);
    if (last_.message.empty()) return "";
    EXPECT_EQ(last_.message.back(), '\0');
    return last_.message.substr(0, last_.message.size() - 1);
  }
  std::string Call(const std::string& method, const std::string& parameters = "{}") {
    return Ask(absl::StrCat(R"({"method":"net.nettrace.Collector.)", method, R"(","parameters":)",
                            parameters, "}"));
  }

  FakeService service_;
  FakeCaller caller_;
  Reply last_;
};

std::string WrongParameter(const std::string& parameter) {
  return absl::StrCat(
      R"({"error":"org.varlink.service.InvalidParameter","parameters":{"parameter":")", parameter,
      R"("}})");
}

TEST_F(ControlMessages, ReplyWithTheResultOfTheService) {
  EXPECT_EQ(Call("Rotate", R"({"session":"web"})"), R"({"parameters":{"path":"/files/web-1"}})");
  EXPECT_EQ(Call("Snapshot", R"({"session":"box","after":1500})"),
            R"({"parameters":{"path":"/files/box-after-1.5s"}})");
  EXPECT_EQ(Call("Snapshot", R"({"session":"box","after":null})"),
            R"({"parameters":{"path":"/files/box-after-0"}})");
  EXPECT_EQ(Call("StartFrom", R"({"settings":"[session.new]\n"})"),
            R"({"parameters":{"sessions":["new"]}})");
  EXPECT_EQ(Call("Stop", R"({"session":"web"})"), R"({"parameters":{}})");
  EXPECT_EQ(service_.Status("web")->state, SessionStatus::State::kStopped);
  EXPECT_EQ(Call("Start", R"({"session":"web"})"), R"({"parameters":{}})");
  EXPECT_EQ(service_.Status("web")->state, SessionStatus::State::kRunning);
  EXPECT_EQ(Ask(R"({"method":"net.nettrace.Collector.Reload"})"), R"({"parameters":{}})");
  EXPECT_EQ(service_.reloads, 1);
}

TEST_F(ControlMessages, ReportChangesForTheJournal) {
  Call("Stop", R"({"session":"we\u001bb"})");
  EXPECT_EQ(last_.change, "Stop we\\u001bb");
  EXPECT_EQ(last_.status.code(), absl::StatusCode::kNotFound);
  Call("Reload");
  EXPECT_EQ(last_.change, "Reload");
  Call("List");
  EXPECT_EQ(last_.change, "");
}

TEST_F(ControlMessages, NameErrorsByTheirCodes) {
  EXPECT_EQ(Call("Stop", R"({"session":"x"})"),
            R"({"error":"net.nettrace.Collector.NotFound","parameters":)"
            R"({"message":"there is no session 'x'"}})");
  EXPECT_EQ(Call("Rotate", R"({"session":"box"})"),
            R"({"error":"net.nettrace.Collector.FailedPrecondition","parameters":)"
            R"({"message":"session box writes no files that follow one another"}})");
  for (int i = 1; i <= 16; ++i) {
    const auto code = static_cast<absl::StatusCode>(i);
    const absl::StatusCode back = CodeOfErrorName(ErrorNameOf(code));
    EXPECT_TRUE(back == code || back == absl::StatusCode::kUnknown) << i;
  }
  EXPECT_EQ(CodeOfErrorName(ErrorNameOf(absl::StatusCode::kNotFound)), absl::StatusCode::kNotFound);
}

TEST_F(ControlMessages, NeitherLackParametersNorHaveOthers) {
  EXPECT_EQ(Call("Stop"), WrongParameter("session"));
  EXPECT_EQ(Call("Stop", R"({"session":1})"), WrongParameter("session"));
  EXPECT_EQ(Call("Stop", R"({"session":null})"), WrongParameter("session"));
  EXPECT_EQ(Call("Stop", R"({"session":"web","force":true})"), WrongParameter("force"));
  EXPECT_EQ(Call("Stop", R"([])"), WrongParameter("parameters"));
  EXPECT_EQ(Call("Snapshot", R"({"session":"box","after":-1})"), WrongParameter("after"));
  EXPECT_EQ(Call("Snapshot", R"({"session":"box","after":1e300})"), WrongParameter("after"));
  EXPECT_EQ(Call("Snapshot", R"({"session":"box","after":99999999999999})"),
            WrongParameter("after"));
  EXPECT_EQ(service_.Status("web")->state, SessionStatus::State::kRunning);
  EXPECT_EQ(service_.Status("box")->snapshots, 0U);
}

TEST_F(ControlMessages, RejectAnEmptyParameterName) {
  for (const char* method : {"List", "Status", "Metrics", "Services", "Wait", "Start", "StartFrom",
                             "Stop", "Rotate", "Snapshot"}) {
    EXPECT_EQ(Call(method, R"({"":1})"), WrongParameter("")) << method;
  }
  EXPECT_EQ(Call("Stop", R"({"session":"web","":null})"), WrongParameter(""));
  EXPECT_EQ(Ask(R"({"method":"org.varlink.service.GetInterfaceDescription","parameters":{"":1}})"),
            WrongParameter(""));
  EXPECT_EQ(service_.Status("web")->state, SessionStatus::State::kRunning);
}

TEST_F(ControlMessages, NameUnknownMethodsAndInterfaces) {
  EXPECT_EQ(Call("Fly"), R"({"error":"org.varlink.service.MethodNotFound","parameters":)"
                         R"({"method":"Fly"}})");
  EXPECT_EQ(Ask(R"({"method":"net.nettrace.Other.List"})"),
            R"({"error":"org.varlink.service.InterfaceNotFound","parameters":)"
            R"({"interface":"net.nettrace.Other"}})");
  EXPECT_EQ(Ask(R"({"method":"List"})"),
            R"({"error":"org.varlink.service.InterfaceNotFound","parameters":{"interface":""}})");
  EXPECT_EQ(
      Ask(R"({"method":"org.varlink.service.GetInterfaceDescription",)"
          R"("parameters":{"interface":"a.b"}})"),
      R"({"error":"org.varlink.service.InterfaceNotFound","parameters":{"interface":"a.b"}})");
}

TEST_F(ControlMessages, EndTheConnectionIfTheyAreNoRequests) {
  for (const std::string& message :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string("{}x"),
        std::string(R"({"method":1})"), std::string(R"({"method":"a.B","oneway":1})"),
        std::string(R"({"method":")") + "\xff" + "\"}", std::string(1 << 20, '['),
        R"({"method":"a.B","parameters":)" + std::string(17, '[') + std::string(17, ']') + "}"}) {
    const std::string reply = Ask(message);
    EXPECT_NE(reply.find("net.nettrace.Collector.InvalidArgument"), std::string::npos) << reply;
    EXPECT_TRUE(last_.is_last);
  }
  // Brackets in a string do not count as nesting.
  Call("Stop", absl::StrCat(R"({"session":"\")", std::string(100, '['), "\"}"));
  EXPECT_EQ(last_.status.code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(last_.is_last);
}

TEST_F(ControlMessages, AreNotRepliedToIfOneway) {
  EXPECT_EQ(Ask(R"({"method":"net.nettrace.Collector.Reload","oneway":true})"), "");
  EXPECT_EQ(service_.reloads, 1);
  EXPECT_EQ(Ask(R"({"method":"net.nettrace.Collector.Fly","oneway":true})"), "");
  EXPECT_EQ(Ask(R"({"method":"net.nettrace.Collector.Tail","oneway":true,"upgrade":true,)"
                R"("parameters":{"session":"web"}})"),
            "");
  EXPECT_EQ(last_.tail, nullptr);
}

TEST_F(ControlMessages, ChangeNothingForReadOnlyClients) {
  service_.Update("web", [](SessionStatus* web) { web->files = 7; });
  Dispatcher dispatcher(&service_, "");
  FakeCaller looker(Access::kLook);
  for (const std::string call :
       {R"(Start","parameters":{"session":"web"})", R"(Stop","parameters":{"session":"web"})",
        R"(StartFrom","parameters":{"settings":"[session.new]\n"})",
        R"(Rotate","parameters":{"session":"web"})", R"(Snapshot","parameters":{"session":"web"})",
        R"(Reload")"}) {
    const Reply reply =
        dispatcher.Handle(R"({"method":"net.nettrace.Collector.)" + call + "}", &looker);
    EXPECT_EQ(reply.status.code(), absl::StatusCode::kPermissionDenied) << call;
    EXPECT_NE(reply.message.find("control_group"), std::string::npos) << reply.message;
    EXPECT_NE(reply.change, "") << "who was refused belongs in the journal";
  }
  EXPECT_EQ(service_.List().size(), 2U);
  EXPECT_EQ(service_.Status("web")->state, SessionStatus::State::kRunning);
  EXPECT_EQ(service_.Status("web")->files, 7U);
  EXPECT_EQ(service_.Status("web")->snapshots, 0U);
  EXPECT_EQ(service_.reloads, 0);
  for (const std::string call :
       {R"(List")", R"(Metrics")", R"(Services")", R"(Status","parameters":{"session":"web"})",
        R"(Wait","parameters":{"session":"web"})"}) {
    const Reply reply =
        dispatcher.Handle(R"({"method":"net.nettrace.Collector.)" + call + "}", &looker);
    EXPECT_TRUE(reply.status.ok()) << call;
    EXPECT_EQ(reply.message.find("error\":\"net"), std::string::npos) << reply.message;
  }
}

TEST_F(ControlMessages, ListServicesAndReadThemBack) {
  EXPECT_EQ(Call("Services"),
            R"({"parameters":{"socket":"","whyNone":"","services":[],"refused":[]}})");
  ServicesStatus services;
  services.socket = "/run/nettraced/events";
  ServiceStatus& shop = services.services.emplace_back();
  shop.pid = 7;
  shop.uid = 1000;
  shop.name = "sh\x1bop\xff";
  shop.transport = "inline";
  shop.inline_reason = "the service cannot share memory";
  shop.events = std::uint64_t{1} << 63;  // beyond the integers of varlink
  shop.lost = 3;
  shop.losses = {{"ringFull", 3}};
  shop.tracepoints = {{"Shop_L4K1", {"web"}}, {"Shop_L5K1", {}}};
  services.refused.resize(2);
  services.refused[0].uid = 5;
  services.refused[0].reason = "badRegion";
  service_.SetServices(services);
  const std::string reply = Call("Services");
  EXPECT_NE(reply.find(R"("losses":[{"reason":"ringFull","events":3}])"), std::string::npos);
  EXPECT_NE(reply.find(R"({"name":"Shop_L5K1","sessions":[]})"), std::string::npos) << reply;
  EXPECT_NE(reply.find(R"("refused":[{"uid":5,)"), std::string::npos) << reply;
  EXPECT_NE(reply.find(R"({"uid":null,)"), std::string::npos) << reply;
  const auto document = ParseMessage(reply);
  ASSERT_TRUE(document.ok()) << document.status();
  const auto again = ParseServices((*document)["parameters"]);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->socket, services.socket);
  ASSERT_EQ(again->services.size(), 1U);
  EXPECT_EQ(again->services[0].name, "sh\x1bop\xef\xbf\xbd");
  EXPECT_EQ(again->services[0].transport, "inline");
  EXPECT_EQ(again->services[0].inline_reason, "the service cannot share memory");
  EXPECT_EQ(again->services[0].events, (std::uint64_t{1} << 63) - 1);
  EXPECT_EQ(again->services[0].tracepoints[0].sessions, std::vector<std::string>{"web"});
  EXPECT_EQ(again->refused[0].uid, 5U);
  EXPECT_EQ(again->refused[1].uid, std::nullopt);
}

TEST_F(ControlMessages, RejectServicesOfAWrongType) {
  for (const std::string text :
       {R"({"services":{}})", R"({"services":[1]})", R"({"services":[{"pid":"1"}]})",
        R"({"services":[{"tracepoints":[{"sessions":[1]}]}]})", R"({"refused":[{"uid":-1}]})",
        R"({"services":[{"moreTracepoints":0}]})"}) {
    EXPECT_FALSE(ParseServices(*ParseMessage(text)).ok()) << text;
  }
  EXPECT_TRUE(ParseServices(*ParseMessage(R"({"services":[{}],"new":1})")).ok());
}

TEST_F(ControlMessages, WaitUntilAllHolds) {
  EXPECT_NE(Call("Wait", R"({"session":"web"})").find(R"("state":"running")"), std::string::npos);
  EXPECT_NE(Call("Wait", R"({"session":"web","events":1,"timeout":0})").find("DeadlineExceeded"),
            std::string::npos);
  EXPECT_NE(Call("Wait", R"({"session":"web","state":"asleep"})").find("InvalidArgument"),
            std::string::npos);
  EXPECT_NE(Call("Wait", R"({"session":"x"})").find("NotFound"), std::string::npos);
  // The client disconnects after three pauses of the wait.
  caller_.pauses = 3;
  EXPECT_NE(Call("Wait", R"({"session":"web","files":2})").find("Failed"), std::string::npos);
  EXPECT_EQ(caller_.pauses, -1);
  service_.Update("web", [](SessionStatus* web) {
    web->files = 2;
    web->events = 10;
  });
  EXPECT_NE(Call("Wait", R"({"session":"web","files":2,"events":10})").find(R"("events":10)"),
            std::string::npos);
  EXPECT_NE(Call("Wait", R"({"session":"web","files":2,"events":11,"timeout":0})")
                .find("DeadlineExceeded"),
            std::string::npos);
}

SessionStatus FullStatus() {
  SessionStatus status;
  status.name = "web";
  status.kind = "files";
  status.state = SessionStatus::State::kSuspended;
  status.state_since = absl::FromUnixNanos(1'700'000'000'123'456'789);
  status.started = absl::FromUnixSeconds(1'600'000'000);
  status.error = "disk full: \"/x\"\n";
  status.error_time = absl::FromUnixSeconds(1'600'000'001);
  std::uint64_t number = 1;
  for (std::uint64_t* count :
       {&status.events, &status.lost, &status.dropped, &status.undecoded, &status.bytes,
        &status.tracepoints, &status.ring_bytes, &status.queue_bytes, &status.queue_limit,
        &status.memory_bytes, &status.files, &status.file_bytes, &status.snapshots,
        &status.snapshots_refused}) {
    *count = number++ << 50;
  }
  status.cpu_rate = 997;
  status.off_cpu = true;
  status.events_per_second = 1.5;
  status.bytes_per_second = 1e9;
  status.losses = {{{0, "user_events:A_L1K1"}, 5}, {{3, ""}, 7}};
  status.current_file = "/f";
  status.unmatched = {"a*", "b"};
  status.left_out = {"c: why"};
  status.warnings = {"d"};
  status.stacks = {"e: user"};
  status.dotnet = {"f"};
  status.dotnet_enabled = 3;
  status.dotnet_not_enabled = 2;
  status.dotnet_not_asked = 1;
  status.dotnet_processes = {{12, "g", "refused", "why", true, "eventPipe"}};
  return status;
}

std::string ToJson(const SessionStatus& status) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  PutSession(&json, status);
  return buffer.GetString();
}

TEST(ControlSession, ReadsBackUnchanged) {
  const std::string json = ToJson(FullStatus());
  const auto document = ParseMessage(json);
  ASSERT_TRUE(document.ok()) << document.status();
  const auto read = ParseSession(*document);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ToJson(*read), json);
  EXPECT_EQ(read->state_since, FullStatus().state_since);
  EXPECT_EQ(read->snapshots_refused, std::uint64_t{14} << 50);
  EXPECT_EQ(read->losses, FullStatus().losses);
  EXPECT_EQ(read->error, FullStatus().error);
  EXPECT_EQ(read->cpu_rate, 997U);
  EXPECT_TRUE(read->off_cpu);
  EXPECT_EQ(read->stacks, FullStatus().stacks);
  EXPECT_EQ(read->warnings, FullStatus().warnings);
  EXPECT_EQ(read->dotnet, FullStatus().dotnet);
  ASSERT_EQ(read->dotnet_processes.size(), 1U);
  EXPECT_EQ(read->dotnet_processes[0].reason, "why");
}

TEST(ControlSession, NamesAMemberOfTheWrongType) {
  for (const std::string wrong :
       {R"({"events":"1"})", R"({"events":-1})", R"({"state":"on"})", R"({"started":"now"})",
        R"({"losses":[{}]})", R"({"losses":{}})", R"({"unmatched":[1]})", R"({"name":null})"}) {
    const auto document = ParseMessage(wrong);
    ASSERT_TRUE(document.ok());
    const std::string key = std::string(
        absl::StripAsciiWhitespace(std::vector<std::string>(absl::StrSplit(wrong, '"'))[1]));
    const auto read = ParseSession(*document);
    EXPECT_TRUE(std::string(read.status().message())
                    .starts_with(absl::StrCat("nettraced: its reply is invalid: a session's '", key,
                                              "' has the wrong type; ")));
  }
}

TEST(ControlSession, HasTheLargestLossesOnly) {
  SessionStatus status;
  for (std::uint32_t i = 0; i < 500; ++i) status.losses[{i, "s:e"}] = i + 1;
  const auto document = ParseMessage(ToJson(status));
  const auto read = ParseSession(*document);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->losses.size(), kMaxLossesSent);
  EXPECT_EQ(read->losses.begin()->first.first, 400U);
}

// Returns the names of the members that the interface's description lists between `begin` and a
// line that begins with ")".
std::set<std::string> Described(const std::string& begin) {
  const std::string text(InterfaceDescription(kControlInterface));
  const std::size_t from = text.find(begin) + begin.size();
  std::set<std::string> names;
  for (const auto& line : absl::StrSplit(text.substr(from, text.find("\n)", from) - from), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(absl::StripAsciiWhitespace(line), ':');
    if (parts.size() > 1) names.insert(parts[0]);
  }
  return names;
}

TEST(ControlDescription, HasEachMemberOfASession) {
  const auto document = ParseMessage(ToJson(FullStatus()));
  std::set<std::string> written;
  for (const auto& member : document->GetObject()) written.insert(member.name.GetString());
  EXPECT_EQ(written, Described("type Session (\n"));
}

TEST_F(ControlMessages, MatchTheDescription) {
  int methods = 0;
  for (const std::string interface : {kControlInterface, kVarlinkInterface}) {
    const std::string text(InterfaceDescription(interface));
    for (const auto& line : absl::StrSplit(text, '\n')) {
      const std::string words(line);
      if (words.rfind("method ", 0) != 0) continue;
      const std::string name = words.substr(7, words.find('(') - 7);
      // The error names an unknown parameter if the method exists.
      EXPECT_EQ(
          Ask(absl::StrCat(R"({"method":")", interface, ".", name, R"(","parameters":{"?":1}})")),
          WrongParameter("?"))
          << name;
      ++methods;
    }
  }
  EXPECT_EQ(methods, 14);
}

}  // namespace

}  // namespace control
