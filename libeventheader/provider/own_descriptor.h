// Descriptors of the library in a program that may close all descriptors and reuse their numbers.
#ifndef LIBEVENTHEADER_PROVIDER_OWN_DESCRIPTOR_H_
#define LIBEVENTHEADER_PROVIDER_OWN_DESCRIPTOR_H_

#include <sys/types.h>

#include <cstdint>

namespace eh::internal {

// Returns the position of this program or shared object in memory, in pages.
std::uint64_t ObjectPlace() noexcept;

// Returns whether this code is in a shared object. A program keeps its descriptors and threads
// until it exits, because other threads may still write events. A shared object must release them
// when it is unloaded.
bool IsInSharedObject() noexcept;

// Moves `fd` to a number that other code does not normally get, and returns the new number. This is
// a number just above the soft limit, which no open or dup returns unless the limit is raised. If
// that is not possible, it is a high number. The number depends on the object's position, so that
// different objects use different numbers.
int MoveAway(int fd) noexcept;

// A descriptor of a socket or pipe, which its device and inode identify. Not thread-safe.
class OwnDescriptor {
 public:
  constexpr OwnDescriptor() noexcept = default;
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  // Takes `fd`, moves it away and remembers its identity. Returns false, and closes `fd`, if this
  // is not possible.
  bool Adopt(int fd) noexcept;
  // Returns whether the number still belongs to the adopted file.
  bool IsOurs() const noexcept;
  // Closes the descriptor if it is still ours, and forgets it.
  void Close() noexcept;
  // Forgets the descriptor without closing it: its number may belong to another file.
  void Abandon() noexcept { fd_ = -1; }
  int fd() const noexcept { return fd_; }

 private:
  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_OWN_DESCRIPTOR_H_
