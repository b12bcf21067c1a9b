#include "eventheader/user_events.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "eventheader/wire.h"

namespace eventheader::user_events {
namespace {

constexpr std::string_view kUsualMounts[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

// Writes `<directory>/<file>`; 0 if that exists, else an errno.
int TryDirectory(std::string_view directory, std::string_view file, std::span<char> path) noexcept {
  if (directory.size() + 1 + file.size() >= path.size()) return ENAMETOOLONG;
  char* out = path.data();
  std::memcpy(out, directory.data(), directory.size());
  out += directory.size();
  *out++ = '/';
  std::memcpy(out, file.data(), file.size());
  out[file.size()] = '\0';
  return access(path.data(), F_OK) == 0 ? 0 : errno;
}

// The mount point in a line of mountinfo if that mounts tracefs, with its escapes undone in place;
// else an empty view. The line: "id parent major:minor root mount options… - type source …".
std::string_view TracefsMountPoint(char* line) noexcept {
  const char* separator = std::strstr(line, " - ");
  if (separator == nullptr || std::strncmp(separator, " - tracefs ", 11) != 0) return {};
  char* mount = line;
  for (int field = 0; field < 4; ++field) {
    mount = std::strchr(mount, ' ');
    if (mount == nullptr) return {};
    ++mount;
  }
  const char* in = mount;
  char* out = mount;
  while (*in != '\0' && *in != ' ') {
    if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] != '\0' && in[3] != '\0') {
      *out++ = static_cast<char>((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
      in += 4;
    } else {
      *out++ = *in++;
    }
  }
  return {mount, static_cast<std::size_t>(out - mount)};
}

}  // namespace

int FindTracefsFile(std::string_view file, std::span<char> path) noexcept {
  int error = ENOENT;
  for (std::string_view directory : kUsualMounts) {
    error = TryDirectory(directory, file, path);
    // Not readable is an answer, too: it is there.
    if (error != ENOENT) return error == EACCES ? 0 : error;
  }
  FILE* mounts = std::fopen("/proc/self/mountinfo", "re");
  if (mounts == nullptr) return ENOENT;
  char line[4096];
  while (std::fgets(line, sizeof line, mounts) != nullptr) {
    const std::string_view mount = TracefsMountPoint(line);
    if (mount.empty()) continue;
    error = TryDirectory(mount, file, path);
    if (error != ENOENT) break;
  }
  std::fclose(mounts);
  return error == EACCES ? 0 : error;
}

int OpenData() noexcept {
  char path[4096];
  if (const int error = FindTracefsFile("user_events_data", path); error != 0) return -error;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  return fd >= 0 ? fd : -errno;
}

int Register(int data_fd, const char* command, std::uint64_t* enable_word, unsigned enable_bit,
             std::uint16_t flags, std::uint32_t* write_index) noexcept {
  Reg reg = {};
  reg.size = sizeof reg;
  reg.enable_bit = static_cast<std::uint8_t>(enable_bit);
  reg.enable_size = sizeof *enable_word;
  reg.flags = flags;
  reg.enable_addr = reinterpret_cast<std::uintptr_t>(enable_word);
  reg.name_args = reinterpret_cast<std::uintptr_t>(command);
  if (ioctl(data_fd, kIocReg, &reg) != 0) return errno;
  *write_index = reg.write_index;
  return 0;
}

int Unregister(int data_fd, std::uint64_t* enable_word, unsigned enable_bit) noexcept {
  Unreg unreg = {};
  unreg.size = sizeof unreg;
  unreg.disable_bit = static_cast<std::uint8_t>(enable_bit);
  unreg.disable_addr = reinterpret_cast<std::uintptr_t>(enable_word);
  return ioctl(data_fd, kIocUnreg, &unreg) == 0 ? 0 : errno;
}

int Delete(int data_fd, const char* name) noexcept {
  return ioctl(data_fd, kIocDel, name) == 0 ? 0 : errno;
}

bool FormatCommand(std::string_view name, std::span<char> buffer) noexcept {
  if (name.size() + 1 + sizeof kTracepointFields > buffer.size()) return false;
  std::memcpy(buffer.data(), name.data(), name.size());
  buffer[name.size()] = ' ';
  std::memcpy(buffer.data() + name.size() + 1, kTracepointFields, sizeof kTracepointFields);
  return true;
}

}  // namespace eventheader::user_events
