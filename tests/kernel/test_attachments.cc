// Tests a tracepoint that another process removes while the capture opens it. The capture must
// report that it was removed, not the error of the system call that failed because of this.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/perf/perf_capture.h"
#include "tools/collector/session/attachments.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/session.h"
#include "tools/collector/session/session_writer.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {
namespace {

class AttachmentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
    if (!tracefs.ok()) GTEST_SKIP() << tracefs.status().message();
    control_ = tracefs->directory() + "/uprobe_events";
    if (access(control_.c_str(), W_OK) != 0) GTEST_SKIP() << "no uprobe events: " << control_;
  }
  void TearDown() override {
    if (exists_) Remove();
  }

  // Makes a uprobe tracepoint in /bin/true, which does not run. The tracepoint is never enabled.
  void Make() {
    Write(absl::StrCat("p:", name_.system, "/", name_.event, " ",
                       std::filesystem::canonical("/bin/true").native(), ":0x40\n"));
    exists_ = true;
  }
  void Remove() {
    Write(absl::StrCat("-:", name_.system, "/", name_.event, "\n"));
    exists_ = false;
  }

  // Passes a command to the kernel, which reads it from a single write().
  void Write(const std::string& command) {
    const base::UniqueFd file(open(control_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    EXPECT_EQ(write(file.get(), command.data(), command.size()),
              static_cast<ssize_t>(command.size()))
        << strerror(errno) << ": " << command;
  }

  // Adds a session with this selector. The tracepoint is removed after Attachments has found it in
  // tracefs, directly before Attachments opens it.
  absl::Status AddAndRemove(const std::string& selector, std::vector<std::string>* left_out) {
    const absl::StatusOr<std::vector<int>> cpus = PossibleCpus();
    if (!cpus.ok()) return cpus.status();
    absl::StatusOr<PerfCapture> perf = PerfCapture::Open(*cpus, {});
    if (!perf.ok()) return perf.status();
    TaskTracker tasks;
    Distributor distributor(&tasks);
    Attachments attachments({}, *Tracefs::Find(), &*perf, &distributor, [this] {
      if (exists_) Remove();
      return absl::OkStatus();
    });
    SessionOptions options;
    options.selectors = {*ParseSelector(selector)};
    SessionWriter session(options);
    Make();
    absl::Status added = attachments.Add(&session);
    *left_out = session.tracepoints().skipped().reasons();
    attachments.Remove(&session);
    return added;
  }

  const Tracefs::Name name_ = {absl::StrCat("nettraced_removed_", getpid()), "event"};
  std::string control_;
  bool exists_ = false;
};

TEST_F(AttachmentsTest, ReportsTheRemovalOfATracepointThatAPatternSelects) {
  std::vector<std::string> left_out;
  const absl::Status added = AddAndRemove(name_.system + ":*", &left_out);
  EXPECT_TRUE(added.ok()) << added;
  EXPECT_FALSE(exists_);
  EXPECT_EQ(left_out,
            std::vector<std::string>{absl::StrCat("tracepoint ", name_.system, ":", name_.event,
                                                  " was removed while it was being opened")});
}

TEST_F(AttachmentsTest, ReportsTheRemovalOfATracepointThatASelectorNames) {
  std::vector<std::string> left_out;
  const absl::Status added = AddAndRemove(absl::StrCat(name_.system, ":", name_.event), &left_out);
  EXPECT_EQ(added, absl::NotFoundError(absl::StrCat("tracepoint ", name_.system, ":", name_.event,
                                                    " was removed while it was being opened")));
  EXPECT_FALSE(exists_);
}

}  // namespace
}  // namespace collector
