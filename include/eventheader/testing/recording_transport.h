// A transport that stores the events written to it, for tests of instrumented code without a
// kernel.
#ifndef EVENTHEADER_TESTING_RECORDING_TRANSPORT_H_
#define EVENTHEADER_TESTING_RECORDING_TRANSPORT_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventheader/testing/transport.h"

namespace eh {

// Replaces the kernel in tests. Enables every tracepoint that is registered, unless
// SetEnabled(false) was called. Thread-safe. Unlike in the library's transports, Write() allocates
// and locks. Providers that still use a destroyed RecordingTransport have no transport: their
// events are disabled, and their status is EOWNERDEAD until SetTransport() gives them another one.
class RecordingTransport final : public Transport {
 public:
  struct Record {
    std::string tracepoint;
    std::vector<std::byte> event;  // bytes of the event, which begin with its header
  };

  RecordingTransport() = default;
  ~RecordingTransport() { Detach(); }

  int Register(const char* name, std::uint64_t* enabled, unsigned bit,
               std::uint64_t* handle) noexcept override {
    const std::lock_guard lock(mutex_);
    if (register_error_ != 0) return register_error_;
    *handle = tracepoints_.size();
    tracepoints_.push_back({name, enabled, bit});
    Set(tracepoints_.back(), enabled_);
    return 0;
  }

  void Unregister(std::uint64_t* enabled, unsigned bit) noexcept override {
    const std::lock_guard lock(mutex_);
    for (Tracepoint& tracepoint : tracepoints_) {
      if (tracepoint.enabled != enabled || tracepoint.bit != bit) continue;
      Set(tracepoint, false);
      tracepoint.enabled = nullptr;
    }
  }

  bool IsCurrent(std::uint64_t handle) noexcept override {
    const std::lock_guard lock(mutex_);
    return handle < tracepoints_.size() && tracepoints_[IndexOf(handle)].enabled != nullptr;
  }

  int Write(std::uint64_t handle, std::span<std::byte> record) noexcept override {
    const std::lock_guard lock(mutex_);
    if (handle >= tracepoints_.size()) return ENOENT;
    if (write_error_ != 0) return write_error_;
    const auto event = record.subspan(kRecordPrefix);
    records_.push_back({tracepoints_[IndexOf(handle)].name, {event.begin(), event.end()}});
    return 0;
  }

  // Enables or disables all tracepoints, including those registered later.
  void SetEnabled(bool on) {
    const std::lock_guard lock(mutex_);
    enabled_ = on;
    for (const Tracepoint& tracepoint : tracepoints_) Set(tracepoint, on);
  }

  // Enables or disables the registered tracepoints with this name.
  void SetEnabled(bool on, std::string_view name) {
    const std::lock_guard lock(mutex_);
    for (const Tracepoint& tracepoint : tracepoints_) {
      if (tracepoint.name == name) Set(tracepoint, on);
    }
  }

  // Make all later registrations, or all later writes, fail with this errno; 0: let them succeed.
  void FailRegister(int error) { register_error_ = error; }
  void FailWrite(int error) { write_error_ = error; }

  // Returns the events written since the previous call of Take().
  std::vector<Record> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(records_, {});
  }

 private:
  struct Tracepoint {
    std::string name;
    std::uint64_t* enabled;
    unsigned bit;
  };

  static std::size_t IndexOf(std::uint64_t handle) { return static_cast<std::size_t>(handle); }

  static void Set(const Tracepoint& tracepoint, bool on) {
    if (tracepoint.enabled == nullptr) return;
    const std::atomic_ref<std::uint64_t> word(*tracepoint.enabled);
    const std::uint64_t mask = std::uint64_t{1} << tracepoint.bit;
    if (on) {
      word.fetch_or(mask);
    } else {
      word.fetch_and(~mask);
    }
  }

  std::mutex mutex_;
  std::vector<Tracepoint> tracepoints_;  // indexed by handle
  std::vector<Record> records_;
  bool enabled_ = true;
  std::atomic<int> register_error_ = 0;
  std::atomic<int> write_error_ = 0;
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_TESTING_RECORDING_TRANSPORT_H_
