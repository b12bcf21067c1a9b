// Tests a pattern that remembers tracepoints. A service's first event is in the file if the pattern
// found its tracepoint in an earlier recording. Otherwise, the account has the time when the
// pattern found the tracepoint.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "eventheader/eh.h"
#include "nettrace/reader.h"
#include "tests/support/collector/file_in_memory.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/pattern_memory.h"
#include "tools/trace/account.h"

namespace collector {
namespace {

constexpr char kTracepoint[] = "Remembered_Service_L4K1";
constexpr char kLate[] = "Remembered_Late_L4K1";
constexpr char kOther[] = "Forgotten_Service_L4K1";
// Registers the tracepoint, like a service that starts.
class Service {
 public:
  explicit Service(const std::string& name) : provider_(name) {}
  bool enabled() const { return set_.enabled(); }
  void Write() {
    eh::DynamicEvent event;
    event.Reset("First");
    EXPECT_EQ(event.Write(set_), eh::WriteResult::kWritten);
  }

 private:
  eh::DynamicProvider provider_;
  eh::EventSet set_{provider_, eh::Level::kInformation, 1};
};

struct Recorded {
  std::size_t events = 0;
  std::vector<trace::AccountEvent> met;
};

class RememberedPatterns : public ::testing::Test {
 protected:
  void Open() {
    CaptureOptions options;
    options.attachments.memory = memory_;
    auto capture = Capture::Open(options);
    ASSERT_TRUE(capture.ok()) << capture.status();
    capture_ = *std::move(capture);
    SessionOptions session;
    session.selectors = {*ParseSelector("Remembered_*")};
    const auto started = capture_->StartSession(session, [this] { return file_.MakeSink(); });
    ASSERT_TRUE(started.ok()) << started.status();
    session_ = *started;
  }

  Recorded Stop() {
    const SessionSummary summary = capture_->StopSession(session_);
    EXPECT_TRUE(summary.status.ok()) << summary.status;
    EXPECT_EQ(summary.lost, 0u);
    capture_.reset();
    EXPECT_EQ(file_.Verify(), "");
    Recorded recorded;
    const auto reader = file_.Read();
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      if (reader->event().metadata->name == "First") ++recorded.events;
      const auto account = trace::ParseAccount(reader->event());
      if (account && account->kind == trace::AccountEvent::Kind::kTracepointMet) {
        recorded.met.push_back(*account);
      }
    }
    return recorded;
  }

  std::shared_ptr<PatternMemory> memory_ = std::make_shared<PatternMemory>();
  tests::FileInMemory file_;
  std::unique_ptr<Capture> capture_;
  Session* session_ = nullptr;
};

TEST_F(RememberedPatterns, TheFirstEventOfAServiceIsRecorded) {
  EXPECT_EQ(memory_->Parse(std::string(kTracepoint) + "\n" + kOther + "\n"), 0u);
  Open();
  Service("Remembered_Service").Write();
  const Recorded recorded = Stop();
  EXPECT_EQ(recorded.events, 1u);
  EXPECT_TRUE(recorded.met.empty());
  // The memory marks tracepoints that had events as used, because it forgets them last.
  EXPECT_NE(memory_->ToText().find(std::string(kTracepoint) + " used\n"), std::string::npos);
  EXPECT_NE(memory_->ToText().find(std::string(kOther) + "\n"), std::string::npos);
}

TEST_F(RememberedPatterns, RemembersAndReportsNewTracepoints) {
  Open();
  const std::uint64_t before = static_cast<std::uint64_t>(absl::ToUnixNanos(absl::Now()));
  Service service("Remembered_Late");  // Not registered before in any test.
  for (int i = 0; i < 500 && !service.enabled(); ++i) {
    ASSERT_TRUE(capture_->Poll(absl::Milliseconds(10)).ok());
  }
  service.Write();
  const Recorded recorded = Stop();
  EXPECT_EQ(recorded.events, 1u);
  ASSERT_EQ(recorded.met.size(), 1u);
  EXPECT_EQ(recorded.met[0].tracepoint, std::string("user_events:") + kLate);
  EXPECT_GT(recorded.met[0].until, before);
  EXPECT_NE(memory_->ToText().find(std::string(kLate) + " used\n"), std::string::npos);
}

}  // namespace
}  // namespace collector
