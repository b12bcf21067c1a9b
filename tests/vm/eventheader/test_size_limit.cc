// Tests the largest possible event, in a perf ring, and an event that is a byte larger.
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"
#include "tests/support/eventheader/kernel_trace.h"

namespace eh::testing {
namespace {

constinit Provider provider("Vm_Size");
constexpr char kTracepoint[] = "Vm_Size_L4K1";
constexpr Event<provider, "Text", Traits{.keyword = 1}, Field<"text", std::string_view>> text_event;
// Size of the event without its text, in bytes: header, extension, metadata, length.
constexpr std::size_t kOverhead = 8 + 4 + sizeof("Text") + sizeof("text") + 1 + 2;

// Reads the events that this thread writes to a tracepoint from a perf ring.
class PerfRing {
 public:
  explicit PerfRing(const std::string& tracepoint) {
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.size = sizeof(attr);
    attr.config = std::stoull(GetText(kTracefs + "events/user_events/" + tracepoint + "/id"));
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_RAW;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1,
                                   static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC)));
    EXPECT_GE(fd_, 0) << std::strerror(errno);
    ring_ = static_cast<char*>(
        mmap(nullptr, kPage + kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    EXPECT_NE(ring_, MAP_FAILED) << std::strerror(errno);
  }
  ~PerfRing() {
    munmap(ring_, kPage + kSize);
    close(fd_);
  }
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;

  // Returns the events since the last call, from the EventHeader on, with their padding.
  std::vector<std::string> Take() {
    auto* const page = reinterpret_cast<perf_event_mmap_page*>(ring_);
    const std::uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    std::vector<std::string> events;
    while (page->data_tail < head) {
      perf_event_header header{};
      Read(page->data_tail, &header, sizeof(header));
      EXPECT_EQ(header.type, std::uint32_t{PERF_RECORD_SAMPLE});
      if (header.type != PERF_RECORD_SAMPLE) return events;
      std::string record(header.size, '\0');
      Read(page->data_tail, record.data(), record.size());
      // Skips the header, the size of the raw data, and the tracepoint's common fields.
      events.push_back(record.substr(sizeof(header) + 4 + 8));
      page->data_tail += header.size;
    }
    return events;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kSize = 16 * kPage;

  void Read(std::uint64_t at, void* data, std::size_t size) const {
    for (std::size_t i = 0; i < size; ++i) {
      static_cast<char*>(data)[i] = ring_[kPage + (at + i) % kSize];
    }
  }

  int fd_ = -1;
  char* ring_ = nullptr;
};

// Returns text for an event of `size` bytes. Consecutive characters differ.
std::string TextFor(std::size_t size) {
  std::string text(size - kOverhead, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('!' + i % 89);
  return text;
}

std::string LibrarysBytes(std::string_view text) {
  RecordingTransport transport;
  provider.SetTransport(&transport);
  text_event.Write(text);
  EXPECT_EQ(provider.SetTransport(nullptr), 0);
  const auto records = transport.Take();
  if (records.size() != 1) return "not one event";
  return {reinterpret_cast<const char*>(records[0].event.data()), records[0].event.size()};
}

class SizeLimit : public KernelTest {};

TEST_F(SizeLimit, LargestEventIsWholeInThePerfRing) {
  for (const std::size_t size : {kMaxEventSize - 1, kMaxEventSize}) {
    const std::string bytes = LibrarysBytes(TextFor(size));
    ASSERT_EQ(bytes.size(), size);
    PerfRing ring(kTracepoint);
    ASSERT_EQ(text_event.Write(TextFor(size)), WriteResult::kWritten);
    const std::vector<std::string> events = ring.Take();
    ASSERT_EQ(events.size(), 1u) << size;
    EXPECT_EQ(events[0].substr(0, size), bytes);
    EXPECT_LE(events[0].size(), size + 8);
  }
}

TEST_F(SizeLimit, OneByteMoreIsRefusedAndCountedAndNothingArrives) {
  PerfRing ring(kTracepoint);
  const auto before = provider.counters();
  EXPECT_EQ(text_event.Write(TextFor(kMaxEventSize + 1)), WriteResult::kTooBig);
  const Activity activity{ActivityId{}};
  EXPECT_EQ(text_event.Write(activity, TextFor(kMaxEventSize - 20 + 1)), WriteResult::kTooBig);
  EXPECT_EQ(ring.Take().size(), 0u);
  EXPECT_EQ(text_event.Write(activity, TextFor(kMaxEventSize - 20)), WriteResult::kWritten);
  EXPECT_EQ(ring.Take().size(), 1u);
  const auto after = provider.counters();
  EXPECT_EQ(after.too_big - before.too_big, 2u);
  EXPECT_EQ(after.written - before.written, 1u);
  EXPECT_EQ(after.failed - before.failed, 0u);
}

TEST_F(SizeLimit, DynamicEventsHaveTheSame) {
  const EventSet set(provider, Level::kInformation, 1);
  PerfRing ring(kTracepoint);
  DynamicEvent event;
  for (const std::size_t size : {kMaxEventSize, kMaxEventSize + 1}) {
    event.Reset("Text");
    event.AddField("text", TextFor(size));
    EXPECT_EQ(event.Write(set),
              size > kMaxEventSize ? WriteResult::kTooBig : WriteResult::kWritten);
    EXPECT_EQ(ring.Take().size(), size > kMaxEventSize ? 0u : 1u);
  }
}

// Shows why the library must refuse events above the maximum: the kernel returns success for them,
// and drops them.
TEST_F(SizeLimit, KernelAcceptsLargerEventsAndDropsThem) {
  const Definition definition(kTracepoint);
  PerfRing ring(kTracepoint);
  for (const std::size_t size : {kMaxEventSize, kMaxEventSize + 1}) {
    EXPECT_EQ(definition.Write(std::string(size, 'x')), static_cast<ssize_t>(4 + size));
    EXPECT_EQ(ring.Take().size(), size > kMaxEventSize ? 0u : 1u) << size;
  }
}

}  // namespace
}  // namespace eh::testing
