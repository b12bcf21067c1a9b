// The connection of a service to the collector: finds the socket, sends the region (shared memory:
// ring_layout.h), and handles the collector's messages.
#ifndef LIBEVENTHEADER_PROVIDER_RING_LINK_H_
#define LIBEVENTHEADER_PROVIDER_RING_LINK_H_

#include <sys/un.h>

#include <cstddef>
#include <cstdint>

#include "libeventheader/base/ring_layout.h"
#include "libeventheader/provider/own_descriptor.h"
#include "libeventheader/provider/ring_sender.h"

namespace eh::internal {

// The callbacks of a RingLink. RingLink::Step() calls them; RingLink::Forget() and Finish() call
// Disconnected.
class RingLinkUser {
 public:
  // Creates the region, before RingLink sends it, if it does not exist or the program has closed
  // its descriptor. Returns 0 or an errno.
  virtual int PrepareRegion() noexcept = 0;
  // Called when the region has been sent to the collector, which may not have received it yet. The
  // connection lasts until Disconnected is called.
  virtual void Greeted() noexcept = 0;
  // Called when the collector has accepted the region. `chunks` is the number of chunks that the
  // collector permits.
  virtual void Connected(std::uint64_t chunks) noexcept = 0;
  virtual void Disconnected() noexcept = 0;
  virtual void EnableWordsChanged() noexcept = 0;
  // Returns whether one of the sets is enabled.
  virtual bool AnyIsEnabled() const noexcept = 0;

 protected:
  ~RingLinkUser() = default;
};

// A connection to the collector. Only Finish() blocks. The connection is inline
// (ring::InlineReason) if the region or its descriptor cannot be shared. An inline connection sends
// the events in Step(). Not thread-safe: the transport's lock guards it.
class RingLink {
 public:
  enum class State : std::uint8_t { kWaiting, kGreeting, kConnected };

  constexpr explicit RingLink(RingLinkUser* user) noexcept : user_(user) {}

  // Reads the paths of the sockets from the environment. Later calls do nothing.
  void Prepare() noexcept;
  // Connects, or handles the messages that have arrived. Returns the time in ms after which the
  // caller must call Step() again; -1: only when descriptor() or bell() is ready. Without a
  // connection, if `watches` is true, descriptor() is ready when the folder of a socket changes; if
  // it is false, Step() tries to connect each second.
  int Step(bool watches) noexcept;
  // Return the descriptor that the caller must poll (-1: none), and the events of poll() for it.
  int descriptor() const noexcept;
  short events() const noexcept;
  // Returns a descriptor that is readable when an inline connection has chunks to send; -1: none.
  int bell() const noexcept { return bell_.IsOurs() ? bell_.fd() : -1; }
  // Sends a message if there is a connection. The message is lost if the queue of the socket is
  // full, unless the connection is inline: Step() then sends it later, after all events so far.
  void Send(ring::MessageType type, std::uint64_t value) noexcept;
  // Makes later connections inline, and stores the reason and its errno or 0.
  void UseInline(ring::InlineReason reason, int error) noexcept;
  // Sends the remaining events of an inline connection and the message End, before the process
  // ends. Blocks for at most 10 s, and gives up earlier if the collector takes no data for 1 s. If
  // it gives up, tries to send the counts of the events, and End. Calls Disconnected first, so that
  // no set is enabled. Afterwards, Step() does nothing until Close().
  void Finish() noexcept;
  // Ends the connection after the program has closed its descriptors. Does not close a number that
  // may belong to another file now.
  void Forget() noexcept;
  // Ends the connection and closes the descriptors, without a call of Disconnected.
  void Close() noexcept;

  State state() const noexcept { return state_; }
  const OwnDescriptor& socket() const noexcept { return socket_; }
  // Return why the connection is inline (kNone: it is not inline), and the errno that is the cause
  // (0: none).
  ring::InlineReason inline_reason() const noexcept { return inline_reason_; }
  int inline_error() const noexcept { return inline_error_; }
  // Returns the errno of the last attempt to connect, or ECONNREFUSED if the collector refused the
  // region. Returns 0 if the attempt succeeded, or if there was none.
  int error() const noexcept { return error_; }
  // Returns the reason for which the collector refused the region (ring::RefuseReason); 0: not
  // refused.
  std::uint64_t refused() const noexcept { return refused_; }
  // Returns the path of the connection, or of the last attempt to connect.
  const char* path() const noexcept { return paths_[path_]; }
  const char* first_path() const noexcept { return paths_[0]; }
  const char* other_path() const noexcept { return paths_[1]; }

 private:
  static constexpr std::size_t kPathBytes = sizeof(sockaddr_un::sun_path);
  static constexpr std::size_t kTypes = static_cast<std::size_t>(ring::MessageType::kEnd) + 1;

  void Receive() noexcept;
  bool Handle(const ring::Message& message, std::size_t payload) noexcept;
  void TryConnect() noexcept;
  int Connect(const char* path) noexcept;
  int Greet() noexcept;
  bool GreetWithRegion() noexcept;
  int GreetInline() noexcept;
  bool HasBell() const noexcept;
  void SetBell() noexcept;
  bool CanPump() const noexcept;
  int PumpInline() noexcept;
  bool Pump() noexcept;
  bool SendMessage(ring::MessageType type, std::uint64_t value) noexcept;
  void IgnoreMessages() noexcept;
  void SendRest() noexcept;
  void EndInline() noexcept;
  void Drop() noexcept;
  void Watch() noexcept;
  void WatchFolderOf(int inotify, const char* path) noexcept;

  RingLinkUser* user_;
  State state_ = State::kWaiting;
  bool is_prepared_ = false;
  bool is_finished_ = false;
  char paths_[2][kPathBytes] = {};
  std::size_t path_ = 0;
  OwnDescriptor socket_;
  OwnDescriptor inotify_;
  RingSender sender_;     // started if the connection is inline
  OwnDescriptor bell_;    // of an inline connection: receives the message Full from writers
  bool is_full_ = false;  // the queue of the socket is full
  // Messages that wait for a round of the sender: their types as bits, and their values by type.
  std::uint32_t queued_ = 0;
  std::uint64_t queued_values_[kTypes] = {};
  int rounds_ = 0;  // rounds of the sender to complete before the queued messages are sent
  int ticks_ = 0;   // rounds that are still sent at intervals after all sets were disabled
  ring::InlineReason inline_reason_ = ring::InlineReason::kNone;
  int inline_error_ = 0;
  int error_ = 0;
  std::uint64_t refused_ = 0;
  // Attempts to connect since the last connection or change of a folder.
  int attempts_ = 0;
  // Time of the next attempt to connect, in ms of CLOCK_MONOTONIC. 0: now; the maximum: when a
  // folder changes.
  std::uint64_t next_time_ = 0;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_RING_LINK_H_
