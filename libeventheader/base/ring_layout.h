// The layout of the memory and of the messages by which a service passes events to the collector
// without user_events. docs/format/ring.md explains them.
//
// The service creates a sealed memfd, the region, and sends it to the collector. Both processes are
// on one machine, so all numbers have its byte order. Offsets are in bytes from the start of the
// region. The comment of each struct or field names the process that writes it; the other process
// only reads it. Each side checks what it reads, so that wrong values cannot cause accesses outside
// the region.
//
// A set is a tracepoint. A writer is the sequence of events of one thread or of its signal
// handlers. A chunk is memory for records of one writer at a time.
#ifndef LIBEVENTHEADER_BASE_RING_LAYOUT_H_
#define LIBEVENTHEADER_BASE_RING_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace eh::internal::ring {

inline constexpr char kMagic[8] = {'E', 'H', 'R', 'I', 'N', 'G', '1', '\n'};
inline constexpr std::uint32_t kVersion = 1;
// Values of Header::clock.
inline constexpr std::uint32_t kClockMonotonic = 1;  // ns of CLOCK_MONOTONIC

inline constexpr std::uint32_t kMaxSets = 4096;   // tracepoint names of a region
inline constexpr std::uint32_t kNameBytes = 256;  // bytes for each name, including its NUL
inline constexpr std::uint32_t kMaxWriters = 1024;
inline constexpr std::uint32_t kChunkBytes = 16 * 1024;
inline constexpr std::uint32_t kMaxChunks = 64 * 1024;
inline constexpr std::uint16_t kUnknownCpu = 0xFFFF;

// Describes the region, at its offset 0. The service writes it before it sends the region.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t header_bytes;  // sizeof(Header)
  std::uint64_t region_bytes;  // the size of the memfd
  std::uint32_t chunk_bytes;   // kChunkBytes
  std::uint32_t chunk_count;   // 1 to kMaxChunks
  std::uint32_t clock;         // clock of the timestamps: kClockMonotonic
  std::uint32_t pid;           // in the service's pid namespace; only a hint
  std::uint64_t created;       // time of creation, in ns of `clock`
  // Random bytes. When a service connects again, the collector recognizes the region by them.
  std::uint8_t id[16];
  // Offsets of the other parts, for readers that do not include this file. In version 1, they are
  // the constants kCollectorOffset to kChunksOffset.
  std::uint32_t collector_offset;
  std::uint32_t service_offset;
  std::uint32_t set_users_offset;
  std::uint32_t set_names_offset;
  std::uint32_t writers_offset;
  std::uint32_t controls_offset;
  std::uint32_t chunks_offset;
  std::uint32_t max_sets;
  std::uint32_t max_writers;
  std::uint32_t reserved;  // 0
};
static_assert(sizeof(Header) == 104);

// A page that only the collector writes. Exception: in an inline connection, each side has its own
// page; the service applies the collector's Patches to its page, and sets `bell_at` there.
struct CollectorPage {
  // The enable words: bit `set % 64` of word `set / 64` is 1 if the collector records the set. The
  // service reads them when it receives the message Enable, and when it registers a set. Relaxed
  // order.
  std::atomic<std::uint64_t> enable[kMaxSets / 64];
  // The service sends the message Full when ServicePage::completed becomes this number; 0: never.
  // Sequentially consistent, like `completed`: if `completed` reaches the number while the
  // collector stores it, the service sends Full, or the collector sees the new `completed`.
  std::atomic<std::uint64_t> bell_at;
  // The collector adds 1 (release order) after it has freed chunks, and also when it receives the
  // region. A change makes writers search for free chunks again.
  std::atomic<std::uint64_t> give_backs;
  // The part of ServicePage::lost_without_writer that the collector has counted in its files.
  // Relaxed order.
  std::atomic<std::uint64_t> accounted_without_writer;
  // Number of names in the set table that the collector has read. `enable` is valid for the sets
  // with smaller indices. Stored with release order after `enable`.
  std::atomic<std::uint32_t> sets_read;
};

// The service's counts. Only the service writes this page.
struct ServicePage {
  // Number of names in the set table: 0 to kMaxSets. Stored with release order after the names.
  std::atomic<std::uint32_t> set_count;
  // Number of chunks that have memory and may be used: 0 to Header::chunk_count. Only grows. Stored
  // with release order after the memory is allocated.
  std::atomic<std::uint32_t> usable_chunks;
  // Number of times that a chunk became kComplete. Sequentially consistent.
  std::atomic<std::uint64_t> completed;
  // The last ChunkControl::serial that the service has used. Acquire and release order. A reader
  // loads it before it searches for chunks, and ignores chunks with larger serials in this search.
  // Otherwise it could find a later chunk of a writer, but miss an earlier one at an index that it
  // has already checked.
  std::atomic<std::uint64_t> last_serial;
  // The last Writer::ordinal that the service has used. Relaxed order.
  std::atomic<std::uint64_t> last_ordinal;
  // Events lost because no free writer was found for their thread. They belong to no writer.
  // Relaxed order.
  std::atomic<std::uint64_t> lost_without_writer;
};

