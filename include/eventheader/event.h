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
// While none of the provider's tracepoints is enabled, Write() is a load, a test and a branch. With
// user_events, an enabled event is assembled on the stack and written with one system call. With
// rings in user space, most events are assembled in a ring without a system call. Write() never
// allocates, waits for a lock, throws or changes errno, with one exception: the first event of a
// forked child may start the helper thread of rings in user space. Write() may be called from any
// thread and signal handler.
#ifndef EVENTHEADER_EVENT_H_
#define EVENTHEADER_EVENT_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "eventheader/activity.h"
#include "eventheader/field.h"
#include "eventheader/internal/catalog_note.h"
#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/record.h"
#include "eventheader/internal/static_event.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh {

// The properties of an event besides its name, its fields and its Attributes (field.h).
struct Traits {
  Level level = Level::kInformation;
  std::uint64_t keyword = 0;  // one bit for each category of the provider that the event belongs to
  Opcode opcode = Opcode::kInfo;
  std::uint16_t id = 0;      // stable number of the event; 0: no number
  std::uint8_t version = 0;  // for an event with an id: incremented when its fields change
  std::uint16_t tag = 0;     // a number whose meaning the provider defines; 0: no tag
};

namespace internal {

template <typename... Ts>
struct TypeList {};
template <typename List, typename... Parts>
struct FieldsAmong;
template <typename... Fields>
struct FieldsAmong<TypeList<Fields...>> {
  using Type = TypeList<Fields...>;
};
template <typename... Fields, typename Part, typename... Rest>
struct FieldsAmong<TypeList<Fields...>, Part, Rest...>
    : FieldsAmong<
          std::conditional_t<kIsField<Part>, TypeList<Fields..., Part>, TypeList<Fields...>>,
          Rest...> {};
template <bool kAll, typename... Parts>
struct FieldsOf : FieldsAmong<TypeList<>, Parts...> {};
template <typename... Parts>
struct FieldsOf<true, Parts...> {
  using Type = TypeList<Parts...>;
};

template <typename Part>
constexpr FieldFacts FactsOfPart() noexcept {
  constexpr bool kIsPart = kIsField<Part> || kIsAttribute<Part>;
  static_assert(kIsPart, "only Fields and Attributes may follow the traits of an event");
  if constexpr (kIsPart) return Part::Facts();
  return {};
}

// Holds the constant part of an event (header and metadata), and checks its fields at compile time.
template <FixedString kName, Traits kTraits, typename... Parts>
struct Described {
  static_assert(IsValidName(kName.view()),
                "an event's name must not be empty or contain ';' or NUL");
  static_assert(kTraits.level != Level::kInvalid, "an event's level is at least 1");

  struct Facts {
    FieldFacts parts[sizeof...(Parts) + 1];
  };
  static constexpr Facts kFacts{{FactsOfPart<Parts>()..., {}}};
  static constexpr Totals kTotals = TotalsOf(kFacts.parts, sizeof...(Parts));
  static constexpr std::size_t kMetadata = kName.size() + 1 + kTotals.metadata;
  static constexpr std::size_t kHeadSize =
      sizeof(wire::Header) + sizeof(wire::ExtensionHeader) + kMetadata;
  static_assert(kHeadSize <= kMaxEventSize,
                "the event's names alone exceed the maximum event size, 8184 bytes");
  static_assert(
      kHeadSize + kTotals.minimum <= kMaxEventSize,
      "the event can never be written: its names and fixed-size fields together exceed the "
      "maximum event size, 8184 bytes");
  static_assert(kTotals.fields <= kMaxFields,
                "an event has at most 1024 fields, including the members of structs");
  static_assert(kTotals.nesting <= kMaxStructNesting, "structs are nested at most 8 deep");
  static_assert(!HasRepeatedName(kFacts.parts, 0, sizeof...(Parts)),
                EVENTHEADER_INTERNAL_REPEATED_NAME);

  [[gnu::visibility("hidden")]] static constexpr auto kEvent =
      MakeStaticEvent<kMetadata, kTotals.pieces>(
          {kNativeFlags | kFlagExtension, kTraits.version, kTraits.id, kTraits.tag,
           static_cast<std::uint8_t>(kTraits.opcode), static_cast<std::uint8_t>(kTraits.level)},
          kName.view(), kFacts.parts, sizeof...(Parts));
};

// The base of Event, with all its functions. `List` is the TypeList of the event's Fields.
template <auto& kProvider, Traits kTraits, typename Description, typename List>
class EventBase;

template <auto& kProvider, Traits kTraits, typename Description, typename... Fields>
class EventBase<kProvider, kTraits, Description, TypeList<Fields...>> {
  using Static = StaticSet<kProvider, kTraits.level, kTraits.keyword>;

 public:
  // Returns whether the tracepoint is enabled. Callers use it to skip the computation of expensive
  // arguments. While none of the provider's tracepoints is enabled, this is a load, a test and a
  // branch.
  [[gnu::always_inline]] bool enabled() const noexcept { return Static::enabled(); }

  [[gnu::always_inline]] WriteResult Write(
      Parameter<typename Fields::Type>... values) const noexcept {
    if (!enabled()) [[likely]]
      return WriteResult::kDisabled;
    EVENTHEADER_INTERNAL_NOTE_EVENT(Static::set, Description::kEvent.start);
    return WriteStatic<typename Fields::Type...>(Static::set, Description::kEvent.start, nullptr,
                                                 values...);
  }

  [[gnu::always_inline]] WriteResult Write(
      const Activity& activity, Parameter<typename Fields::Type>... values) const noexcept {
    if (!enabled()) [[likely]]
      return WriteResult::kDisabled;
    EVENTHEADER_INTERNAL_NOTE_EVENT(Static::set, Description::kEvent.start);
    return WriteStatic<typename Fields::Type...>(Static::set, Description::kEvent.start, &activity,
                                                 values...);
  }

  // Writes the event. Each field has the default value of its type, such as 0 or an empty text.
  WriteResult WriteDefaults(const Activity& activity) const noexcept {
    static_assert((std::is_default_constructible_v<typename Fields::Type> && ...),
                  "each field of the stop event of an ActivityScope must have a default value");
    return Write(activity, std::remove_cvref_t<Parameter<typename Fields::Type>>{}...);
  }

  static constexpr Opcode kOpcode = kTraits.opcode;

  // Returns the event's tracepoint, which all events of this provider, level and keyword share.
  [[gnu::always_inline]] const EventSet& set() const noexcept { return Static::set; }
};

}  // namespace internal

// A static event. `kProvider` is a provider with static storage. `Parts` are Fields and Attributes.
// Write() takes the values of the fields in their order, optionally after an Activity.
template <auto& kProvider, FixedString kName, Traits kTraits, typename... Parts>
class Event : public internal::EventBase<
                  kProvider, kTraits, internal::Described<kName, kTraits, Parts...>,
                  typename internal::FieldsOf<(internal::kIsField<Parts> && ...), Parts...>::Type> {
  // Instantiates Described, so that compilers report errors in the line that defines the event.
  static_assert(internal::Described<kName, kTraits, Parts...>::kEvent.start.head_size != 0);
};

}  // namespace eh

// Writes one event in one statement. The arguments are evaluated only if the event is enabled:
//   EVENTHEADER_WRITE(request_done, path, CostlyToMake());
#define EVENTHEADER_WRITE(event, ...)                  \
  do {                                                 \
    if ((event).enabled()) (event).Write(__VA_ARGS__); \
  } while (false)

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_EVENT_H_
