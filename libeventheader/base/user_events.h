// The kernel's user_events ABI (Linux 6.4 and newer), carried here because distributions often lack
// <linux/user_events.h>. For what registers tracepoints itself: the library's transport, the
// collector and the command-line tools.
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
  std::uint8_t enable_size;  // 4 or 8
  std::uint16_t flags;
  std::uint64_t enable_addr;
  std::uint64_t name_args;
  std::uint32_t write_index;  // out
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

inline constexpr std::uint16_t kFlagPersist = 1;  // needs CAP_PERFMON, else EPERM
// Maximum length of a registration command, in bytes, with its terminator.
inline constexpr std::size_t kMaxCommand = 512;

// Finds where tracefs is mounted (the usual places, then /proc/self/mountinfo) and writes
// `<mount>/<file>` NUL-terminated to `path`. Returns 0 or an errno: ENOENT when no tracefs is
// mounted, ENAMETOOLONG. Async-signal-unsafe, thread-safe, does not allocate.
int FindTracefsFile(std::string_view file, std::span<char> path) noexcept;

// Opens user_events_data for writing, O_CLOEXEC. Returns a descriptor >= 0 or a negative errno:
// -ENOENT no tracefs or a kernel without user_events, -EACCES no permission.
int OpenData() noexcept;

// Registers `command` ("Name fields…", NUL-terminated). Bit `enable_bit` of `*enable_word` (8
// bytes, 8-byte aligned, must stay valid until Unregister or exit) follows whether the
// event is enabled. Returns 0 or an errno; on success `*write_index` is what every write starts
// with.
int Register(int data_fd, const char* command, std::uint64_t* enable_word, unsigned enable_bit,
             std::uint16_t flags, std::uint32_t* write_index) noexcept;
int Unregister(int data_fd, std::uint64_t* enable_word, unsigned enable_bit) noexcept;
// Deletes a persistent event. Returns 0 or an errno: EBUSY while it is in use.
int Delete(int data_fd, const char* name) noexcept;

// Writes "<name> <the EventHeader fields>" NUL-terminated to `buffer`; returns false if it does not
// fit (kMaxCommand is always enough for a valid name).
bool FormatCommand(std::string_view name, std::span<char> buffer) noexcept;

}  // namespace eh::internal::user_events

#endif  // LIBEVENTHEADER_BASE_USER_EVENTS_H_