enum WriterState : std::uint32_t {
  // The initial state. The collector sets it again when it has read and counted all events of the
  // writer. The service sets it again if it has claimed a writer that it does not need.
  kWriterFree = 0,
  kWriterActive = 1,    // the fields are valid (release order)
  kWriterExited = 2,    // the thread has ended; the counts are final (release order)
  kWriterClaiming = 3,  // the service is writing the fields
};

// A thread's sequence of events. A signal handler that interrupts a write of its thread uses
// another writer, so that each writer's events are in order. Written by the service, except that
// the collector changes kWriterExited to kWriterFree, and writes `accounted` and
// `accounted_nested`.
//
// The written and the lost events of a writer are numbered from 0, except the events in
// lost_nested. The collector finds losses as gaps between numbers. `calls` is the number of the
// next event. If it is larger than the next number that the collector expects, the events between
// the two numbers were lost after the last event in the chunks.
struct Writer {
  static constexpr std::uint64_t kNoChunk = 0;
  static constexpr std::uint64_t kBusy = 1;  // the thread of the writer is writing a record
  static constexpr std::uint64_t kFirstChunk = 2;

  // kNoChunk, kBusy, or the index of the writer's chunk plus kFirstChunk. To write, the thread
  // exchanges the value for kBusy (acquire order), and stores the value again after the record
  // (release order). Another thread of the service may take an idle writer's chunk away by
  // compare-and-exchange.
  std::atomic<std::uint64_t> chunk;
  // Events written or lost, except those in lost_nested. Stored after the event is committed.
  std::atomic<std::uint64_t> calls;  // release order
  // Events of signal handlers that could not be written because all writers of the thread were
  // busy, and no further writer could be claimed. They have no numbers. Relaxed order.
  std::atomic<std::uint64_t> lost_nested;
  std::atomic<std::uint64_t> ordinal;  // 1, 2, ...: never used twice in a region
  std::atomic<std::uint32_t> state;    // WriterState
  // Thread id in the service's pid namespace, as the service claims; not verified.
  std::atomic<std::uint32_t> tid;
  std::atomic<std::uint32_t> nested;  // index plus 1 of the writer for signal handlers; 0: none
  // Depth of the writer: 0 for the thread itself; 1, 2, ... for its nested signal handlers.
  std::atomic<std::uint32_t> depth;
  // Number of the first event that the collector has neither written to its files nor counted there
  // as lost. The collector stores it (release order) before it frees chunks. The service stores 0
  // while the state is kWriterClaiming. A collector that connects later skips the earlier events.
  std::atomic<std::uint64_t> accounted;
  // Number of events in lost_nested that the collector has counted as lost in its files.
  std::atomic<std::uint64_t> accounted_nested;
};
static_assert(sizeof(Writer) == 64);

enum ChunkState : std::uint32_t {
  kFree = 0,      // any writer may take the chunk; the initial state, set again by the collector
  kWriting = 1,   // a writer owns the chunk; its ChunkControl is valid (release order)
  kComplete = 2,  // the writer adds no more records (release order)
  kTaking = 3,    // the service is writing the ChunkControl
};

// Describes the chunk with the same index. Written by the service, except that the collector
// changes kComplete to kFree.
struct ChunkControl {
  // ChunkState. Service: kFree -> kTaking (compare-and-exchange) -> kWriting -> kComplete.
  // Collector: kComplete -> kFree (release order), after it has consumed all records.
  std::atomic<std::uint32_t> state;
  // Bytes of complete records from the chunk's start, a multiple of 8. Stored with release order: a
  // reader that loads this number with acquire order may read that many bytes, even while the owner
  // writes after them.
  std::atomic<std::uint32_t> committed;
  // Position of the chunk in the order in which chunks were taken: 1, 2, ... A number is never used
  // twice in a region. This field and the fields after it are valid from kWriting on, and do not
  // change until kFree. Relaxed order.
  std::atomic<std::uint64_t> serial;
  std::atomic<std::uint64_t> ordinal;  // Writer::ordinal of the owner
  std::atomic<std::uint64_t> first;    // number of the owner's first event that may be in the chunk
  std::atomic<std::uint32_t> writer;   // index of the owner in the writers
  std::atomic<std::uint32_t> tid;      // Writer::tid of the owner
  std::atomic<std::uint32_t> depth;    // Writer::depth of the owner
  std::uint32_t reserved[5];
};
static_assert(sizeof(ChunkControl) == 64);

