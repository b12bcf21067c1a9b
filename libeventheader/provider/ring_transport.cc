#include "libeventheader/provider/ring_transport.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "libeventheader/base/errno_keeper.h"
#include "libeventheader/base/user_events.h"

namespace eh::internal {
namespace {

constexpr std::uint32_t kDefaultChunks = 1024;
// Maximum number of regions that stay mapped after the program has closed their descriptors. If the
// program then closes the descriptor of another region, no new region is created.
constexpr int kMaxAbandonedRegions = 8;
// Maximum number of events of a forked child that may fail to start its helper thread, for example
// because a signal handler writes them. After that, the child's events are disabled.
constexpr int kMaxAttempts = 1000;
constexpr std::size_t kThreadStack = 64 * 1024;
// Maximum number of attempts, about 1 ms apart, to get the lock when the program exits.
constexpr int kFinishAttempts = 1000;

// Returns $EVENTHEADER_RING_SIZE, such as 256K or 16M, as a number of chunks, at most
// ring::kMaxChunks. Returns kDefaultChunks if the variable is not set or does not begin with a
// digit.
std::uint32_t ChosenChunks() noexcept {
  const char* const text = secure_getenv("EVENTHEADER_RING_SIZE");
  if (text == nullptr || *text < '0' || *text > '9') return kDefaultChunks;
  char* end = nullptr;
  unsigned long long size = strtoull(text, &end, 10);
  const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  constexpr unsigned long long kMost =
      static_cast<unsigned long long>(ring::kMaxChunks) * ring::kChunkBytes;
  size = size > kMost >> shift ? kMost : size << shift;
  return static_cast<std::uint32_t>(size / ring::kChunkBytes);
}

// Returns why the collector has refused the region of this program, and a remedy.
const char* RefusalText(std::uint64_t reason) noexcept {
  switch (static_cast<ring::RefuseReason>(reason)) {
    case ring::RefuseReason::kNoCommonVersion:
      return "the collector does not support this program's version of rings; update the collector "
             "or this program";
    case ring::RefuseReason::kTooManyClients:
      return "the collector's limit of services or of their memory is reached, or the collector "
             "lacks memory; raise the limit ([daemon.rings] of nettraced), or stop some services";
    case ring::RefuseReason::kTooLarge:
      return "the memory of the rings is larger than the collector allows; set a smaller "
             "EVENTHEADER_RING_SIZE";
    case ring::RefuseReason::kBadRegion:
      return "the collector cannot use the memory of the rings; update the collector or this "
             "program";
    case ring::RefuseReason::kNoDescriptor:
      return "the collector received no descriptor of the memory of the rings; set "
             "EVENTHEADER_TRANSPORT=ring-inline";
  }
  return "the reason is unknown; update this program";
}

// Returns why the connection is inline, as the end of a sentence; "" if it is not.
const char* InlineText(ring::InlineReason reason) noexcept {
  switch (reason) {
    case ring::InlineReason::kNone:
      return "";
    case ring::InlineReason::kChosen:
      return "; events go over the socket, because EVENTHEADER_TRANSPORT is ring-inline";
    case ring::InlineReason::kNoMemory:
      return "; events go over the socket, because memory cannot be shared";
    case ring::InlineReason::kNotSent:
      return "; events go over the socket, because descriptors cannot be sent";
    case ring::InlineReason::kNotReceived:
      return "; events go over the socket, because the collector received no descriptor";
  }
  return "";
}

void SetBit(std::uint64_t* word, std::uint32_t bit, bool on) noexcept {
  const std::uint64_t mask = std::uint64_t{1} << bit;
  if (on) {
    __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_and(word, ~mask, __ATOMIC_RELAXED);
  }
}

void* MapPrivate(std::size_t bytes) noexcept {
  void* const map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return map == MAP_FAILED ? nullptr : map;
}

// Returns whether one of the signals in `now` is not in `before`.
bool BlocksMore(const sigset_t& now, const sigset_t& before) noexcept {
  for (int i = 1; i < NSIG; ++i) {
    if (sigismember(&now, i) == 1 && sigismember(&before, i) != 1) return true;
  }
  return false;
}

// Priority 101 runs last: the static event sets, which need the transport to unregister, are
// already destroyed.
[[gnu::destructor(101)]] void Unload() noexcept {
  ring_transport.Finish();
  if (IsInSharedObject()) ring_transport.Close();
}

}  // namespace

constinit RingTransport ring_transport;

TransportChoice ChosenTransport() noexcept {
  const char* const text = secure_getenv("EVENTHEADER_TRANSPORT");
  if (text == nullptr) return TransportChoice::kAutomatic;
  if (strcmp(text, "user_events") == 0) return TransportChoice::kUserEvents;
  if (strcmp(text, "ring") == 0) return TransportChoice::kRing;
  if (strcmp(text, "ring-inline") == 0) return TransportChoice::kRingInline;
  if (strcmp(text, "none") == 0) return TransportChoice::kNone;
  return TransportChoice::kAutomatic;
}

int RingTransport::Register(const char* name, std::uint64_t* enable_word, unsigned bit,
                            std::uint64_t* handle) noexcept {
  const ErrnoKeeper keeper;
  const std::lock_guard lock(mutex_);
  if (const int error = Prepare()) return error;
  std::uint32_t set = 0;
  if (const int error = FindSet(name, &set)) return error;
  if (!AddRegistration({enable_word, set, bit})) return ENOMEM;
  const bool is_first = has_thread_option_ && !has_thread_;
  if (is_first) {
    if (const int error = StartThread()) {
      --registration_count_;
      return error;
    }
    if (is_armed_.exchange(false, std::memory_order_relaxed)) SetAll(false);
  }
  Set& entry = sets_[set];
  ++entry.users;
  *handle = std::uint64_t{signature_.load(std::memory_order_relaxed)} << 32 | set;
  if (ring_memory.exists()) ring_memory.SetUsers(set, entry.users);
  if (link_.state() != RingLink::State::kWaiting) {
    SetBit(enable_word, bit, IsEnabled(set));
    link_.Send(ring::MessageType::kSets, set_count_);
  } else if (is_first) {
    // Connects now, because a service may end before its helper thread runs.
    link_.Step(true);
  }
  return 0;
}

void RingTransport::Unregister(std::uint64_t* enable_word, unsigned bit) noexcept {
  const ErrnoKeeper keeper;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < registration_count_; ++i) {
    Registration& registration = registrations_[i];
    if (registration.word != enable_word || registration.bit != bit) continue;
    Set& entry = sets_[registration.set];
    --entry.users;
    if (ring_memory.exists()) ring_memory.SetUsers(registration.set, entry.users);
    registration = registrations_[--registration_count_];
    link_.Send(ring::MessageType::kSets, set_count_);
    return;
  }
}

