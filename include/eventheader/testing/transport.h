// The interface between providers and what takes their events: tracepoint names and bytes. The
// library's is the kernel's user_events; tests put another in its place, such as RecordingTransport
// (recording_transport.h).
#ifndef EVENTHEADER_TESTING_TRANSPORT_H_
#define EVENTHEADER_TESTING_TRANSPORT_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <cstddef>
#include <cstdint>
#include <span>

#include "eventheader/eventheader_c.h"
#include "eventheader/provider.h"

namespace eh {

// All functions are thread-safe and keep errno. Errors are errno values.
class Transport {
 public:
  // Makes tracepoint `name` (NUL-terminated) known. From then until Unregister the transport keeps
  // `bit` of `*enable_word` set while the tracepoint is enabled; the word must stay valid as long.
  // Returns 0, and the handle to write with, or an errno.
  virtual int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
                       std::uint64_t* handle) noexcept = 0;
  virtual void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept = 0;

  // Whether a handle can still be written with; if not, its tracepoint is to be registered anew.
  virtual bool IsCurrent(std::uint64_t handle) noexcept = 0;

  // Delivers an event: `record` is kRecordPrefix bytes that the transport overwrites, then the
  // event. Returns 0 or an errno: EBADF when the tracepoint is no longer enabled.
  // Async-signal-safe.
  virtual int Write(std::uint64_t handle, std::span<std::byte> record) noexcept = 0;

 protected:
  ~Transport() = default;
  // Takes it from all providers that have event sets in this program or shared object, whose status
  // is EOWNERDEAD from then on: for the destructor of one that may be destroyed before they are.
  void Detach() noexcept;
};

// The provider of the C API, or of the macros of C (EVENTHEADER_PROVIDER), for SetTransport.
inline ProviderBase& ProviderOf(eh_provider* provider) noexcept {
  return *reinterpret_cast<ProviderBase*>(provider);
}

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_TESTING_TRANSPORT_H_
