// Events whose name and fields are known at compile time.
//
//     inline constinit eh::Provider provider("MyCompany_MyService");
//
//     inline constexpr eh::Event<
//         provider, "RequestDone", eh::Traits{.keyword = 0x1},
//         eh::Field<"path", std::string_view>,
//         eh::Field<"status", std::int32_t>> request_done;
//
//     request_done.Write("/index.html", 200);
//
// While none of the provider's tracepoints is enabled, Write is a load, a test and a branch. An
// enabled event is put together in one piece on the stack and written with one system call. Write
// never allocates, locks, throws or changes errno, and may be called from any thread and signal
// handler.
#ifndef EVENTHEADER_EVENT_H_
#define EVENTHEADER_EVENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "eventheader/activity.h"
#include "eventheader/field.h"
#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/record.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh {

// The attributes of an event besides its name and fields.
struct Traits {
  Level level = Level::kInformation;
  std::uint64_t keyword = 0;  // a bit for each of the provider's categories the event belongs to
  Opcode opcode = Opcode::kInfo;
  std::uint16_t id = 0;      // stable number of the event; 0: none
  std::uint8_t version = 0;  // of an event with an id: goes up when its fields change
  std::uint16_t tag = 0;
};

namespace internal {

template <typename T>
inline constexpr bool kIsAttribute = requires {
  T::Size();
};
template <typename T>
inline constexpr bool kIsField = requires {
  typename T::Definition;
};
template <typename... Ts>
struct TypeList {};
template <typename List, typename... Ts>
struct FieldsOf;
template <typename... Fields>
struct FieldsOf<TypeList<Fields...>> {
  using Type = TypeList<Fields...>;
};
template <typename... Fields, typename T, typename... Rest>
struct FieldsOf<TypeList<Fields...>, T, Rest...> {
  using Type = typename FieldsOf<
      std::conditional_t<kIsField<T>, TypeList<Fields..., T>, TypeList<Fields...>>, Rest...>::Type;
};

template <typename Part>
constexpr int FieldsIn() noexcept {
  if constexpr (kIsField<Part>) return Part::Definition::kFields;
  return 0;
}
template <typename Part>
constexpr int NestingIn() noexcept {
  if constexpr (kIsField<Part>) return Part::Definition::kNesting;
  return 0;
}

template <typename Part>
constexpr std::size_t FixedSizeIn() noexcept {
  if constexpr (kIsField<Part>) return Coder<typename Part::Type>::kFixedSize;
  return 0;
}

// The beginning of an event without activity: header, metadata extension and metadata.
template <FixedString kName, Traits kTraits, typename... Parts>
struct Preamble {
  static constexpr std::size_t kMetadataSize = kName.size() + 1 + [] {
    std::size_t size = 0;
    (
        [&] {
          if constexpr (kIsField<Parts>) {
            size += Parts::Definition::Size();
          } else {
            size += AttributeSize<Parts>();
          }
        }(),
        ...);
    return size;
  }();
  static constexpr std::size_t kSize = sizeof(Header) + sizeof(ExtensionHeader) + kMetadataSize;

  struct Bytes {
    Header header;
    ExtensionHeader extension;
    char metadata[kMetadataSize];
  };

  static constexpr Bytes Make() noexcept {
    Bytes bytes{
        {kNativeFlags | kFlagExtension, kTraits.version, kTraits.id, kTraits.tag,
         static_cast<std::uint8_t>(kTraits.opcode), static_cast<std::uint8_t>(kTraits.level)},
        {kMetadataSize, kExtensionMetadata},
        {}};
    char* out = bytes.metadata;
    for (const char c : kName.view()) *out++ = c;
    (
        [&] {
          if constexpr (!kIsField<Parts>) out = PutAttribute<Parts>(out);
        }(),
        ...);
    *out++ = '\0';
    (
        [&] {
          if constexpr (kIsField<Parts>) out = Parts::Definition::Put(out);
        }(),
        ...);
    return bytes;
  }

  static constexpr Bytes kBytes = Make();
};

template <typename Preamble, auto& kSet, typename List>
struct EventWriter;

// Builds and writes an enabled event, out of line, for call sites to be small.
template <typename Preamble, auto& kSet, typename... Fields>
struct EventWriter<Preamble, kSet, TypeList<Fields...>> {
  [[gnu::noinline]] static WriteResult Write(Parameter<typename Fields::Type>... values) noexcept {
    return Measure(nullptr, Prepare(values)...);
  }
  [[gnu::noinline]] static WriteResult WriteActivity(
      const Activity& activity, Parameter<typename Fields::Type>... values) noexcept {
    return Measure(&activity, Prepare(values)...);
  }

 private:
  static constexpr bool kIsFixed = ((Coder<typename Fields::Type>::kFixedSize != 0) && ...);
  static constexpr std::size_t kSizeIfFixed =
      Preamble::kSize + (std::size_t{0} + ... + Coder<typename Fields::Type>::kFixedSize);
  // Events up to this size take so much of the stack, which may be a signal's; larger ones 8 KiB.
  static constexpr std::size_t kSmall =
      kIsFixed && kSizeIfFixed + kMaxActivitySize <= kMaxEventSize ? kSizeIfFixed : 1024;