bool RingTransport::IsCurrent(std::uint64_t handle) noexcept {
  const ErrnoKeeper keeper;
  const std::lock_guard lock(mutex_);
  if (!IsOurs(handle) || (has_thread_option_ && !has_thread_)) return false;
  if (ChosenTransport() != TransportChoice::kAutomatic ||
      link_.state() == RingLink::State::kConnected) {
    return true;
  }
  // Returns false if user_events can be opened now, for example because tracefs was mounted.
  // Retry() then registers the set with user_events.
  const int fd = user_events::OpenData();
  if (fd >= 0) close(fd);
  return fd < 0;
}

int RingTransport::Write(std::uint64_t handle, std::span<std::byte> record) noexcept {
  return IsOurs(handle) ? WriteFast(handle, record) : EBADF;
}

void RingTransport::Poll() noexcept {
  const ErrnoKeeper keeper;
  const std::lock_guard lock(mutex_);
  if (has_thread_ || registration_count_ == 0) return;
  if (!has_thread_option_) {
    link_.Step(false);
  } else if (is_armed_.exchange(false, std::memory_order_relaxed)) {
    SetAll(false);
    static_cast<void>(StartThread());
  }
}

TransportState RingTransport::Describe(std::span<char> text) noexcept {
  const ErrnoKeeper keeper;
  const std::lock_guard lock(mutex_);
  char reason[128];
  const auto put = [text](const char* format, auto... values) {
    if (!text.empty()) std::snprintf(text.data(), text.size(), format, values...);
  };
  if (region_error_ != 0) {
    put("ring: memory for the rings cannot be created: %s; raise the process's limits of memory "
        "and open files, and do not close descriptors of the library",
        strerror_r(region_error_, reason, sizeof(reason)));
    return TransportState::kRingFailed;
  }
  if (link_.state() == RingLink::State::kConnected) {
    const int error = link_.inline_error();
    put("ring: connected to the collector at %s%s%s%s", link_.path(),
        InlineText(link_.inline_reason()), error != 0 ? ": " : "",
        error != 0 ? strerror_r(error, reason, sizeof(reason)) : "");
    return TransportState::kRingConnected;
  }
  if (link_.state() == RingLink::State::kGreeting) {
    put("ring: waiting for the answer of the collector at %s", link_.path());
    return TransportState::kRingWaiting;
  }
  const char* const more = *link_.other_path() != '\0' ? " or " : "";
  const char* const first =
      *link_.first_path() != '\0'
          ? link_.first_path()
          : "$EVENTHEADER_SOCKET, whose path is too long; use at most 107 bytes";
  if (link_.refused() != 0) {
    put("ring: refused by the collector at %s: %s", link_.path(), RefusalText(link_.refused()));
  } else if (link_.error() != 0 && link_.error() != ENOENT) {
    put("ring: waiting for a collector at %s%s%s: %s", first, more, link_.other_path(),
        strerror_r(link_.error(), reason, sizeof(reason)));
  } else {
    put("ring: waiting for a collector at %s%s%s", first, more, link_.other_path());
  }
  return TransportState::kRingWaiting;
}

