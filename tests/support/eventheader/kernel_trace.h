// Fixtures for tests that run as root in the VM and read the state of tracepoints from the kernel.
#ifndef TESTS_SUPPORT_EVENTHEADER_KERNEL_TRACE_H_
#define TESTS_SUPPORT_EVENTHEADER_KERNEL_TRACE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventheader/provider.h"
#include "eventheader/wire.h"
#include "libeventheader/base/user_events.h"

namespace eh::testing {

inline const std::string kTracefs = "/sys/kernel/tracing/";

inline void PutText(const std::string& path, std::string_view text) {
  std::ofstream file(path);
  file << text << std::flush;
  EXPECT_TRUE(file) << "cannot write " << text << " to " << path << ": " << std::strerror(errno);
}

inline std::string GetText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// An event in a ring of ftrace.
struct KernelEvent {
  std::uint16_t tracepoint;  // id
  std::int32_t tid;
  std::string bytes;  // From the EventHeader on; the kernel may have padded them to 4 bytes.
};

// Appends the events in one page (sub-buffer) of a ring, whose layout is in events/header_page and
// header_event.
inline void AppendEvents(std::string_view page, std::vector<KernelEvent>* events) {
  const auto read = [&]<typename T>(std::size_t at, T* value) {
    ASSERT_LE(at + sizeof(T), page.size());
    std::memcpy(value, page.data() + at, sizeof(T));
  };
  constexpr std::size_t kPageHeader = 16;
  constexpr std::size_t kCommonFields = 8;
  std::uint64_t commit = 0;
  read(8, &commit);
  const std::size_t end = kPageHeader + (commit & 0xFFFFF);
  ASSERT_LE(end, page.size());
  std::size_t size = 0;
  for (std::size_t at = kPageHeader; at < end; at += size) {
    std::uint32_t head = 0;
    std::uint32_t length = 0;
    read(at, &head);
    const std::uint32_t type = head & 31;
    if (type == 0 || type == 29) read(at + 4, &length);
    if (type == 29 && head >> 5 == 0) return;  // Padding that fills the rest of the page.
    size = type >= 30 ? 8 : type == 0 || type == 29 ? 4 + length : 4 + type * 4;
    if (type >= 29) continue;  // Padding, or a time without an event.
    const std::size_t data = at + (type == 0 ? 8 : 4);
    KernelEvent event{};
    read(data, &event.tracepoint);
    read(data + 4, &event.tid);
    ASSERT_LE(at + size, end);
    event.bytes = page.substr(data + kCommonFields, at + size - data - kCommonFields);
    events->push_back(std::move(event));
  }
}

// A tracing instance of ftrace that only this test uses.
class TraceInstance {
 public:
  explicit TraceInstance(const std::string& name = "test")
      : folder_(kTracefs + "instances/" + name + "-" + std::to_string(getpid()) + "/") {
    EXPECT_TRUE(std::filesystem::create_directory(folder_)) << folder_;
  }
  ~TraceInstance() { rmdir(folder_.c_str()); }
  TraceInstance(const TraceInstance&) = delete;
  TraceInstance& operator=(const TraceInstance&) = delete;

  // Enables or disables a user event in this instance.
  void Enable(const std::string& tracepoint, bool on = true) {
    PutText(folder_ + "events/user_events/" + tracepoint + "/enable", on ? "1" : "0");
  }

