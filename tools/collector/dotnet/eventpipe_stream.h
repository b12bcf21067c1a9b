// Reads the stream of events that a .NET process writes to its diagnostics connection.
//
// The stream is NetTrace V4 or V5 (EventPipe). Nothing here blocks. The process is untrusted: it
// may write anything, endlessly or not at all. Memory is bounded for each stream, and the caller
// bounds the bytes that each call may receive. A malformed stream ends, and reason() says why.
#ifndef TOOLS_COLLECTOR_DOTNET_EVENTPIPE_STREAM_H_
#define TOOLS_COLLECTOR_DOTNET_EVENTPIPE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nettrace/reader.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/dotnet/diagnostics_socket.h"

namespace collector {

// A connection to a process that has begun to write a stream.
struct EventPipeConnection {
  ProcessFacts process;
  std::string folder;         // folder of its diagnostics socket, in its root directory
  base::UniqueFd socket;      // non-blocking; the stream begins at its next byte
  std::uint64_t session = 0;  // id that the process gave to the session
};

// Not thread-safe.
class EventPipeStream {
 public:
  // Maximum estimated bytes of the descriptions of events, threads and stacks of a stream.
  static constexpr std::size_t kMaxTables = std::size_t{16} << 20;
  // Maximum bytes of a block. The runtime writes blocks of about 100 KB.
  static constexpr std::size_t kMaxBlock = std::size_t{1} << 20;

  enum class Step : std::uint8_t { kEvent, kSequencePoint, kWait, kEnd };

  explicit EventPipeStream(EventPipeConnection connection);
  EventPipeStream(const EventPipeStream&) = delete;
  EventPipeStream& operator=(const EventPipeStream&) = delete;
  ~EventPipeStream();

  const ProcessFacts& process() const { return process_; }
  // Lets the following calls of Next receive `bytes` in total.
  void Allow(std::size_t bytes);
  // Returns whether Next has received all bytes that were allowed, so that there may be more.
  bool has_more() const;
  // Moves to the next event or sequence point. Returns kWait if there is none yet.
  Step Next();
  // Returns the reader. If Next has returned kEvent, the reader is at the event. After
  // kSequencePoint, its sequence_point() states the lost events.
  const nettrace::Reader& reader() const { return *reader_; }

  // Asks the process to write its remaining events and to end the stream. Does nothing if it was
  // asked before. Returns false if it could not be asked; a later call may succeed.
  bool RequestStop();
  bool was_asked() const { return stopping_.valid(); }
  // After kEnd, returns why the stream could not be read to its end; "" if it could. If is_cut() is
  // set, the connection ended before the stream, for example because the process was killed.
  const std::string& reason() const { return reason_; }
  bool is_cut() const { return is_cut_; }

 private:
  class SocketSource;

  // Returns why the clock or the version of the stream cannot be used; "" if they can.
  std::string CheckStart() const;
  Step End(std::string reason);

  const ProcessFacts process_;
  const std::string folder_;
  const std::uint64_t session_;
  SocketSource* source_ = nullptr;  // owned by the reader
  std::unique_ptr<nettrace::Reader> reader_;
  base::UniqueFd stopping_;  // the connection with the request to stop
  bool is_checked_ = false;  // CheckStart has found no fault
  bool has_ended_ = false;
  bool is_cut_ = false;
  std::string reason_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_EVENTPIPE_STREAM_H_
