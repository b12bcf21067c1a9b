#include "libeventheader/base/user_events.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "eventheader/wire.h"
#include "libeventheader/base/errno_keeper.h"

namespace eh::internal::user_events {
namespace {

constexpr char kMountInfo[] = "/proc/self/mountinfo";
constexpr std::size_t kMaxPath = 4096;

int Join(std::string_view folder, std::string_view file, std::span<char> path) noexcept {
  if (folder.size() + 1 + file.size() + 1 > path.size()) return ENAMETOOLONG;
  char* out = std::copy(folder.begin(), folder.end(), path.data());
  *out++ = '/';
  out = std::copy(file.begin(), file.end(), out);
  *out = '\0';
  return 0;
}

std::string_view NextWord(std::string_view* line) noexcept {
  const std::size_t end = std::min(line->find(' '), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(std::min(end + 1, line->size()));
  return word;
}

// Copies `text` to `out`, and decodes \ooo, which mountinfo writes for space, tab, newline and
// backslash. Returns the length.
std::size_t Unescape(std::string_view text, std::span<char> out) noexcept {
  std::size_t length = 0;
  for (std::size_t i = 0; i < text.size() && length < out.size(); ++i) {
    if (text[i] == '\\' && text.size() - i > 3) {
      out[length++] = static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                        (text[i + 3] - '0'));
      i += 3;
    } else {
      out[length++] = text[i];
    }
  }
  return length;
}

// Returns the mount point if the line of mountinfo describes a mount of the root of a tracefs.
// Returns "" for all other lines.
std::string_view TracefsMount(std::string_view line) noexcept {
  for (int i = 0; i < 3; ++i) NextWord(&line);  // skips the ids and the device
  const std::string_view root = NextWord(&line);
  const std::string_view mount_point = NextWord(&line);
  const std::size_t separator = line.find(" - ");
  if (separator == std::string_view::npos || root != "/") return {};
  line.remove_prefix(separator + 3);
  return NextWord(&line) == "tracefs" ? mount_point : std::string_view();
}

int FindInMountInfo(std::string_view file, std::span<char> path) noexcept {
  const int fd = open(kMountInfo, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char buffer[kMaxPath * 2];
  std::size_t used = 0;
  bool skipping = false;  // true within a line that is longer than the buffer
  int result = ENOENT;
  for (;;) {
    const ssize_t got = read(fd, buffer + used, sizeof(buffer) - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<std::size_t>(got);
    std::string_view rest(buffer, used);
    for (std::size_t end; result == ENOENT && (end = rest.find('\n')) != std::string_view::npos;) {
      const std::string_view mount = skipping ? "" : TracefsMount(rest.substr(0, end));
      skipping = false;
      rest.remove_prefix(end + 1);
      if (mount.empty()) continue;
      char folder[kMaxPath];
      result = Join({folder, Unescape(mount, folder)}, file, path);
    }
    if (result != ENOENT) break;
    if (rest.size() == sizeof(buffer)) {
      skipping = true;
      rest = {};
    }
    std::memmove(buffer, rest.data(), rest.size());
    used = rest.size();
  }
  close(fd);
  return result;
}

}  // namespace

int FindTracefsFile(std::string_view file, std::span<char> path) noexcept {
  const ErrnoKeeper keeper;
  for (std::string_view mount : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    // Checks for a file of tracefs, because the folder itself exists, but is empty, if tracefs is
    // not mounted.
    if (const int error = Join(mount, "trace_marker", path)) return error;
    if (access(path.data(), F_OK) == 0 || errno == EACCES) return Join(mount, file, path);
  }
  return FindInMountInfo(file, path);
}

bool IsInKernel() noexcept {
  const ErrnoKeeper keeper;
  return access("/proc/sys/kernel/user_events_max", F_OK) == 0;
}

int OpenData() noexcept {
  const ErrnoKeeper keeper;
  char path[kMaxPath];
  if (const int error = FindTracefsFile("user_events_data", path)) return -error;
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd >= 0 ? fd : -errno;
}

int Register(int data_fd, const char* command, std::uint64_t* enable_word, unsigned enable_bit,
             std::uint16_t flags, std::uint32_t* write_index) noexcept {
  const ErrnoKeeper keeper;
  Reg reg{};
  reg.size = sizeof(reg);
  reg.enable_bit = static_cast<std::uint8_t>(enable_bit);
  reg.enable_size = sizeof(*enable_word);
  reg.flags = flags;
  reg.enable_addr = reinterpret_cast<std::uintptr_t>(enable_word);
  reg.name_args = reinterpret_cast<std::uintptr_t>(command);
  if (ioctl(data_fd, kIocReg, &reg) < 0) return errno;
  *write_index = reg.write_index;
  return 0;
}

int Unregister(int data_fd, std::uint64_t* enable_word, unsigned enable_bit) noexcept {
  const ErrnoKeeper keeper;
  Unreg unreg{};
  unreg.size = sizeof(unreg);
  unreg.disable_bit = static_cast<std::uint8_t>(enable_bit);
  unreg.disable_addr = reinterpret_cast<std::uintptr_t>(enable_word);
  return ioctl(data_fd, kIocUnreg, &unreg) < 0 ? errno : 0;
}

int Delete(int data_fd, const char* name) noexcept {
  const ErrnoKeeper keeper;
  return ioctl(data_fd, kIocDel, name) < 0 ? errno : 0;
}

bool FormatCommand(std::string_view name, std::span<char> buffer) noexcept {
  if (name.size() + 1 + sizeof(kTracepointFields) > std::min(buffer.size(), kMaxCommand)) {
    return false;
  }
  char* out = std::copy(name.begin(), name.end(), buffer.data());
  *out++ = ' ';
  std::copy(std::begin(kTracepointFields), std::end(kTracepointFields), out);
  return true;
}

}  // namespace eh::internal::user_events
