// The kernel's user_events ABI (Linux 6.4 and newer), and functions that find tracefs and call
// user_events. Distributions often lack <linux/user_events.h>. The library's transport, the
// collector and the command-line tools use this header to register tracepoints.
#ifndef LIBEVENTHEADER_BASE_USER_EVENTS_H_
#define LIBEVENTHEADER_BASE_USER_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace eh::internal::user_events {

struct [[gnu::packed]] Reg {
  std::uint32_t size;
  std::uint8_t enable_bit;
  std::uint8_t enable_size;  // size of the enable word, in bytes: 4 or 8
  std::uint16_t flags;
  std::uint64_t enable_addr;
  std::uint64_t name_args;
  std::uint32_t write_index;  // set by the kernel
};
static_assert(sizeof(Reg) == 28);

struct [[gnu::packed]] Unreg {
  std::uint32_t size;
  std::uint8_t disable_bit;
  std::uint8_t reserved;
  std::uint16_t reserved2;
  std::uint64_t disable_addr;
};
static_assert(sizeof(Unreg) == 16);

inline constexpr unsigned long kIocReg = 0xC0082A00;
inline constexpr unsigned long kIocDel = 0x40082A01;
inline constexpr unsigned long kIocUnreg = 0x40082A02;

// Flag of a registration: the kernel keeps the event after its last user exits. Needs CAP_PERFMON,
// else the errno is EPERM.
inline constexpr std::uint16_t kFlagPersist = 1;
// Maximum bytes of a registration command, including its terminator.
inline constexpr std::size_t kMaxCommand = 512;

// Finds the mount point of tracefs (in the two usual folders, then in /proc/self/mountinfo) and
// writes `<mount>/<file>`, NUL-terminated, to `path`. Returns 0 or an errno: ENOENT if no tracefs
// is mounted, ENAMETOOLONG if `path` is too short, or the errno of opening /proc/self/mountinfo.
// Does not check that the file exists. Thread-safe, but not async-signal-safe. Does not allocate.
int FindTracefsFile(std::string_view file, std::span<char> path) noexcept;

// Returns whether the kernel has user_events. Needs no permission to read tracefs. Returns false if
// /proc is not mounted.
bool IsInKernel() noexcept;

// Opens user_events_data for writing, with O_CLOEXEC. Returns a descriptor, or a negative errno,
// for example -ENOENT without tracefs or user_events, or -EACCES without permission.
int OpenData() noexcept;

// Registers `command` ("Name fields…", NUL-terminated). The kernel keeps bit `enable_bit` of
// `*enable_word` set while the event is enabled. The word is 8 bytes, 8-byte aligned, and must stay
// valid until Unregister() or exit. `flags` is 0 or kFlagPersist. Returns 0 or an errno. On
// success, stores in `*write_index` the number that every write must begin with.
int Register(int data_fd, const char* command, std::uint64_t* enable_word, unsigned enable_bit,
             std::uint16_t flags, std::uint32_t* write_index) noexcept;
// Ends the registration of the bit; afterwards, the kernel does not change it. Returns 0 or an
// errno.
int Unregister(int data_fd, std::uint64_t* enable_word, unsigned enable_bit) noexcept;
// Deletes a persistent event. Returns 0 or an errno, for example EBUSY while it is in use, or
// ENOENT if it does not exist.
int Delete(int data_fd, const char* name) noexcept;

// Writes "<name> <the EventHeader fields>", NUL-terminated, to `buffer`. Returns false if it does
// not fit; kMaxCommand bytes are enough for any valid name.
bool FormatCommand(std::string_view name, std::span<char> buffer) noexcept;

}  // namespace eh::internal::user_events

#endif  // LIBEVENTHEADER_BASE_USER_EVENTS_H_
