// File descriptors of the library that are safe in a program that may close all descriptors and
// reuse their numbers. Also facts about the program or shared object that contains the library.
#ifndef LIBEVENTHEADER_PROVIDER_OWN_DESCRIPTOR_H_
#define LIBEVENTHEADER_PROVIDER_OWN_DESCRIPTOR_H_

#include <sys/types.h>

#include <cstdint>

namespace eh::internal {

// Returns the address at which this program or shared object is loaded, in units of 4 KiB.
std::uint64_t ObjectPlace() noexcept;

// Returns whether this code is in a shared object, which must close its descriptors and end its
// threads when it is unloaded. A program keeps them until it exits, because other threads may still
// write events.
bool IsInSharedObject() noexcept;

// Moves `fd` to a number that other code does not normally get, and returns the new number. The
// number is just above the soft RLIMIT_NOFILE, so that no open or dup returns it unless the limit
// is raised. Its distance from the limit depends on ObjectPlace(), so that different shared objects
// use different numbers. If the soft limit cannot be exceeded or is at least 65,536, the number is
// about 100 below the smaller of the limit and 65,536. For a limit of up to 200, the number is at
// least half the limit. Returns `fd` itself if no such number is free. The new descriptor has
// O_CLOEXEC.
int MoveAway(int fd) noexcept;

// A descriptor of a socket, pipe, memfd or inotify. The class compares the device and inode of the
// file, and so notices if the program has closed the descriptor and reused its number. All inotify
// descriptors have the same inode, so the class cannot distinguish two of them. Not thread-safe.
class OwnDescriptor {
 public:
  constexpr OwnDescriptor() noexcept = default;
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  // Takes ownership of `fd`, moves it to another number (MoveAway), and stores its device and
  // inode. Returns false, and closes `fd`, if fstat fails.
  bool Adopt(int fd) noexcept;
  // Returns whether the number still belongs to the adopted file.
  bool IsOurs() const noexcept;
  // Closes the descriptor if IsOurs is true. Afterwards, this object has no descriptor.
  void Close() noexcept;
  // Forgets the descriptor without closing it, because its number may belong to another file.
  void Abandon() noexcept { fd_ = -1; }
  int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_OWN_DESCRIPTOR_H_