  template <typename... Values>
  [[gnu::always_inline]] static inline WriteResult Measure(const Activity* activity,
                                                           const Values&... values) noexcept {
    // At most some thousand sizes of what is in memory: 64 bits hold their sum.
    const std::uint64_t size = (std::uint64_t{Preamble::kSize} + ... + Coder<Values>::Size(values));
    if (size > kSmall) [[unlikely]]
      return Large<Values...>(size, activity, values...);
    return Build<kSmall + kMaxActivitySize>(activity, values...);
  }

  // Takes copies: references would keep what Write is given out of registers.
  template <typename... Values>
  [[gnu::noinline, gnu::cold]] static WriteResult Large(std::uint64_t size,
                                                        const Activity* activity,
                                                        Parameter<Values>... values) noexcept {
    if (activity != nullptr) size += ActivitySize(*activity);
    if (size > kMaxEventSize) return kSet.Refuse(WriteResult::kTooBig);
    return Build<kMaxEventSize>(activity, values...);
  }

  template <std::size_t kRoom, typename... Values>
  [[gnu::always_inline]] static inline WriteResult Build(const Activity* activity,
                                                         const Values&... values) noexcept {
    alignas(8) std::byte buffer[kRecordPrefix + kRoom];
    std::byte* out = buffer + kRecordPrefix;
    const auto* preamble = reinterpret_cast<const std::byte*>(&Preamble::kBytes);
    if (activity == nullptr) {
      out = PutConstant<Preamble::kSize>(out, preamble);
    } else {
      out = PutConstant<sizeof(Header)>(out, preamble);
      out = PutActivity(out, *activity);
      out = PutConstant<Preamble::kSize - sizeof(Header)>(out, preamble + sizeof(Header));
    }
    ((out = Coder<Values>::Put(out, values)), ...);
    return kSet.Write({buffer, out});
  }
};

// Event's functions that need the fields' types apart.
template <auto& kProvider, Traits kTraits, typename Preamble, typename List>
class EventBase;

template <auto& kProvider, Traits kTraits, typename Preamble, typename... Fields>
class EventBase<kProvider, kTraits, Preamble, TypeList<Fields...>> {
  using Static = StaticSet<kProvider, kTraits.level, kTraits.keyword>;
  using Writer = EventWriter<Preamble, Static::set, TypeList<Fields...>>;

 public:
  // Whether the tracepoint is enabled, for arguments that are costly to make. A load, a test and a
  // branch while none of the provider's tracepoints is.
  [[gnu::always_inline]] bool enabled() const noexcept {
    static_cast<void>(&Static::registration);
    return Static::set.EnabledIn(kProvider);
  }

  [[gnu::always_inline]] WriteResult Write(
      Parameter<typename Fields::Type>... values) const noexcept {
    if (!enabled()) [[likely]]
      return WriteResult::kDisabled;
    return Writer::Write(values...);
  }

  [[gnu::always_inline]] WriteResult Write(
      const Activity& activity, Parameter<typename Fields::Type>... values) const noexcept {
    if (!enabled()) [[likely]]
      return WriteResult::kDisabled;
    return Writer::WriteActivity(activity, values...);
  }

  // The event's tracepoint, shared by all events of this provider, level and keyword.
  [[gnu::always_inline]] const EventSet& set() const noexcept { return Static::set; }
};

template <auto& kProvider, FixedString kName, Traits kTraits, typename... Parts>
using EventBaseOf = EventBase<kProvider, kTraits, Preamble<kName, kTraits, Parts...>,
                              typename FieldsOf<TypeList<>, Parts...>::Type>;

}  // namespace internal

// `kProvider` is a provider with static storage; parts are Fields and Attributes.
// Write takes the fields' values in their order, an Activity before them where there is one.
template <auto& kProvider, FixedString kName, Traits kTraits, typename... Parts>
class Event : public internal::EventBaseOf<kProvider, kName, kTraits, Parts...> {
  static_assert(internal::IsValidName(kName.view()),
                "an event's name is not empty and has neither ';' nor NUL");
  static_assert(kTraits.level != Level::kInvalid, "an event's level is at least 1");
  static_assert(((internal::kIsField<Parts> || internal::kIsAttribute<Parts>)&&...),
                "after its traits an event has Fields and Attributes");
  // Checked here, so that errors show where the event is defined.
  static_assert(internal::Preamble<kName, kTraits, Parts...>::kSize <= kMaxEventSize,
                "the event's names alone are over the maximum event size");
  static_assert(internal::Preamble<kName, kTraits, Parts...>::kSize +
                        (std::size_t{0} + ... + internal::FixedSizeIn<Parts>()) <=
                    kMaxEventSize,
                "the event would always be refused: its fields of fixed size are over the maximum "
                "event size");
  static_assert((0 + ... + internal::FieldsIn<Parts>()) <= kMaxFields,
                "an event has at most 1024 fields, members of structs among them");
  static_assert(std::max({0, internal::NestingIn<Parts>()...}) <= kMaxStructNesting,
                "structs are nested at most 8 deep");
};

}  // namespace eh

// Writes one event in one statement, with its arguments not evaluated unless it is enabled:
//   EVENTHEADER_WRITE(request_done, path, CostlyToMake());
#define EVENTHEADER_WRITE(event, ...)                  \
  do {                                                 \
    if ((event).enabled()) (event).Write(__VA_ARGS__); \
  } while (false)

#endif  // EVENTHEADER_EVENT_H_
