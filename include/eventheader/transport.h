// Where events go: a transport takes tracepoint names and bytes. The kernel's user_events in
// production, RecordingTransport (recording_transport.h) in tests.
#ifndef EVENTHEADER_TRANSPORT_H_
#define EVENTHEADER_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace eh {

// Space in front of an event, for the transport's own use.
inline constexpr std::size_t kRecordPrefix = 4;

// All functions are thread-safe and keep errno. Errors are errno values.
class Transport {
 public:
  // Makes tracepoint `name` (NUL-terminated) known. From then until Unregister the transport keeps
  // `bit` of `*enable_word` set while somebody listens; the word must stay valid as long. Returns
  // 0, and the handle to write with, or an errno.
  virtual int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
                       std::uint64_t* handle) noexcept = 0;
  virtual void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept = 0;

  // Whether a handle can still be written with; if not, its tracepoint is to be registered anew.
  virtual bool IsCurrent(std::uint64_t handle) noexcept = 0;

  // Delivers an event: `record` is kRecordPrefix bytes that the transport overwrites, then the
  // event. Returns 0 or an errno: EBADF when nobody listens any more. Async-signal-safe.
  virtual int Write(std::uint64_t handle, std::span<std::byte> record) noexcept = 0;

 protected:
  ~Transport() = default;
};

// The kernel's user_events. One descriptor for the whole process (each shared object that links the
// library statically has its own): O_CLOEXEC, opened with the first registration and, where limits
// allow, numbered above the soft RLIMIT_NOFILE, where no other file can get once it is closed.
//
// A program may close every descriptor it has and reuse the numbers. So that no event goes into
// somebody else's file, the descriptor is compared with what was opened (fstat: device, inode;
// F_GETSIG: a mark, for there may be other shared objects' descriptors of the same file) before a
// write, at most once in about 0.1 ms and always first after a fork. Exactly that is
// guaranteed: an event can reach another file only if, within 0.1 ms after such a check, the
// descriptor was closed *and* its number reused - for which the program must raise its soft
// RLIMIT_NOFILE as well, when it was not yet at the hard limit. Once the check has failed, nothing
// is written (EBADF) until a provider's Retry() opens user_events anew.
Transport& UserEventsTransport() noexcept;

}  // namespace eh

#endif  // EVENTHEADER_TRANSPORT_H_
