// Events whose name and fields are known at compile time.
//
//     inline constinit eventheader::Provider provider("MyCompany_MyService");
//
//     inline constexpr eventheader::Event<
//         provider, "RequestDone", eventheader::Traits{.keyword = 0x1},
//         eventheader::Field<"path", std::string_view>,
//         eventheader::Field<"status", std::int32_t>> request_done;
//
//     request_done.Write("/index.html", 200);
//
// While nobody listens to the provider, Write is a load, a test and a branch. When somebody does,
// the event is put together in one piece on the stack and written with one system call. Write never
// allocates, locks, throws or changes errno, and may be called from any thread and signal handler.
#ifndef EVENTHEADER_EVENT_H_
#define EVENTHEADER_EVENT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eventheader {

// A literal as a template argument.
template <std::size_t kSize>
struct FixedString {
  consteval FixedString(const char (&text)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(text, kSize, chars);
  }
  constexpr std::string_view view() const { return {chars, kSize - 1}; }
  char chars[kSize] = {};
};

// What an event has besides its name and fields.
struct Traits {
  Level level = Level::kInformation;
  std::uint64_t keyword = 0;  // a bit for each of the provider's categories the event belongs to
  Opcode opcode = Opcode::kInfo;
  std::uint16_t id = 0;      // stable number of the event; 0: none
  std::uint8_t version = 0;  // of an event with an id: goes up when its fields change
  std::uint16_t tag = 0;
};

// A 128-bit id in RFC 4122 byte order.
using ActivityId = std::array<std::byte, 16>;

// What an event belongs to. The related id, that of the activity it comes from, is usually given
// with the first event of an activity only.
struct Activity {
  ActivityId id;
  const ActivityId* related = nullptr;
};

namespace detail {

// How a C++ type is written: its encoding and format bytes, the type by which Write takes it, its
// size, and its bytes.
template <typename T>
struct FieldType {
  static_assert(std::is_arithmetic_v<T>,
                "a field is bool, an integer, float, double, or std::string_view");
  static_assert(sizeof(T) <= 8, "a field has no more than 8 bytes");
  using Parameter = T;
  static constexpr std::uint8_t kEncoding =
      static_cast<std::uint8_t>(sizeof(T) == 1   ? Encoding::kValue8
                                : sizeof(T) == 2 ? Encoding::kValue16
                                : sizeof(T) == 4 ? Encoding::kValue32
                                                 : Encoding::kValue64);
  static constexpr Format kFormat = std::is_same_v<T, bool>       ? Format::kBoolean
                                    : std::is_floating_point_v<T> ? Format::kFloat
                                    : std::is_signed_v<T>         ? Format::kSignedInt
                                                                  : Format::kDefault;
  static std::size_t Size(T) noexcept { return sizeof(T); }
  static std::byte* Put(T value, std::byte* out) noexcept {
    std::memcpy(out, &value, sizeof value);
    return out + sizeof value;
  }
};

template <>
struct FieldType<std::string_view> {
  using Parameter = std::string_view;
  static constexpr std::uint8_t kEncoding =
      static_cast<std::uint8_t>(Encoding::kStringLength16Char8);
  static constexpr Format kFormat = Format::kDefault;
  static std::size_t Size(std::string_view text) noexcept { return 2 + text.size(); }
  static std::byte* Put(std::string_view text, std::byte* out) noexcept {
    const auto size = static_cast<std::uint16_t>(text.size());
    std::memcpy(out, &size, sizeof size);
    if (size != 0) std::memcpy(out + sizeof size, text.data(), size);
    return out + sizeof size + size;
  }
};

constexpr bool IsName(std::string_view name) {
  return name.find(';') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

constexpr std::uint8_t HostFlags() {
  return kFlagExtension | (sizeof(void*) == 8 ? kFlagPointer64 : 0) |
         (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? kFlagLittleEndian : 0);
}

// The set of all events of a provider with this level and keyword.
template <auto& kProvider, Level kLevel, std::uint64_t kKeyword>
inline EventSet event_set{kProvider, kLevel, kKeyword};

}  // namespace detail

// `T`: bool, an integer, float, double, or std::string_view (UTF-8), for which Write takes whatever
// converts to it.
template <FixedString kFieldName, typename T>
struct Field {
  static_assert(detail::IsName(kFieldName.view()), "a field's name contains ';' or NUL");
  static constexpr std::string_view kName = kFieldName.view();
  using Type = detail::FieldType<T>;
};

template <auto& kProvider, FixedString kName, Traits kTraits, typename... Fields>
class Event {
  static_assert(detail::IsName(kName.view()), "an event's name contains ';' or NUL");
  static_assert(kTraits.level != Level::kInvalid, "an event's level is at least 1");