void RingTransport::AfterForkInChild() noexcept {
  const ErrnoKeeper keeper;
  const bool had_thread = has_thread_;
  has_thread_ = false;
  stops_ = false;
  ring_memory.AfterFork();
  // Closes the child's copies of the parent's descriptors. Otherwise the parent's helper thread
  // would not notice that the parent closes all of its descriptors.
  link_.Close();
  wake_read_.Close();
  wake_write_.Close();
  region_error_ = 0;
  awaits_words_ = false;
  pthread_sigmask(SIG_SETMASK, nullptr, &fork_mask_);
  attempts_.store(0, std::memory_order_relaxed);
  is_armed_.store(had_thread || is_armed_.load(std::memory_order_relaxed),
                  std::memory_order_relaxed);
  SetAll(is_armed_.load(std::memory_order_relaxed));
  mutex_.unlock();
}

void RingTransport::Finish() noexcept {
  const ErrnoKeeper keeper;
  // Gives up if the lock is never released: a signal handler may have called exit() while its
  // thread held the lock. In a child that was not made by fork(), another thread of the parent may
  // have held it.
  for (int i = 0; !mutex_.try_lock(); ++i) {
    if (i == kFinishAttempts) return;
    usleep(1000);
  }
  link_.Finish();
  mutex_.unlock();
}

void RingTransport::Close() noexcept {
  const ErrnoKeeper keeper;
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    // Wakes the helper thread. If the program has closed this descriptor, that has already woken
    // the thread.
    if (wake_write_.IsOurs()) static_cast<void>(!write(wake_write_.fd(), "", 1));
  }
  if (has_thread_) pthread_join(thread_, nullptr);
  has_thread_ = false;
  link_.Close();
  wake_read_.Close();
  wake_write_.Close();
  ring_memory.Close();
  signature_.store(kNoSignature, std::memory_order_relaxed);
  if (sets_ != nullptr) munmap(sets_, ring::kMaxSets * sizeof(Set));
  if (registrations_ != nullptr) {
    munmap(registrations_, registration_room_ * sizeof(Registration));
  }
  sets_ = nullptr;
  registrations_ = nullptr;
  registration_room_ = registration_count_ = set_count_ = 0;
}

int RingTransport::PrepareRegion() noexcept {
  if (ring_memory.exists()) {
    if (ring_memory.descriptor().IsOurs()) return 0;
    // An inline connection needs no descriptor.
    if (link_.inline_reason() != ring::InlineReason::kNone) return 0;
    if (++abandoned_regions_ > kMaxAbandonedRegions) return region_error_ = EBADF;
    ring_memory.Abandon();
  }
  region_error_ = CreateRegion();
  for (std::uint32_t i = 0; i < set_count_ && region_error_ == 0; ++i) {
    region_error_ = ring_memory.AddName(i, sets_[i].name);
    if (region_error_ == 0) ring_memory.SetUsers(i, sets_[i].users);
  }
  return region_error_;
}

