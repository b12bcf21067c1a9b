#include "eventheader/activity.h"

#include <pthread.h>
#include <sys/random.h>

#include <atomic>
#include <cstring>
#include <ctime>
#include <span>
#include <utility>

#include "libeventheader/base/errno_keeper.h"
#include "libeventheader/base/hex.h"

namespace eh {
namespace {

using internal::PutHex;
using internal::ReadHex;

// A random number that distinguishes the ids of this process from those of other processes. 0 until
// DrawKey draws it. A fork sets it to 0 in the child.
constinit std::atomic<std::uint64_t> process_key{0};
constinit pthread_once_t handles_forks = PTHREAD_ONCE_INIT;
constinit std::atomic<std::uint64_t> sequence{1};

constinit thread_local std::optional<ActivityId> current_activity;

// A bijection of 64 bits that makes consecutive numbers look unrelated. The constants are those of
// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
std::uint64_t Mix(std::uint64_t value) noexcept {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

std::uint64_t DrawKey() noexcept {
  const internal::ErrnoKeeper keeper;
  pthread_once(&handles_forks, [] {
    pthread_atfork(nullptr, nullptr, [] { process_key.store(0, std::memory_order_relaxed); });
  });
  std::uint64_t key = 0;
  if (getrandom(&key, sizeof(key), GRND_NONBLOCK) != sizeof(key) || key == 0) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    key = Mix(static_cast<std::uint64_t>(now.tv_nsec) ^ reinterpret_cast<std::uintptr_t>(&now)) | 1;
  }
  std::uint64_t before = 0;
  return process_key.compare_exchange_strong(before, key) ? key : before;
}

std::uint64_t ProcessKey() noexcept {
  const std::uint64_t key = process_key.load(std::memory_order_relaxed);
  return key != 0 ? key : DrawKey();
}

std::uint64_t NextNumber() noexcept { return sequence.fetch_add(1, std::memory_order_relaxed); }

// Returns 64 bits that do not repeat in this process and look random.
std::uint64_t NextRandom() noexcept { return Mix(ProcessKey() + NextNumber()); }

// Returns 64 bits that are the same for all ids of this process and look random.
std::uint64_t ProcessBits() noexcept { return Mix(~ProcessKey()); }

// An activity path, as .NET's EventSource makes and PerfView requires. In a GUID of four
// little-endian words, the first three hold a list of numbers, and the last is their sum plus a
// constant.
//
// The list begins at the first byte, high nibble first. Nibbles 1 to 10 are numbers. Nibbles 12 to
// 15 announce that a number of 1 to 4 bytes follows the current byte. Nibble 0 ends the list. The
// bits after the end may have any value.
constexpr std::uint32_t kFourBytesFollow = 0xF0;
constexpr std::uint32_t kPathConstant = 0x599D99AD;

// Stores `size` bytes of `value`, the most significant byte first.
std::byte* PutBigEndian(std::byte* out, std::uint32_t value, int size) noexcept {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
    *out++ = std::byte(value >> shift & 0xFF);
  return out;
}

// Returns the UUID bytes of a GUID that is given as little-endian words. In a UUID, the first three
// parts of the GUID are big-endian.
ActivityId ToUuid(const std::uint32_t (&words)[4]) noexcept {
  ActivityId id;
  std::byte* out = PutBigEndian(id.data(), words[0], 4);
  out = PutBigEndian(out, words[1] & 0xFFFF, 2);
  out = PutBigEndian(out, words[1] >> 16, 2);
  for (const std::uint32_t word : {words[2], words[3]}) {
    for (int shift = 0; shift < 32; shift += 8) *out++ = std::byte(word >> shift & 0xFF);
  }
  return id;
}

}  // namespace

ActivityId NewActivityId() noexcept {
  const std::uint64_t number = NextNumber();
  // The id has 32 bits for the number, so the rest of a larger number is added to the bits of the
  // process. The id contains the lowest 52 bits of this sum.
  const std::uint64_t process = ProcessBits() + (number >> 32);
  std::uint32_t words[4] = {};
  words[0] = kFourBytesFollow | static_cast<std::uint32_t>(number << 8);
  words[1] = static_cast<std::uint32_t>((number >> 24 & 0xFF) | (process & 0xF) << 8 |
                                        (process >> 4 & 0xFFFF) << 16);
  words[2] = static_cast<std::uint32_t>(process >> 20);
  words[3] = words[0] + words[1] + words[2] + kPathConstant;
  return ToUuid(words);
}

const std::optional<ActivityId>& CurrentActivity() noexcept { return current_activity; }

std::optional<ActivityId> SetCurrentActivity(const std::optional<ActivityId>& id) noexcept {
  return std::exchange(current_activity, id);
}

std::optional<TraceContext> TraceContext::Parse(std::string_view text) noexcept {
  std::uint8_t version = 0;
  TraceContext context;
  if (text.size() < kTextSize || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
      !ReadHex(text.substr(0, 2), std::as_writable_bytes(std::span(&version, 1))) ||
      version == 0xFF || !ReadHex(text.substr(3, 32), context.trace_id) ||
      !ReadHex(text.substr(36, 16), context.parent_id) ||
      !ReadHex(text.substr(53, 2), std::as_writable_bytes(std::span(&context.flags, 1)))) {
    return std::nullopt;
  }
  // Later versions of the header may have more text after another dash.
  if (text.size() > kTextSize && (version == 0 || text[kTextSize] != '-')) return std::nullopt;
  if (context.trace_id == decltype(context.trace_id){} ||
      context.parent_id == decltype(context.parent_id){}) {
    return std::nullopt;
  }
  return context;
}

std::array<char, TraceContext::kTextSize> TraceContext::Format() const noexcept {
  std::array<char, kTextSize> text;
  char* out = text.data();
  *out++ = '0';
  *out++ = '0';
  *out++ = '-';
  out = PutHex(out, trace_id);
  *out++ = '-';
  out = PutHex(out, parent_id);
  *out++ = '-';
  const std::uint8_t known = flags & kSampled;
  PutHex(out, std::as_bytes(std::span(&known, 1)));
  return text;
}

TraceContext TraceContext::NewChild() const noexcept {
  TraceContext child = *this;
  std::uint64_t id = 0;
  while (id == 0) id = NextRandom();
  std::memcpy(child.parent_id.data(), &id, sizeof(id));
  return child;
}

TraceContext TraceContext::New() noexcept {
  TraceContext root;
  // Samplers take their decisions from bits of the trace id, so all bits must look random.
  const std::uint64_t halves[2] = {ProcessBits(), NextRandom()};
  std::memcpy(root.trace_id.data(), halves, sizeof(halves));
  root.flags = kSampled;
  return root.NewChild();
}

IdText<32> TraceContext::TraceIdText() const noexcept {
  IdText<32> text;
  PutHex(text.data(), trace_id);
  return text;
}

IdText<16> TraceContext::SpanIdText() const noexcept {
  IdText<16> text;
  PutHex(text.data(), parent_id);
  return text;
}

}  // namespace eh