// The start of a record. The event (the EventHeader bytes: header, extensions, data) follows it,
// then 0 to 7 bytes up to a multiple of 8.
struct Record {
  std::uint16_t size;      // bytes of the event: 8 to 8184
  std::uint16_t set;       // index in the set table
  std::uint16_t cpu;       // kUnknownCpu, or the CPU that the thread was on
  std::uint16_t reserved;  // 0
  std::uint32_t number;    // lower 32 bits of the event's number
  std::uint32_t reserved2;
  std::uint64_t timestamp;  // in ns of Header::clock; does not decrease within a writer
};
static_assert(sizeof(Record) == 24);

constexpr std::uint32_t RecordBytes(std::uint32_t event_size) noexcept {
  return static_cast<std::uint32_t>(sizeof(Record)) + ((event_size + 7) & ~7U);
}
// Maximum bytes of an event, equal to kMaxEventSize in wire.h, which is the limit of user_events.
inline constexpr std::uint32_t kMaxEventBytes = 8184;
static_assert(RecordBytes(kMaxEventBytes) <= kChunkBytes);

// The parts of the region, in order. Each part begins at a multiple of 4 KiB.
inline constexpr std::uint32_t kPage = 4096;
inline constexpr std::uint32_t kCollectorOffset = kPage;
inline constexpr std::uint32_t kServiceOffset = 2 * kPage;
// Offset of std::atomic<uint32_t>[kMaxSets]: number of registrations of each set in the service's
// process. If the number is 0, the service writes no events of the set. Relaxed order.
inline constexpr std::uint32_t kSetUsersOffset = 3 * kPage;
// Offset of Writer[kMaxWriters].
inline constexpr std::uint32_t kWritersOffset = kSetUsersOffset + kMaxSets * 4;
// Offset of ChunkControl[kMaxChunks]. Only the first Header::chunk_count elements are used.
inline constexpr std::uint32_t kControlsOffset =
    kWritersOffset + kMaxWriters * static_cast<std::uint32_t>(sizeof(Writer));
// Offset of char[kMaxSets][kNameBytes]: names of tracepoints, each with a NUL. Names are only
// appended.
inline constexpr std::uint32_t kSetNamesOffset =
    kControlsOffset + kMaxChunks * static_cast<std::uint32_t>(sizeof(ChunkControl));
inline constexpr std::uint32_t kChunksOffset =
    (kSetNamesOffset + kMaxSets * kNameBytes + kChunkBytes - 1) / kChunkBytes * kChunkBytes;
static_assert(sizeof(CollectorPage) <= kPage && sizeof(ServicePage) <= kPage);
static_assert(kWritersOffset % kPage == 0 && kControlsOffset % kPage == 0 &&
              kSetNamesOffset % kPage == 0);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<std::uint32_t>::is_always_lock_free);

constexpr std::uint64_t RegionBytes(std::uint32_t chunk_count) noexcept {
  return kChunksOffset + std::uint64_t{chunk_count} * kChunkBytes;
}
// The types of messages; each comment begins with the sender. A message is one packet
// (SOCK_SEQPACKET) that contains a Message. Receivers ignore messages of unknown types. If a
// message of a known type is too short, the collector closes the connection, and the service reads
// the missing bytes as 0. Both close the connection if the magic is wrong, or if the magic or the
// type is missing.
enum class MessageType : std::uint32_t {
  kHello = 1,    // service: the first message, with the region's descriptor (SCM_RIGHTS)
  kWelcome = 2,  // collector: it accepts the region of Hello
  // Collector: it rejects the region of Hello, and closes the connection unless the value is
  // kNoDescriptor.
  kRefuse = 3,
  kSets = 4,     // service: names or registrations of sets have changed; value: set_count
  kEnable = 5,   // collector: the enable words have changed; value: any, which kEnabled repeats
  kEnabled = 6,  // service: the words are in effect; value: that of kEnable
  kFull = 7,     // service: ServicePage::completed has reached CollectorPage::bell_at
  kFlush = 8,    // collector: complete the idle writers' chunks; value: any, which kFlushed repeats
  kFlushed = 9,  // service: the chunks are complete; value: that of kFlush
  kGrow = 10,    // collector: allow more chunks; value: number of all allowed chunks
  kGrown = 11,   // service: the answer to kGrow; value: usable_chunks
  kBye = 12,     // either side: it closes the connection
  kPatch = 13,   // either side of an inline connection: Patches follow the Message
  // Service: the last message of an inline connection. The region's counts that the collector has
  // are final: each event that they include and the collector has not received is lost.
  kEnd = 14,
};
struct Message {
  std::uint32_t magic;  // kMessageMagic
  MessageType type;
  // kHello: kSupportsInline, or MakeInlineFlags(). kWelcome: chunks that the service may use.
  // kRefuse: RefuseReason. kPatch of the service: a time in ns of Header::clock. All events that
  // were committed before it are in this message and the messages before it; 0: unknown.
  std::uint64_t value;
  // kHello: the newest version that the service supports. kWelcome: the version that the collector
  // chose.
  std::uint32_t version;
  std::uint32_t pid;  // kHello: the service's process id, in its pid namespace
};
static_assert(sizeof(Message) == 24);
inline constexpr std::uint32_t kMessageMagic = 0x31524845;  // "EHR1"