// Creates the region, in private memory if memory cannot be shared. Returns 0 or an errno.
int RingTransport::CreateRegion() noexcept {
  if (link_.inline_reason() == ring::InlineReason::kNone) {
    const int error = ring_memory.Create(chunks_);
    // The errors in this condition mean that memory cannot be shared. All others mean that a limit
    // of the process is reached, so a later attempt may succeed.
    if (error != EPERM && error != EACCES && error != ENOSYS && error != EINVAL && error != EFBIG) {
      return error;
    }
    link_.UseInline(ring::InlineReason::kNoMemory, error);
  }
  return ring_memory.CreatePrivate(chunks_);
}

void RingTransport::Greeted() noexcept {
  awaits_words_ = true;
  // A collector that has refused a region will probably refuse again. Therefore, no memory is
  // allocated and no set is enabled before the collector accepts the region.
  if (link_.refused() != 0) return;
  ring_memory.Grow(std::min(ring::kFirstChunks, ring_memory.chunk_count()));
  SetAll(true);
}

void RingTransport::Connected(std::uint64_t chunks) noexcept {
  ring_memory.Grow(
      static_cast<std::uint32_t>(std::min<std::uint64_t>(chunks, ring_memory.chunk_count())));
}

void RingTransport::Disconnected() noexcept {
  awaits_words_ = false;
  SetAll(false);
}

void RingTransport::EnableWordsChanged() noexcept {
  awaits_words_ = false;
  for (std::size_t i = 0; i < registration_count_; ++i) {
    const Registration& registration = registrations_[i];
    SetBit(registration.word, registration.bit, IsEnabled(registration.set));
  }
}

bool RingTransport::AnyIsEnabled() const noexcept {
  for (std::uint32_t i = 0; i < set_count_; ++i) {
    if (sets_[i].users != 0 && IsEnabled(i)) return true;
  }
  return false;
}

// Returns whether the set is enabled. Called only while there is a connection.
bool RingTransport::IsEnabled(std::uint32_t set) const noexcept {
  if (awaits_words_) return link_.refused() == 0;
  return set >= ring_memory.SetsRead() || (ring_memory.EnableWord(set / 64) >> (set % 64) & 1) != 0;
}

// Prepares everything except the region and the helper thread, in the first call. Returns 0 or an
// errno.
int RingTransport::Prepare() noexcept {
  if (sets_ == nullptr) {
    if (const int error = ring_memory.Prepare()) return error;
    sets_ = static_cast<Set*>(MapPrivate(ring::kMaxSets * sizeof(Set)));
    if (sets_ == nullptr) return ENOMEM;
    link_.Prepare();
    if (ChosenTransport() == TransportChoice::kRingInline) {
      link_.UseInline(ring::InlineReason::kChosen, 0);
    }
    chunks_ = ChosenChunks();
    const char* const thread = secure_getenv("EVENTHEADER_THREAD");
    has_thread_option_ = thread == nullptr || strcmp(thread, "0") != 0;
    signature_.store(static_cast<std::uint32_t>(ObjectPlace() & 0x3FFFFFFF) | 0x40000000,
                     std::memory_order_relaxed);
  }
  return 0;
}

// Starts the helper thread with all signals blocked. Returns 0 or an errno.
int RingTransport::StartThread() noexcept {
  if (!wake_read_.IsOurs() && !MakeWakePipe()) return EMFILE;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::max<std::size_t>(kThreadStack, PTHREAD_STACK_MIN));
  int error = pthread_create(&thread_, &attributes, &RunThread, this);
  // The stack also holds the thread-local variables of the program, which may need more than
  // kThreadStack.
  if (error == EINVAL) error = pthread_create(&thread_, nullptr, &RunThread, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  has_thread_ = error == 0;
  if (error != 0) {
    wake_read_.Close();
    wake_write_.Close();
  }
  return error;
}

