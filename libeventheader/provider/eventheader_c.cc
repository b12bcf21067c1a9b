#include "eventheader/eventheader_c.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>

#include "eventheader/activity.h"
#include "eventheader/dynamic_event.h"
#include "eventheader/formatted.h"
#include "eventheader/internal/static_objects.h"
#include "eventheader/provider.h"
#include "libeventheader/provider/record.h"

using eh::ActivityId;

// The provider is the first member, so that an eh_static_provider can be used as an eh_provider.
struct eh_provider {
  // Copies at most 255 bytes of a name or group. If a name is longer, its first 255 bytes are
  // already too long for a tracepoint name, which also has a level and keyword. The status of every
  // set is then EINVAL.
  eh_provider(const char* from_name, const char* from_group) noexcept
      : provider(Copy(from_name, name), Copy(from_group, group)) {}
  static std::string_view Copy(const char* from, char* to) noexcept {
    if (from == nullptr) return {};
    const std::size_t size = strnlen(from, eh::kMaxTracepointName);
    std::memcpy(to, from, size);
    return {to, size};
  }
  eh::DynamicProvider provider;
  char name[eh::kMaxTracepointName + 1];
  char group[eh::kMaxTracepointName + 1];
};
struct eh_event_set {
  eh::EventSet set;
};
struct eh_builder {
  eh::DynamicEvent event;
};

namespace {

// Returns "" for NULL, so that NULL is refused like an empty name.
std::string_view View(const char* name) noexcept { return name != nullptr ? name : ""; }

int ToErrno(eh::WriteResult result, const eh_event_set* set) noexcept {
  switch (result) {
    case eh::WriteResult::kWritten:
      return 0;
    case eh::WriteResult::kDisabled:
      return EBADF;
    case eh::WriteResult::kTooBig:
      return E2BIG;
    case eh::WriteResult::kInvalid:
      return EINVAL;
    case eh::WriteResult::kFailed:
      break;
  }
  return set->set.provider().counters().last_error;
}

// An Activity that is copied from an eh_activity, with storage for the related id.
class ActivityCopy {
 public:
  explicit ActivityCopy(const eh_activity* from) noexcept
      : given_(from != nullptr && from->id != nullptr) {
    if (!given_) return;
    std::memcpy(activity_.id.data(), from->id, sizeof(ActivityId));
    if (from->related == nullptr) return;
    std::memcpy(related_.data(), from->related, sizeof(ActivityId));
    activity_.related = &related_;
  }
  ActivityCopy(const ActivityCopy&) = delete;
  ActivityCopy& operator=(const ActivityCopy&) = delete;
  const eh::Activity* get() const noexcept { return given_ ? &activity_ : nullptr; }

 private:
  bool given_;
  ActivityId related_{};
  eh::Activity activity_{};
};

}  // namespace

namespace eh::internal {

// Checks that the layouts match the providers and event sets that C compilers build
// (internal/static_objects.h).
struct Layout {
  static_assert(sizeof(ProviderBase) <= sizeof(eh_static_provider) &&
                alignof(ProviderBase) == alignof(eh_static_provider));
  static_assert(offsetof(ProviderBase, enabled_) == offsetof(eh_static_provider, enabled) &&
                offsetof(ProviderBase, transport_) == offsetof(eh_static_provider, transport) &&
                offsetof(ProviderBase, name_) == offsetof(eh_static_provider, name) &&
                offsetof(ProviderBase, name_size_) == offsetof(eh_static_provider, name_size) &&
                offsetof(ProviderBase, group_) == offsetof(eh_static_provider, group) &&
                offsetof(ProviderBase, group_size_) == offsetof(eh_static_provider, group_size) &&
                offsetof(ProviderBase, used_bits_) == offsetof(eh_static_provider, used_bits));
  static_assert(sizeof(EventSet) <= sizeof(eh_static_set) &&
                alignof(EventSet) == alignof(eh_static_set));
  static_assert(offsetof(EventSet, mask_) == offsetof(eh_static_set, mask) &&
                offsetof(EventSet, provider_) == offsetof(eh_static_set, provider) &&
                offsetof(EventSet, keyword_) == offsetof(eh_static_set, keyword) &&
                offsetof(EventSet, status_) == offsetof(eh_static_set, status) &&
                offsetof(EventSet, level_) == offsetof(eh_static_set, level));
  static_assert(sizeof(ProviderBase::enabled_) == sizeof(std::uint64_t));

  static const volatile std::uint64_t* EnableWord(const EventSet& set, std::uint64_t* mask) {
    *mask = set.mask_.Load();
    return reinterpret_cast<const volatile std::uint64_t*>(&set.provider_->enabled_);
  }
};

}  // namespace eh::internal