enum class RefuseReason : std::uint64_t {
  kNoCommonVersion = 1,
  // A limit of the number or the memory of services is reached, or the collector lacks memory.
  kTooManyClients = 2,
  kTooLarge = 3,   // the region is larger than the collector allows
  kBadRegion = 4,  // the region is not valid, or not sealed
  // The message Hello arrived without a descriptor. The connection stays open, and the service
  // sends an inline Hello.
  kNoDescriptor = 5,
};

// An inline connection is used where a descriptor cannot be passed. Its message Hello has no
// descriptor: an InlineHello follows the Message. The collector keeps a copy of the region in its
// own memory. Each side sends Patches, which contain its changes to the region. An InlineReason
// states why the connection is inline.
enum class InlineReason : std::uint8_t {
  kNone = 0,         // the connection is not inline
  kChosen = 1,       // EVENTHEADER_TRANSPORT is ring-inline
  kNoMemory = 2,     // the service cannot create shared memory; an errno states why
  kNotSent = 3,      // the service cannot send the descriptor; an errno states why
  kNotReceived = 4,  // the descriptor did not arrive (RefuseReason::kNoDescriptor)
};
// Flags in Message::value of kHello. If the descriptor of a Hello that is not inline has not
// arrived, the collector refuses it with kNoDescriptor if kSupportsInline is set, else kBadRegion.
inline constexpr std::uint64_t kIsInline = 1;
inline constexpr std::uint64_t kSupportsInline = 2;
// Returns the value of an inline Hello: kIsInline, the InlineReason in bits 8 to 15, and an errno
// or 0 in bits 16 to 31.
constexpr std::uint64_t MakeInlineFlags(InlineReason reason, int error) noexcept {
  return kIsInline | static_cast<std::uint64_t>(reason) << 8 |
         (static_cast<std::uint64_t>(error) & 0xFFFF) << 16;
}
struct InlineHello {
  Header header;
  // Values of the service's region when the service connects.
  std::uint64_t give_backs;                // CollectorPage::give_backs
  std::uint64_t accounted_without_writer;  // CollectorPage::accounted_without_writer
  std::uint64_t last_serial;               // ServicePage::last_serial
  std::uint32_t usable_chunks;             // ServicePage::usable_chunks
  std::uint32_t reserved;                  // 0
};
static_assert(sizeof(InlineHello) == 136);
// A change of the region: the new `size` bytes for `offset` follow, then 0 to 7 bytes up to a
// multiple of 8. The receiver applies the Patches of a message in their order. The collector
// accepts Patches of all parts that the service writes. The service accepts three kinds of Patches:
// the whole CollectorPage, except that it ignores `bell_at`; `accounted` and `accounted_nested` of
// a Writer; and the state of a Writer or chunk that becomes free.
struct Patch {
  std::uint32_t offset;
  std::uint32_t size;
};
constexpr std::uint32_t PatchBytes(std::uint32_t size) noexcept {
  return static_cast<std::uint32_t>(sizeof(Patch)) + ((size + 7) & ~7U);
}
// Maximum bytes after the Message.
inline constexpr std::uint32_t kMaxPayload = 32 * 1024;
// Size of the socket's queue that the collector and inline services ask for, in bytes. The kernel's
// default (net.core.wmem_default) may be too small for a message with kMaxPayload; the kernel would
// reject such a message (EMSGSIZE). The kernel may permit less than this size (net.core.wmem_max).
inline constexpr int kQueueBytes = 4 * kMaxPayload;
// Number of chunks that a service may use before the collector has answered Hello.
inline constexpr std::uint32_t kFirstChunks = 16;

// Paths of the collector's socket, unless EVENTHEADER_SOCKET has another path. The service appends
// kUserSocket to $XDG_RUNTIME_DIR.
inline constexpr char kSystemSocket[] = "/run/nettraced/events";
inline constexpr char kUserSocket[] = "/nettraced/events";

}  // namespace eh::internal::ring

#endif  // LIBEVENTHEADER_BASE_RING_LAYOUT_H_