bool RingTransport::MakeWakePipe() noexcept {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  const bool has_read = wake_read_.Adopt(ends[0]);
  const bool has_write = wake_write_.Adopt(ends[1]);
  return has_read && has_write;
}

// Finds or adds the set of a tracepoint. Returns 0 or an errno.
int RingTransport::FindSet(std::string_view name, std::uint32_t* set) noexcept {
  if (name.size() >= ring::kNameBytes) return ENAMETOOLONG;
  for (std::uint32_t i = 0; i < set_count_; ++i) {
    if (name == sets_[i].name) {
      *set = i;
      return 0;
    }
  }
  if (set_count_ == ring::kMaxSets) return EMFILE;
  if (ring_memory.exists()) {
    if (const int error = ring_memory.AddName(set_count_, name)) return error;
  }
  name.copy(sets_[set_count_].name, name.size());
  *set = set_count_++;
  return 0;
}

bool RingTransport::AddRegistration(const Registration& registration) noexcept {
  if (registration_count_ == registration_room_) {
    const std::size_t room = registration_room_ == 0 ? 256 : 2 * registration_room_;
    auto* const larger = static_cast<Registration*>(MapPrivate(room * sizeof(Registration)));
    if (larger == nullptr) return false;
    std::copy_n(registrations_, registration_count_, larger);
    if (registrations_ != nullptr) {
      munmap(registrations_, registration_room_ * sizeof(Registration));
    }
    registrations_ = larger;
    registration_room_ = room;
  }
  registrations_[registration_count_++] = registration;
  return true;
}

void RingTransport::SetAll(bool on) noexcept {
  for (std::size_t i = 0; i < registration_count_; ++i) {
    SetBit(registrations_[i].word, registrations_[i].bit, on);
  }
}

// Runs a step of the helper thread. Returns the time until the next step in ms; -1: wait until a
// descriptor is readable.
int RingTransport::StepLocked() noexcept {
  if (!wake_read_.IsOurs() || !wake_write_.IsOurs()) {
    // The program has closed descriptors of the library, and other files may have their numbers.
    wake_read_.Close();
    wake_write_.Close();
    link_.Forget();
    if (!MakeWakePipe()) return 1000;
  }
  return link_.Step(true);
}

// Handles an event for which there is no region. In the child of a fork, tries to start the helper
// thread and returns ECANCELED; else returns EBADF.
[[gnu::cold, gnu::noinline]] int RingTransport::WriteUnconnected() noexcept {
  if (!is_armed_.load(std::memory_order_relaxed)) return EBADF;
  const ErrnoKeeper keeper;
  // Starting a thread allocates memory, which a signal handler must not do. Two conditions show
  // that this code may run in a handler: it runs on an alternate signal stack, or more signals are
  // blocked than at the fork.
  sigset_t now;
  stack_t stack{};
  if (!mutex_.try_lock()) return ECANCELED;
  const bool may_start = pthread_sigmask(SIG_SETMASK, nullptr, &now) == 0 &&
                         !BlocksMore(now, fork_mask_) && sigaltstack(nullptr, &stack) == 0 &&
                         (stack.ss_flags & SS_ONSTACK) == 0;
  const bool gives_up = attempts_.fetch_add(1, std::memory_order_relaxed) >= kMaxAttempts;
  if ((may_start && is_armed_.load(std::memory_order_relaxed)) || gives_up) {
    is_armed_.store(false, std::memory_order_relaxed);
    SetAll(false);
    if (!gives_up) static_cast<void>(StartThread());
  }
  mutex_.unlock();
  return ECANCELED;
}

void RingTransport::Run() noexcept {
  pthread_setname_np(pthread_self(), "eventheader");
  for (;;) {
    pollfd waits[3];
    int timeout = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;
      timeout = StepLocked();
      waits[0] = {wake_read_.fd(), POLLIN, 0};
      waits[1] = {link_.descriptor(), link_.events(), 0};
      waits[2] = {link_.bell(), POLLIN, 0};
    }
    poll(waits, 3, timeout);
  }
}

void* RingTransport::RunThread(void* transport) noexcept {
  static_cast<RingTransport*>(transport)->Run();
  return nullptr;
}

}  // namespace eh::internal