extern "C" {

eh_provider* eh_provider_create(const char* name, const char* group) {
  return new (std::nothrow) eh_provider(name, group);
}
void eh_provider_destroy(eh_provider* provider) { delete provider; }
int eh_provider_status(const eh_provider* provider) { return provider->provider.status(); }
int eh_provider_retry(eh_provider* provider) { return provider->provider.Retry(); }
void eh_provider_counters(const eh_provider* provider, eh_counters* counters) {
  const auto from = provider->provider.counters();
  *counters = {from.written, from.too_big, from.invalid, from.failed, from.last_error};
}
int eh_describe_transport(char* text, size_t size) {
  return static_cast<int>(eh::DescribeTransport(text, size));
}
int eh_poll_transport(void) { return static_cast<int>(eh::PollTransport()); }
const char* eh_status_text(int status) { return eh::RegistrationErrorText(status); }

eh_event_set* eh_event_set_create(eh_provider* provider, uint8_t level, uint64_t keyword) {
  return new (std::nothrow)
      eh_event_set{{provider->provider, static_cast<eh::Level>(level), keyword}};
}
void eh_event_set_destroy(eh_event_set* set) { delete set; }
int eh_event_set_status(const eh_event_set* set) { return set->set.status(); }
bool eh_event_set_enabled(const eh_event_set* set) { return set->set.enabled(); }
const volatile uint64_t* eh_event_set_enable_word(const eh_event_set* set, uint64_t* mask) {
  return eh::internal::Layout::EnableWord(set->set, mask);
}

int eh_write(const eh_event_set* set, const eh_event* event, const eh_activity* activity,
             const void* data, size_t data_size) {
  if (!set->set.enabled()) return EBADF;
  // Checks only that the metadata begins with a name. The caller must ensure that the rest is
  // valid.
  const auto* name = static_cast<const char*>(event->metadata);
  if (event->metadata_size < 2 || name[0] == '\0' || name[0] == ';') {
    return ToErrno(set->set.Refuse(eh::WriteResult::kInvalid), set);
  }
  const eh::wire::Header header{0, event->version, event->id, event->tag, event->opcode, 0};
  return ToErrno(eh::internal::WriteRecord(
                     set->set, header, ActivityCopy(activity).get(),
                     {static_cast<const std::byte*>(event->metadata), event->metadata_size},
                     {static_cast<const std::byte*>(data), data_size}),
                 set);
}

eh_builder* eh_builder_create(void) { return new (std::nothrow) eh_builder; }
void eh_builder_destroy(eh_builder* builder) { delete builder; }
void eh_builder_reset(eh_builder* builder, const char* name) { builder->event.Reset(View(name)); }
void eh_builder_set_id(eh_builder* builder, uint16_t id, uint8_t version) {
  builder->event.SetId(id, version);
}
void eh_builder_set_tag(eh_builder* builder, uint16_t tag) { builder->event.SetTag(tag); }
void eh_builder_set_opcode(eh_builder* builder, uint8_t opcode) {
  builder->event.SetOpcode(static_cast<eh::Opcode>(opcode));
}
void eh_builder_add_raw(eh_builder* builder, const char* name, uint8_t encoding, uint8_t arity,
                        uint16_t count, uint8_t format, uint16_t tag, const void* data,
                        size_t data_size) {
  builder->event.AddRaw(View(name), static_cast<eh::Encoding>(encoding),
                        static_cast<eh::Arity>(arity), count, static_cast<eh::Format>(format), tag,
                        {static_cast<const std::byte*>(data), data_size});
}
void eh_builder_add_int32(eh_builder* builder, const char* name, int32_t value) {
  builder->event.AddField(View(name), value);
}
void eh_builder_add_int64(eh_builder* builder, const char* name, int64_t value) {
  builder->event.AddField(View(name), value);
}
void eh_builder_add_uint64(eh_builder* builder, const char* name, uint64_t value) {
  builder->event.AddField(View(name), value);
}
void eh_builder_add_bool(eh_builder* builder, const char* name, bool value) {
  builder->event.AddField(View(name), value);
}
void eh_builder_add_double(eh_builder* builder, const char* name, double value) {
  builder->event.AddField(View(name), value);
}
void eh_builder_add_string(eh_builder* builder, const char* name, const char* value) {
  builder->event.AddField(View(name), value);
}
void eh_builder_add_string_n(eh_builder* builder, const char* name, const char* value,
                             size_t size) {
  builder->event.AddField(View(name), std::string_view(value, size));
}
void eh_builder_add_string_utf16(eh_builder* builder, const char* name, const uint16_t* value,
                                 size_t units) {
  builder->event.AddField(View(name),
                          std::u16string_view(reinterpret_cast<const char16_t*>(value), units));
}
void eh_builder_add_int64_array(eh_builder* builder, const char* name, const int64_t* values,
                                size_t count) {
  builder->event.AddField(View(name), std::span(values, count));
}
void eh_builder_add_double_array(eh_builder* builder, const char* name, const double* values,
                                 size_t count) {
  builder->event.AddField(View(name), std::span(values, count));
}
void eh_builder_add_string_array(eh_builder* builder, const char* name, const char* const* values,
                                 size_t count) {
  builder->event.AddField(View(name), std::span(values, count));
}
void eh_builder_add_uuid(eh_builder* builder, const char* name, const uint8_t* uuid) {
  eh::Uuid value;
  std::memcpy(value.value.data(), uuid, value.value.size());
  builder->event.AddField(View(name), value);
}
void eh_builder_add_ip4(eh_builder* builder, const char* name, const uint8_t* address) {
  eh::Ip4 value;
  std::memcpy(value.value.data(), address, value.value.size());
  builder->event.AddField(View(name), value);
}
void eh_builder_add_ip6(eh_builder* builder, const char* name, const uint8_t* address) {
  eh::Ip6 value;
  std::memcpy(value.value.data(), address, value.value.size());
  builder->event.AddField(View(name), value);
}
void eh_builder_add_time(eh_builder* builder, const char* name, int64_t seconds) {
  builder->event.AddField(View(name), eh::Time(seconds));
}
void eh_builder_add_binary(eh_builder* builder, const char* name, const void* data, size_t size) {
  builder->event.AddField(View(name), std::span(static_cast<const std::byte*>(data), size));
}
size_t eh_builder_start_struct(eh_builder* builder, const char* name) {
  return builder->event.StartStruct(View(name));
}
size_t eh_builder_start_struct_array(eh_builder* builder, const char* name, uint8_t arity,
                                     uint16_t count, uint16_t tag) {
  return builder->event.StartStruct(View(name), static_cast<eh::Arity>(arity), count, tag);
}
void eh_builder_add_data(eh_builder* builder, const void* data, size_t data_size) {
  builder->event.AddData({static_cast<const std::byte*>(data), data_size});
}
void eh_builder_set_struct_fields(eh_builder* builder, size_t where, unsigned fields) {
  builder->event.SetStructFields(where, fields);
}
int eh_builder_error(const eh_builder* builder) {
  switch (builder->event.Check()) {
    case eh::WriteResult::kWritten:
      return 0;
    case eh::WriteResult::kTooBig:
      return E2BIG;
    default:
      return EINVAL;
  }
}
int eh_builder_write(const eh_builder* builder, const eh_event_set* set,
                     const eh_activity* activity) {
  return ToErrno(builder->event.Write(set->set, ActivityCopy(activity).get()), set);
}

uint8_t eh_write_static(const void* set, const eh_static_event* event, const void* fixed,
                        uint64_t size, const eh_activity* activity) {
  const auto& to = *static_cast<const eh::EventSet*>(set);
  if (activity == nullptr || activity->id == nullptr) {
    return static_cast<uint8_t>(to.WriteStatic(*event, fixed, size));
  }
  const ActivityCopy copy(activity);
  return static_cast<uint8_t>(to.WriteStatic(*event, fixed, size, *copy.get()));
}
void eh_register_sets(eh_static_set* const* begin, eh_static_set* const* end) {
  for (; begin != end; ++begin) {
    if (*begin != nullptr) reinterpret_cast<eh::EventSet*>(*begin)->Register();
  }
}
void eh_unregister_sets(eh_static_set* const* begin, eh_static_set* const* end) {
  for (; begin != end; ++begin) {
    if (*begin != nullptr) reinterpret_cast<eh::EventSet*>(*begin)->Unregister();
  }
}

void eh_new_activity_id(uint8_t* id) {
  const ActivityId made = eh::NewActivityId();
  std::memcpy(id, made.data(), made.size());
}
bool eh_current_activity(uint8_t* id) {
  const auto& current = eh::CurrentActivity();
  if (!current.has_value()) return false;
  std::memcpy(id, current->data(), current->size());
  return true;
}
void eh_set_current_activity(const uint8_t* id) {
  if (id == nullptr) {
    eh::SetCurrentActivity(std::nullopt);
    return;
  }
  ActivityId copy;
  std::memcpy(copy.data(), id, copy.size());
  eh::SetCurrentActivity(copy);
}

}  // extern "C"
