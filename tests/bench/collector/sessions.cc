// A recorder with several sessions of one capture, which all select the same tracepoint:
//
//   collector_sessions SESSIONS TRACEPOINT RING-BYTES FILE
//
// The first session writes FILE, the others FILE.1, FILE.2, … On SIGINT the program prints the
// counts of the sessions as JSON and ends. It fails unless the counts are the same for all
// sessions.
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/session.h"

namespace {

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "collector_sessions: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

void Check(const absl::Status& status) { Check(status.ok() ? absl::StatusOr<int>(0) : status); }

// Returns a descriptor that is readable once SIGINT has been received.
int CatchInterrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

bool IsInterrupted(int signals) {
  signalfd_siginfo info;
  return read(signals, &info, sizeof info) == sizeof info;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: collector_sessions SESSIONS TRACEPOINT RING-BYTES FILE\n", stderr);
    return 2;
  }
  const int signals = CatchInterrupt();
  collector::CaptureOptions options;
  options.ring_size = std::strtoul(argv[3], nullptr, 10);
  const auto capture = Check(collector::Capture::Open(options));
  collector::SessionOptions selected;
  selected.selectors.push_back(Check(collector::ParseSelector(argv[2])));
  std::vector<collector::Session*> sessions;
  for (long i = 0; i < std::strtol(argv[1], nullptr, 10); ++i) {
    const std::string file = i == 0 ? argv[4] : absl::StrCat(argv[4], ".", i);
    sessions.push_back(
        Check(capture->StartSession(selected, [&] { return nettrace::FdSink::Create(file); })));
  }
  Check(capture->WakeOn(signals));
  while (!IsInterrupted(signals)) Check(capture->Poll(absl::Seconds(1)));

  std::vector<collector::SessionSummary> summaries;
  for (collector::Session* session : sessions) {
    summaries.push_back(capture->StopSession(session));
    Check(summaries.back().status);
  }
  for (const collector::SessionSummary& summary : summaries) {
    if (summary.events == summaries[0].events && summary.lost == summaries[0].lost) continue;
    std::fputs("collector_sessions: the sessions differ\n", stderr);
    return 1;
  }
  std::printf("{\"events\":%llu,\"lost\":%llu}\n",
              static_cast<unsigned long long>(summaries[0].events),
              static_cast<unsigned long long>(summaries[0].lost));
  return 0;
}