 public:
  // Somebody listens to events of this level and keyword. For arguments that are costly to make.
  bool enabled() const noexcept { return kProvider.enabled() && set().enabled(); }

  WriteResult Write(typename Fields::Type::Parameter... values) const noexcept {
    if (!kProvider.enabled()) [[likely]] {
      return WriteResult::kDisabled;
    }
    return WriteEnabled(nullptr, values...);
  }

  WriteResult Write(const Activity& activity,
                    typename Fields::Type::Parameter... values) const noexcept {
    if (!kProvider.enabled()) [[likely]] {
      return WriteResult::kDisabled;
    }
    return WriteEnabled(&activity, values...);
  }

 private:
  static EventSet& set() noexcept {
    return detail::event_set<kProvider, kTraits.level, kTraits.keyword>;
  }

  static constexpr std::size_t kMetadataSize =
      kName.view().size() + 1 +
      (0 + ... + (Fields::kName.size() + 2 + (Fields::Type::kFormat != Format::kDefault)));
  static_assert(sizeof(Header) + sizeof(ExtensionHeader) + kMetadataSize <= kMaxEventSize,
                "the names of the event and its fields do not fit into an event");

  // The metadata extension, with its header.
  static constexpr auto kMetadata = [] {
    std::array<char, sizeof(ExtensionHeader) + kMetadataSize> bytes = {};
    char* out = bytes.data();
    const auto put = [&out](std::uint8_t byte) { *out++ = static_cast<char>(byte); };
    const auto put16 = [&put](std::uint16_t value) {
      const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
      put(static_cast<std::uint8_t>(little ? value & 0xFF : value >> 8));
      put(static_cast<std::uint8_t>(little ? value >> 8 : value & 0xFF));
    };
    put16(static_cast<std::uint16_t>(kMetadataSize));
    put16(kExtensionMetadata);
    out = std::copy(kName.view().begin(), kName.view().end(), out);
    put(0);
    [[maybe_unused]] const auto put_field = [&](std::string_view name, std::uint8_t encoding,
                                                Format format) {
      out = std::copy(name.begin(), name.end(), out);
      put(0);
      if (format == Format::kDefault) {
        put(encoding);
      } else {
        put(encoding | kEncodingHasFormat);
        put(static_cast<std::uint8_t>(format));
      }
    };
    (put_field(Fields::kName, Fields::Type::kEncoding, Fields::Type::kFormat), ...);
    return bytes;
  }();

  [[gnu::noinline]] static WriteResult WriteEnabled(
      const Activity* activity, typename Fields::Type::Parameter... values) noexcept {
    if (!set().enabled()) return WriteResult::kDisabled;
    const std::size_t activity_size =
        activity == nullptr
            ? 0
            : sizeof(ExtensionHeader) + sizeof(ActivityId) * (activity->related == nullptr ? 1 : 2);
    const std::size_t size = sizeof(Header) + activity_size + kMetadata.size() +
                             (std::size_t{0} + ... + Fields::Type::Size(values));
    if (size > kMaxEventSize) return set().RefuseTooBig();

    std::byte record[kRecordPrefix + kMaxEventSize];  // only what is written to is ever touched
    std::byte* out = record + kRecordPrefix;
    static constexpr Header kHeader = {
        detail::HostFlags(),
        kTraits.version,
        kTraits.id,
        kTraits.tag,
        static_cast<std::uint8_t>(kTraits.opcode),
        static_cast<std::uint8_t>(kTraits.level),
    };
    std::memcpy(out, &kHeader, sizeof kHeader);
    out += sizeof kHeader;
    if (activity != nullptr) out = PutActivity(*activity, activity_size, out);
    std::memcpy(out, kMetadata.data(), kMetadata.size());
    out += kMetadata.size();
    ((out = Fields::Type::Put(values, out)), ...);
    return set().Write(std::span(record, kRecordPrefix + size));
  }

  static std::byte* PutActivity(const Activity& activity, std::size_t size,
                                std::byte* out) noexcept {
    const ExtensionHeader header = {static_cast<std::uint16_t>(size - sizeof header),
                                    kExtensionActivityId | kExtensionChain};
    std::memcpy(out, &header, sizeof header);
    out += sizeof header;
    std::memcpy(out, activity.id.data(), activity.id.size());
    out += activity.id.size();
    if (activity.related != nullptr) {
      std::memcpy(out, activity.related->data(), activity.related->size());
      out += activity.related->size();
    }
    return out;
  }
};

}  // namespace eventheader

#endif  // EVENTHEADER_EVENT_H_
