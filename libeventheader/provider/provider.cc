#include "eventheader/provider.h"

#include <cerrno>

#include "eventheader/internal/record.h"
#include "eventheader/internal/static_objects.h"
#include "eventheader/testing/transport.h"
#include "libeventheader/provider/registry.h"
#include "libeventheader/provider/ring_transport.h"
#include "libeventheader/provider/user_events_transport.h"

namespace eh {
namespace {

// Copies `size` bytes, which must not be 0, and up to 15 bytes after them. The asm barriers keep
// compilers from replacing the loop by a call of memcpy, which takes more instructions for small
// sizes.
[[gnu::always_inline]] inline void PutPadded(std::byte* out, const std::byte* in,
                                             std::size_t size) noexcept {
  std::size_t at = 0;
  do {
    __builtin_memcpy(out + at, in + at, 16);
    asm volatile("" ::: "memory");
    at += 16;
  } while (at < size);
}

// Copies up to 8 bytes without a call.
[[gnu::always_inline]] inline void PutShort(std::byte* out, const std::byte* in,
                                            std::size_t size) noexcept {
  if (size >= 4) {
    internal::PutTwice<4>(out, in, size);
  } else if (size >= 2) {
    internal::PutTwice<2>(out, in, size);
  } else if (size != 0) {
    *out = *in;
  }
}

// Writes header and metadata, and overwrites up to EH_HEAD_STEP bytes after them. Returns the end
// of the metadata.
[[gnu::always_inline]] inline std::byte* PutHead(std::byte* out,
                                                 const eh_static_event& event) noexcept {
  const auto padded = static_cast<std::ptrdiff_t>(event.head_padded);
  const std::byte* from = reinterpret_cast<const std::byte*>(&event + 1) + padded;
  // Hides the origin of `from` from compilers, so that they use `at`, which counts up to zero, as
  // the index. This saves one instruction per iteration.
  asm("" : "+r"(from));
  std::byte* const to = out + padded;
  std::ptrdiff_t at = -padded;
  do {
    for (int i = 0; i < EH_HEAD_STEP; i += 16) {
      __builtin_memcpy(to + at + i, from + at + i, 16);
    }
    asm volatile("" ::: "memory");
    at += EH_HEAD_STEP;
  } while (at != 0);
  return out + event.head_size;
}

// Writes header, activity and metadata.
[[gnu::always_inline]] inline std::byte* PutHead(std::byte* out, const eh_static_event& event,
                                                 const Activity& activity) noexcept {
  // The other PutHead() writes header and metadata after the room for the activity. The header
  // belongs before the activity, so this function writes it again there. The activity then
  // overwrites the header that is in the wrong place.
  std::byte* const end = PutHead(out + internal::ActivitySize(activity.related != nullptr), event);
  __builtin_memcpy(out, &event + 1, sizeof(wire::Header));
  internal::PutActivity(out + sizeof(wire::Header), activity.id.data(), activity.related);
  return end;
}

// In the functions below, `at` selects both a piece (eh_piece) of an event and the number of fixed
// bytes before the piece. Loops increase `at` from event.pieces, which is negative, to 0 in steps
// of kNext.
constexpr std::ptrdiff_t kNext = sizeof(std::uint16_t);

[[gnu::always_inline]] inline std::size_t NumberAt(const eh_static_event& event,
                                                   std::ptrdiff_t at) noexcept {
  return *reinterpret_cast<const std::uint16_t*>(reinterpret_cast<const char*>(&event) + at);
}
[[gnu::always_inline]] inline const eh_piece& PieceAt(const void* fixed,
                                                      std::ptrdiff_t at) noexcept {
  constexpr std::ptrdiff_t kScale = sizeof(eh_piece) / kNext;
  return *reinterpret_cast<const eh_piece*>(static_cast<const char*>(fixed) + at * kScale);
}

// Copies an event without pieces of type eh_made_piece, and overwrites up to EH_HEAD_STEP bytes
// after it. Calls no function.
template <typename... MaybeActivity>
[[gnu::always_inline]] inline std::byte* PutPieces(std::byte* out, const eh_static_event& event,
                                                   const void* fixed_bytes,
                                                   const MaybeActivity&... activity) noexcept {
  out = PutHead(out, event, activity...);
  const auto* fixed = static_cast<const std::byte*>(fixed_bytes);
  for (std::ptrdiff_t at = event.pieces; at != 0; at += kNext) {
    asm("" : "+r"(at));  // keeps compilers from using two indices
    const std::size_t bytes = NumberAt(event, at);
    __builtin_memcpy(out, fixed, 16);
    if (bytes > 16) [[unlikely]] {
      __builtin_memcpy(out + 16, fixed + 16, 16);
      if (bytes > 32) PutPadded(out + 32, fixed + 32, bytes - 32);
    }
    out += bytes;
    fixed += bytes;
    const eh_piece& piece = PieceAt(fixed_bytes, at);
    const auto* in = static_cast<const std::byte*>(piece.data);
    const std::size_t piece_size = piece.size;
    if (piece_size - 8 <= 16 - 8) [[likely]] {
      internal::PutTwice<8>(out, in, piece_size);
    } else if (piece_size <= 16) {
      PutShort(out, in, piece_size);
    } else {
      PutPadded(out, in, piece_size - 16);
      __builtin_memcpy(out + piece_size - 16, in + piece_size - 16, 16);
    }
    out += piece_size;
  }
  if (const std::size_t bytes = event.last; bytes != 0) {
    PutPadded(out, fixed, bytes);
    out += bytes;
  }
  return out;
}

}  // namespace

// Counts an event in the shard that the lowest 3 bits of `number` select.
inline void ProviderBase::CountWritten(std::uint64_t number) noexcept {
  // Computes the offset of the shard in bytes. This takes two instructions less than an index.
  static_assert(kShards == 8 && sizeof(Shard) == 64);
  const auto offset = static_cast<std::size_t>(number * sizeof(Shard)) & (7 * sizeof(Shard));
  auto* const shard = reinterpret_cast<Shard*>(reinterpret_cast<std::byte*>(shards_) + offset);
  shard->written.Add(1);
}

inline void ProviderBase::CountWritten() noexcept {
  // The addresses of the control blocks of threads often differ by whole pages. The multiplication
  // mixes their bits, so that the highest 3 bits of the product spread the threads over the shards.
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  CountWritten(std::uint64_t{thread} * 0x9E3779B97F4A7C15 >> (64 - 3));
}

void ProviderBase::CountFailed(int error) noexcept {
  last_error_.Store(error);
  failed_[error < Counters::kErrnos ? error : 0].Add(1);
}

ProviderBase::~ProviderBase() { internal::Registry::registry.Remove(*this); }

int ProviderBase::status() const noexcept { return internal::Registry::registry.Status(*this); }

int ProviderBase::Retry() noexcept { return internal::Registry::registry.Retry(this); }

int ProviderBase::SetTransport(Transport* transport) noexcept {
  return internal::Registry::registry.SetTransport(*this, transport);
}

void Transport::Detach() noexcept { internal::Registry::registry.Detach(this); }

TransportState DescribeTransport(char* text, std::size_t size) noexcept {
  return internal::Registry::registry.DescribeTransport({text, size});
}

TransportState PollTransport() noexcept {
  internal::ring_transport.Poll();
  return DescribeTransport(nullptr, 0);
}

int RetryAll() noexcept { return internal::Registry::registry.Retry(nullptr); }

ProviderBase::Counters ProviderBase::counters() const noexcept {
  Counters counters;
  for (const Shard& shard : shards_) {
    counters.written += shard.written.Load();
  }
  counters.too_big = too_big_.Load();
  counters.invalid = invalid_.Load();
  counters.last_error = last_error_.Load();
  for (int i = 0; i < Counters::kErrnos; ++i) {
    counters.failed_by_errno[i] = failed_[i].Load();
    counters.failed += counters.failed_by_errno[i];
  }
  return counters;
}

void EventSet::Register() noexcept { internal::Registry::registry.Add(this); }
void EventSet::Unregister() noexcept {
  if (registry_ != nullptr) registry_->Remove(this);
}

WriteResult EventSet::Write(std::byte* begin, std::byte* end) const noexcept {
  if (static_cast<std::size_t>(end - begin) > kRecordPrefix + kMaxEventSize) [[unlikely]] {
    return Refuse(WriteResult::kTooBig);
  }
  return WriteChecked(begin, end);
}

// Writes a record whose size was already checked.
[[gnu::always_inline]] inline WriteResult EventSet::WriteChecked(std::byte* begin,
                                                                 std::byte* end) const noexcept {
  internal::UserEvents& user_events = internal::user_events_transport;
  const std::uint64_t handle = fast_handle_.Load();
  if (internal::RingTransport::IsHandle(handle)) return WriteRing(begin, end, handle);
  int error = 0;
  if (!user_events.IsFresh() || !user_events.WriteUnchecked(handle, {begin, end}, &error))
      [[unlikely]] {
    return WriteSlow(begin, end);
  }
  if (error != 0) [[unlikely]]
    return Failed(error);
  provider_->CountWritten();
  return WriteResult::kWritten;
}

// Writes most events: those of up to 1 KiB without pieces of type eh_made_piece. The paths of both
// transports make as few calls as possible, so that they save few registers.
WriteResult EventSet::WriteStatic(const eh_static_event& event, const void* fixed,
                                  std::uint64_t size) const noexcept {
  if (size > kStaticRoom) [[unlikely]]
    return WriteMade(event, fixed, size, nullptr);
  if (internal::ring_transport.IsOurs(fast_handle_.Load())) return PutRing(event, fixed, size);
  return PutCopied(event, fixed);
}

WriteResult EventSet::WriteStatic(const eh_static_event& event, const void* fixed,
                                  std::uint64_t size, const Activity& activity) const noexcept {
  if (size > kStaticRoom) [[unlikely]]
    return WriteMade(event, fixed, size, &activity);
  if (internal::ring_transport.IsOurs(fast_handle_.Load())) {
    return PutRing(event, fixed, size + internal::ActivitySize(activity.related != nullptr),
                   activity);
  }
  return PutCopied(event, fixed, activity);
}

// Assembles an event on the stack and writes it.
template <typename... MaybeActivity>
[[gnu::noinline]] WriteResult EventSet::PutCopied(const eh_static_event& event, const void* fixed,
                                                  const MaybeActivity&... activity) const noexcept {
  alignas(16)
      std::byte record[kRecordPrefix + kStaticRoom + internal::kMaxActivitySize + EH_HEAD_STEP];
  return WriteChecked(record, PutPieces(record + kRecordPrefix, event, fixed, activity...));
}

// Assembles an event of `size` bytes in this shared object's rings.
template <typename... MaybeActivity>
[[gnu::noinline]] WriteResult EventSet::PutRing(const eh_static_event& event, const void* fixed,
                                                std::uint64_t size,
                                                const MaybeActivity&... activity) const noexcept {
  internal::RingMemory::Place place;
  // Asks for more room than the record needs, because PutPieces may overwrite up to EH_HEAD_STEP
  // bytes after the event.
  const std::uint64_t bytes = sizeof(internal::ring::Record) + size + EH_HEAD_STEP;
  if (!internal::ring_memory.Begin(bytes, &place)) [[unlikely]] {
    return PutCopied(event, fixed, activity...);
  }
  auto* const out = reinterpret_cast<std::byte*>(place.record + 1);
  const std::byte* const end = PutPieces(out, event, fixed, activity...);
  internal::ring_memory.Commit(place, static_cast<std::uint32_t>(fast_handle_.Load()),
                               static_cast<std::size_t>(end - out));
  // Writers are elements of an array, so consecutive writers use different shards.
  provider_->CountWritten(reinterpret_cast<std::uintptr_t>(place.writer) /
                          sizeof(internal::ring::Writer));
  return WriteResult::kWritten;
}

// Writes any static event. Uses only as much of the stack as the event needs.
[[gnu::cold]] WriteResult EventSet::WriteMade(const eh_static_event& event, const void* fixed_bytes,
                                              std::uint64_t size,
                                              const Activity* activity) const noexcept {
  if (activity != nullptr) size += internal::ActivitySize(activity->related != nullptr);
  if (size > kMaxEventSize) return Refuse(WriteResult::kTooBig);

  auto* const record = static_cast<std::byte*>(
      __builtin_alloca(kRecordPrefix + static_cast<std::size_t>(size) + EH_HEAD_STEP));
  std::byte* out = record + kRecordPrefix;
  out = activity == nullptr ? PutHead(out, event) : PutHead(out, event, *activity);
  const auto* fixed = static_cast<const std::byte*>(fixed_bytes);
  for (std::ptrdiff_t at = event.pieces; at != 0; at += kNext) {
    const std::size_t bytes = NumberAt(event, at) & ~std::size_t{EH_MADE_PIECE};
    out = internal::PutBytes(out, fixed, bytes);
    fixed += bytes;
    const eh_piece& piece = PieceAt(fixed_bytes, at);
    if ((NumberAt(event, at) & EH_MADE_PIECE) != 0) {
      const auto& made = *static_cast<const eh_made_piece*>(piece.data);
      out = static_cast<std::byte*>(made.put(out, made.value));
    } else {
      out = internal::PutBytes(out, piece.data, piece.size);
    }
  }
  out = internal::PutBytes(out, fixed, event.last);
  return WriteChecked(record, out);
}

// Writes a record to this shared object's rings.
[[gnu::noinline]] WriteResult EventSet::WriteRing(std::byte* begin, std::byte* end,
                                                  std::uint64_t handle) const noexcept {
  internal::RingTransport& ring = internal::ring_transport;
  if (!ring.IsOurs(handle)) [[unlikely]]
    return WriteSlow(begin, end);
  if (const int error = ring.WriteFast(handle, {begin, end}); error != 0) [[unlikely]]
    return Failed(error);
  provider_->CountWritten();
  return WriteResult::kWritten;
}

WriteResult EventSet::WriteSlow(std::byte* begin, std::byte* end) const noexcept {
  Transport* const transport = transport_.Load();
  if (transport == nullptr) return Failed(EBADF);
  const int error = transport->Write(handle_.Load(), {begin, end});
  if (error != 0) return Failed(error);
  provider_->CountWritten();
  return WriteResult::kWritten;
}

WriteResult EventSet::Failed(int error) const noexcept {
  // The tracepoint was disabled after the caller checked enabled(). This does not count as a
  // failure.
  if (error == EBADF && !enabled()) return WriteResult::kDisabled;
  // The set was enabled only so that the first event of a forked child starts the child's helper
  // thread (RingTransport). The event itself was not written.
  if (error == ECANCELED) return WriteResult::kDisabled;
  provider_->CountFailed(error);
  return WriteResult::kFailed;
}

WriteResult EventSet::Refuse(WriteResult reason) const noexcept {
  auto& counter = reason == WriteResult::kTooBig ? provider_->too_big_ : provider_->invalid_;
  counter.Add(1);
  return reason;
}

const char* RegistrationErrorText(int error) noexcept {
  switch (error) {
    case 0:
      return "registered";
    case ENOENT:
      return "user_events is not available: mount tracefs at /sys/kernel/tracing, and use Linux "
             "6.4 or newer with CONFIG_USER_EVENTS=y";
    case ECANCELED:
      return "switched off by EVENTHEADER_TRANSPORT=none: unset the variable, and restart the "
             "program";
    case EAGAIN:
      return "the thread for rings in user space could not be created: raise the limit of "
             "processes or of memory, or set EVENTHEADER_THREAD=0 and call eh::PollTransport()";
    case ENOMEM:
      return "no memory: raise the memory limit of the process or of its cgroup";
    case EACCES:
    case EPERM:
      return "no permission to write to user_events_data: run as root, or as a member of the group "
             "user_events, to which /usr/lib/tmpfiles.d/user_events.conf gives write access";
    case EADDRINUSE:
      return "a tracepoint with this name has other fields, or the provider registers the name "
             "twice: delete the tracepoint with 'eventheader unregister NAME', which prints its "
             "users "
             "if it is in use, or rename the provider";
    case EMFILE:
      static_assert(internal::ring::kMaxSets == 4096);
      return "no more tracepoints or file descriptors are available: raise kernel.user_events_max "
             "or the limit of open files, or use at most 4096 tracepoints with rings in user "
             "space";
    case ENOSPC:
      return "a provider object holds at most 64 sets of level and keyword: use fewer sets, or a "
             "second provider object";
    case EINVAL:
      static_assert(kMaxTracepointName == 255);
      return "provider name, group or level is not valid, or the name is too long: use "
             "[A-Za-z_][A-Za-z0-9_]* for the provider, [a-z0-9]* for the group, level 1 to 255, "
             "and "
             "at most 255 bytes for the name of the tracepoint";
    case EOWNERDEAD:
      return "the provider's transport was destroyed while in use: before a transport is "
             "destroyed, call SetTransport with another one or with null";
    case ENOTCONN:
      return "not registered: create the event set if there is none, else call Retry()";
    default:
      return "the kernel refused the registration: look up the status in errno(3); for EROFS, add "
             "ReadWritePaths=-/sys/kernel/tracing/user_events_data to the unit of the service";
  }
}

}  // namespace eh
