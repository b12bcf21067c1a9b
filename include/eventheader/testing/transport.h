// The interface between providers and the receiver of their events. Providers pass tracepoint names
// and the bytes of events through it. The library has two transports: the kernel's user_events, and
// rings in user space. Tests replace them, e.g. with RecordingTransport (recording_transport.h).
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

// Receives events. All functions are thread-safe and do not change errno. Errors are errno values.
class Transport {
 public:
  // Registers tracepoint `name` (NUL-terminated). Until Unregister() is called, the transport sets
  // `bit` of `*enable_word` while the tracepoint is enabled, and clears it otherwise. The word must
  // stay valid for that time. Returns 0 and stores a handle for Write(), or returns an errno.
  virtual int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
                       std::uint64_t* handle) noexcept = 0;
  // Ends the registration of this bit. Afterwards, the transport does not change the bit.
  virtual void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept = 0;

  // Returns whether the handle is still valid for Write(). If not, its tracepoint must be
  // registered again.
  virtual bool IsCurrent(std::uint64_t handle) noexcept = 0;

  // Delivers an event. `record` is kRecordPrefix bytes that the transport overwrites, then the
  // event. Returns 0 or an errno: EBADF if the tracepoint is no longer enabled.
  // Async-signal-safe.
  virtual int Write(std::uint64_t handle, std::span<std::byte> record) noexcept = 0;

 protected:
  ~Transport() = default;
  // Removes this transport from all providers that have event sets in this program or shared
  // object. Their status is EOWNERDEAD from then on. Call it in the destructor of a transport that
  // may be destroyed before the providers.
  void Detach() noexcept;
};

// Converts a provider of the C API or of the C macros (EVENTHEADER_PROVIDER), so that tests can
// call SetTransport.
inline ProviderBase& ProviderOf(eh_provider* provider) noexcept {
  return *reinterpret_cast<ProviderBase*>(provider);
}

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_TESTING_TRANSPORT_H_