  // Returns the events since the last call, CPU by CPU.
  std::vector<KernelEvent> Take() {
    std::vector<KernelEvent> events;
    for (const auto& cpu : std::filesystem::directory_iterator(folder_ + "per_cpu")) {
      const int fd =
          open((cpu.path() / "trace_pipe_raw").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
      char page[1 << 16];
      for (ssize_t got; fd >= 0 && (got = read(fd, page, sizeof page)) > 0;) {
        AppendEvents({page, static_cast<std::size_t>(got)}, &events);
      }
      close(fd);
    }
    return events;
  }

  // Returns the number of events since Clear, including those that a full ring has overwritten.
  std::uint64_t Count() {
    std::uint64_t count = 0;
    for (const auto& cpu : std::filesystem::directory_iterator(folder_ + "per_cpu")) {
      std::istringstream stats(GetText(cpu.path() / "stats"));
      for (std::string line; std::getline(stats, line);) {
        for (const std::string_view what : {"entries: ", "overrun: ", "read events: "}) {
          if (line.starts_with(what)) count += std::stoull(line.substr(what.size()));
        }
      }
    }
    return count;
  }
  void Clear() { PutText(folder_ + "trace", ""); }

 private:
  std::string folder_;
};

inline int CountText(const std::vector<KernelEvent>& events, std::string_view text) {
  return static_cast<int>(std::count_if(events.begin(), events.end(), [&](const auto& event) {
    return event.bytes.find(text) != std::string::npos;
  }));
}

// A tracepoint that is registered through a separate descriptor, not through the library. The
// kernel deletes it after the destruction of this object, unless it has other users.
class Definition {
 public:
  explicit Definition(const std::string& name, const char* fields = kTracepointFields)
      : fd_(internal::user_events::OpenData()) {
    EXPECT_EQ(
        internal::user_events::Register(fd_, (name + ' ' + fields).c_str(), &word_, 0, 0, &index_),
        0)
        << name;
  }
  ~Definition() {
    EXPECT_EQ(internal::user_events::Unregister(fd_, &word_, 0), 0);
    close(fd_);
  }
  Definition(const Definition&) = delete;
  Definition& operator=(const Definition&) = delete;

  // Writes without the library; `event` begins with its header. Returns the result of write().
  ssize_t Write(std::string_view event) const {
    std::string record(sizeof(index_), '\0');
    std::memcpy(record.data(), &index_, sizeof(index_));
    record += event;
    return write(fd_, record.data(), record.size());
  }

 private:
  int fd_;
  std::uint32_t index_ = 0;
  alignas(8) std::uint64_t word_ = 0;
};

// Waits up to about 10 s until `condition` returns true, because the kernel completes some changes
// only after the system call. Returns whether the condition became true.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 1'000; ++i) {
    if (condition()) return true;
    usleep(10'000);
  }
  return false;
}

// Waits for the kernel to delete a tracepoint that is no longer used. Returns whether it did so.
inline bool IsGone(const std::string& tracepoint) {
  const std::string folder = kTracefs + "events/user_events/" + tracepoint;
  return Eventually([&] { return !std::filesystem::exists(folder); });
}

// Returns this process's descriptors of user_events_data.
inline std::vector<int> UserEventsDescriptors() {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error);
    if (target.ends_with("user_events_data")) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

// Calls `function` in a child process, so that its changes to descriptors do not affect this
// process. Returns its result.
template <typename Function>
int InChild(Function function) {
  const pid_t child = fork();
  if (child == 0) _exit(function());
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "wait status " << status;
  return WEXITSTATUS(status);
}

// Skips the test if this process cannot write to user_events_data, as outside of the VM.
class KernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access((kTracefs + "user_events_data").c_str(), W_OK) != 0) {
      GTEST_SKIP() << "cannot write " << kTracefs << "user_events_data; run as root in the VM";
    }
  }
};

// A test with a TraceInstance in which one tracepoint is enabled.
class EnabledTest : public KernelTest {
 protected:
  // The tracepoint belongs to the provider, which is a static object.
  EnabledTest(const ProviderBase& provider, std::string tracepoint)
      : provider_(provider), tracepoint_(std::move(tracepoint)) {}

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_EQ(provider_.status(), 0) << RegistrationErrorText(provider_.status());
    trace_ = std::make_unique<TraceInstance>();
    Enable();
  }

  // Enables or disables the tracepoint, and returns when the provider sees the change. The wait is
  // necessary after a fork: both processes then share the page of the enable word until one of
  // them writes to it, and the kernel updates the word in the other process only a little later.
  void Enable(bool on = true) {
    trace_->Enable(tracepoint_, on);
    ASSERT_TRUE(Eventually([&] { return provider_.enabled() == on; })) << tracepoint_;
  }

  std::unique_ptr<TraceInstance> trace_;

 private:
  const ProviderBase& provider_;
  std::string tracepoint_;
};

}  // namespace eh::testing

#endif  // TESTS_SUPPORT_EVENTHEADER_KERNEL_TRACE_H_
