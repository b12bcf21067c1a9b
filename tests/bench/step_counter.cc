#include "step_counter.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <new>
#include <sstream>
#include <string>

#include "measure.h"

namespace bench {
namespace {

enum Phase : int { kForked, kMayTrace, kTraced, kCounts, kDone, kFailed };

struct Shared {
  std::atomic<int> phase{kForked};
  std::atomic<std::uint64_t> instructions{0};
};

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Returns where the vDSO is in this process and in forked ones.
Range FindVdso() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with("[vdso]")) continue;
    Range range;
    char minus;
    std::istringstream(line) >> std::hex >> range.begin >> minus >> range.end;
    return range;
  }
  return {};
}

std::uint64_t InstructionPointer([[maybe_unused]] pid_t thread) {
#if defined(__x86_64__)
  return static_cast<std::uint64_t>(
      ptrace(PTRACE_PEEKUSER, thread, offsetof(user_regs_struct, rip), 0));
#else
  return 0;
#endif
}

// Counts the steps of `thread` outside of the vDSO while the phase is kCounts. Sets the phase to
// kFailed if this process may not trace the thread.
void Trace(pid_t thread, Shared* shared) {
  const Range vdso = FindVdso();
  while (shared->phase == kForked) usleep(100);
  int status = 0;
  if (ptrace(PTRACE_SEIZE, thread, 0, 0) != 0 || ptrace(PTRACE_INTERRUPT, thread, 0, 0) != 0 ||
      waitpid(thread, &status, __WALL) != thread) {
    shared->phase = kFailed;
    return;
  }
  shared->phase = kTraced;
  std::uint64_t count = 0;
  while (shared->phase != kDone) {
    const std::uint64_t at = InstructionPointer(thread);
    if (shared->phase == kCounts && (at < vdso.begin || at >= vdso.end)) ++count;
    const int signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (ptrace(PTRACE_SINGLESTEP, thread, 0, signal) != 0 ||
        waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) {
      return;
    }
  }
  shared->instructions = count;
  ptrace(PTRACE_DETACH, thread, 0, 0);
}

}  // namespace

double CountInstructions(const std::function<void()>& body) {
  void* const map =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) Fail("cannot map memory for the count of instructions");
  auto* const shared = new (map) Shared;
  const pid_t thread = gettid();
  const pid_t tracer = fork();
  if (tracer < 0) Fail("cannot fork the process that counts instructions");
  if (tracer == 0) {
    Trace(thread, shared);
    _exit(0);
  }
  prctl(PR_SET_PTRACER, tracer);
  shared->phase = kMayTrace;
  while (shared->phase == kMayTrace) usleep(100);
  double instructions = -1;
  if (shared->phase == kTraced) {
    shared->phase = kCounts;
    body();
    shared->phase = kDone;
  }
  waitpid(tracer, nullptr, 0);
  if (shared->phase == kDone) instructions = static_cast<double>(shared->instructions);
  munmap(map, sizeof(Shared));
  return instructions;
}

}  // namespace bench
