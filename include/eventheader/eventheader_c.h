/* The stable C ABI of libeventheader, for C99 and for other languages to bind to: providers, the
 * state of the transport, event sets, events with prepared metadata, the dynamic builder, and new
 * activity ids.
 *
 * eh_write and eh_builder_write return 0 or an errno. The errno is EBADF if the event set is not
 * enabled, E2BIG if the event is too big, and EINVAL if it is not well formed. All other errors are
 * those of the transport. If events of a provider fail in several threads at the same time, the
 * returned errno may be that of an event of another thread. The variable errno does not change,
 * except if a create function returns NULL. Strings are UTF-8 and NUL-terminated. Names of events
 * and fields are not empty and contain no ';'. A pointer must not be NULL unless its description
 * allows NULL.
 **/
#ifndef EVENTHEADER_EVENTHEADER_C_H_
#define EVENTHEADER_EVENTHEADER_C_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Only libeventheader-c.so exports these functions; see libeventheader/meson.build. */
#ifdef EVENTHEADER_C_SHARED
#pragma GCC visibility push(default)
#endif

typedef struct eh_provider eh_provider;
typedef struct eh_event_set eh_event_set;
typedef struct eh_builder eh_builder;

/* Events since the provider was created, by result. Exact while no event is being written. */
typedef struct eh_counters {
  uint64_t written;
  uint64_t too_big;
  uint64_t invalid;
  uint64_t failed;
  int last_error; /* errno of the latest failed event; 0: none has failed */
} eh_counters;

/* Constants of the EventHeader specification. In the metadata for eh_write, the byte of an encoding
 * also contains the flag of its arity, and EH_HAS_FORMAT if a format byte follows. */
enum {
  EH_LEVEL_CRITICAL_ERROR = 1,
  EH_LEVEL_ERROR = 2,
  EH_LEVEL_WARNING = 3,
  EH_LEVEL_INFORMATION = 4,
  EH_LEVEL_VERBOSE = 5
};
enum { EH_OPCODE_INFO = 0, EH_OPCODE_ACTIVITY_START = 1, EH_OPCODE_ACTIVITY_STOP = 2 };
enum { EH_SCALAR = 0, EH_CONSTANT_ARRAY = 1, EH_VARIABLE_ARRAY = 2 };
enum { EH_CONSTANT_ARRAY_FLAG = 0x20, EH_VARIABLE_ARRAY_FLAG = 0x40, EH_HAS_FORMAT = 0x80 };
enum {
  EH_ENCODING_STRUCT = 1,
  EH_ENCODING_VALUE8 = 2,
  EH_ENCODING_VALUE16 = 3,
  EH_ENCODING_VALUE32 = 4,
  EH_ENCODING_VALUE64 = 5,
  EH_ENCODING_VALUE128 = 6,
  EH_ENCODING_ZSTRING8 = 7, /* NUL-terminated text; 8, 16, 32: bits of a character */
  EH_ENCODING_ZSTRING16 = 8,
  EH_ENCODING_ZSTRING32 = 9,
  EH_ENCODING_STRING8 = 10, /* a uint16_t count of characters, then the characters */
  EH_ENCODING_STRING16 = 11,
  EH_ENCODING_STRING32 = 12,
  EH_ENCODING_BINARY = 13 /* a uint16_t count of bytes, then the bytes */
};
enum {
  EH_FORMAT_DEFAULT = 0, /* by encoding: unsigned integer, UTF text or hexadecimal bytes */
  EH_FORMAT_UNSIGNED_INT = 1,
  EH_FORMAT_SIGNED_INT = 2,
  EH_FORMAT_HEX_INT = 3,
  EH_FORMAT_ERRNO = 4,
  EH_FORMAT_PID = 5,
  EH_FORMAT_TIME = 6, /* seconds since 1970 */
  EH_FORMAT_BOOLEAN = 7,
  EH_FORMAT_FLOAT = 8,
  EH_FORMAT_HEX_BYTES = 9,
  EH_FORMAT_STRING8 = 10, /* Latin-1 */
  EH_FORMAT_STRING_UTF = 11,
  EH_FORMAT_STRING_UTF_BOM = 12,
  EH_FORMAT_STRING_XML = 13,
  EH_FORMAT_STRING_JSON = 14,
  EH_FORMAT_UUID = 15,
  EH_FORMAT_PORT = 16, /* network byte order */
  EH_FORMAT_IP_ADDRESS = 17
};

typedef struct eh_activity {
  const uint8_t* id;      /* 16 bytes, or NULL: the event has no activity */
  const uint8_t* related; /* 16 bytes, or NULL */
} eh_activity;

/* Creates a provider. `name` and `group` ("" or NULL: no group) are copied. If one of them is
 * invalid, the status of each set of the provider is EINVAL. Returns NULL if memory is exhausted.
 * Thread-safe. */
eh_provider* eh_provider_create(const char* name, const char* group);
/* Destroys the provider. All of its sets must be destroyed before. NULL is allowed. */
void eh_provider_destroy(eh_provider* provider);
/* Returns 0 if every set of the provider is registered, else the errno of a set that is not
 * registered: see eh_status_text. Returns ENOTCONN if the provider has no sets yet. Thread-safe. */
int eh_provider_status(const eh_provider* provider);
/* Tries again to register the sets that are not registered, or whose descriptor the program has
 * closed. Returns the result of eh_provider_status. Thread-safe. */
int eh_provider_retry(eh_provider* provider);
/* Stores the provider's counts of events in `counters`. Thread-safe. */
void eh_provider_counters(const eh_provider* provider, eh_counters* counters);
/* Returns one line of static text that explains a status and names a remedy; "registered" for 0. */
const char* eh_status_text(int status);

/* How the events of this program reach the collector: see eh::TransportState (provider.h). */
enum {
  EH_TRANSPORT_NOT_USED = 0,
  EH_TRANSPORT_USER_EVENTS = 1,
  EH_TRANSPORT_RING_WAITING = 2,
  EH_TRANSPORT_RING_CONNECTED = 3,
  EH_TRANSPORT_RING_FAILED = 4,
  EH_TRANSPORT_OFF = 5,
  EH_TRANSPORT_UNAVAILABLE = 6
};
/* Returns the state of the transport. Writes one line that explains the state to `text`,
 * NUL-terminated and cut to `size` bytes; `text` may be NULL if `size` is 0. Thread-safe. */
int eh_describe_transport(char* text, size_t size);
/* Does the work of the helper thread of rings in user space, if EVENTHEADER_THREAD=0 has switched
 * the thread off. Connects to a collector, and enables the event sets that the collector records.
 * See eh::PollTransport (provider.h). Does not wait for the collector. Call it about once a second.
 * Returns the state. Thread-safe. */
int eh_poll_transport(void);

/* Creates a set. Returns NULL if memory is exhausted. A set that could not be registered is
 * disabled: see its status. */
eh_event_set* eh_event_set_create(eh_provider* provider, uint8_t level, uint64_t keyword);
/* Unregisters and destroys the set. No event may be written to it at the same time. NULL is
 * allowed. */
void eh_event_set_destroy(eh_event_set* set);
/* Returns 0 if the set is registered, else an errno: see eh_status_text. Thread-safe. */
int eh_event_set_status(const eh_event_set* set);
/* Returns whether the set is enabled. Async-signal-safe. */
bool eh_event_set_enabled(const eh_event_set* set);
/* Returns a word of memory, and stores a bit of it in `mask`: while the set is enabled, this bit of
 * the word is 1. Languages whose calls of C are slow can read the word instead of calling
 * eh_event_set_enabled. Another thread or the kernel may change the word at any time: load all 64
 * bits at once, and load them again for each event. The word is valid as long as the provider. If
 * the set is not registered, the mask is 0. Thread-safe. */
const volatile uint64_t* eh_event_set_enable_word(const eh_event_set* set, uint64_t* mask);

/* An event with metadata (name and field definitions, as on the wire) that the caller has
 * prepared. */
typedef struct eh_event {
  uint16_t id;
  uint8_t version;
  uint8_t opcode;
  uint16_t tag;
  uint16_t metadata_size;
  const void* metadata;
} eh_event;
/* Writes an event with the payload `data`, as on the wire, which may be NULL if `data_size` is 0.
 * The caller must ensure that metadata and payload are valid: eh_write checks only that the event
 * has a name. `activity` may be NULL. Async-signal-safe. */
int eh_write(const eh_event_set* set, const eh_event* event, const eh_activity* activity,
             const void* data, size_t data_size);

/* Creates a builder for events whose name and fields are known only at run time. Use it in one
 * thread at a time. It can be reused for any number of events without allocating. Returns NULL if
 * memory is exhausted. */
eh_builder* eh_builder_create(void);
/* Destroys the builder. NULL is allowed. */
void eh_builder_destroy(eh_builder* builder);
/* Begins a new event. */
void eh_builder_reset(eh_builder* builder, const char* name);
/* Sets the stable number of the event (0: no number), and the version of its fields. */
void eh_builder_set_id(eh_builder* builder, uint16_t id, uint8_t version);
/* Sets the tag of the event, a number whose meaning the provider defines; 0: no tag. */
void eh_builder_set_tag(eh_builder* builder, uint16_t tag);
void eh_builder_set_opcode(eh_builder* builder, uint8_t opcode);
/* Adds a field. `count` is the number of elements of a constant array, 1..65535, else 0. `data` is
 * the payload as on the wire, including counts and lengths. It is empty if eh_builder_add_data adds
 * the payload later. If the payload does not match the other arguments, eh_builder_write returns
 * EINVAL. */
void eh_builder_add_raw(eh_builder* builder, const char* name, uint8_t encoding, uint8_t arity,
                        uint16_t count, uint8_t format, uint16_t tag, const void* data,
                        size_t data_size);
/* Add a field of the type that the function names. Names and values are copied. */
void eh_builder_add_int32(eh_builder* builder, const char* name, int32_t value);
void eh_builder_add_int64(eh_builder* builder, const char* name, int64_t value);
void eh_builder_add_uint64(eh_builder* builder, const char* name, uint64_t value);
void eh_builder_add_bool(eh_builder* builder, const char* name, bool value);
void eh_builder_add_double(eh_builder* builder, const char* name, double value);
void eh_builder_add_string(eh_builder* builder, const char* name, const char* value);
/* Add a text that needs no NUL. `value` has `size` bytes of UTF-8, or `units` code units of UTF-16.
 * It may be NULL if `size` or `units` is 0. */
void eh_builder_add_string_n(eh_builder* builder, const char* name, const char* value, size_t size);
void eh_builder_add_string_utf16(eh_builder* builder, const char* name, const uint16_t* value,
                                 size_t units);
/* Add a variable array of `count` values, at most 65535. `values` may be NULL if `count` is 0. */
void eh_builder_add_int64_array(eh_builder* builder, const char* name, const int64_t* values,
                                size_t count);
void eh_builder_add_double_array(eh_builder* builder, const char* name, const double* values,
                                 size_t count);
void eh_builder_add_string_array(eh_builder* builder, const char* name, const char* const* values,
                                 size_t count);
/* Add a field that readers show in the format that the function names. `uuid` is 16 bytes in the
 * order of the text form. `address` is 4 or 16 bytes in network byte order. `seconds` is the time
 * since 1970. */
void eh_builder_add_uuid(eh_builder* builder, const char* name, const uint8_t* uuid);
void eh_builder_add_ip4(eh_builder* builder, const char* name, const uint8_t* address);
void eh_builder_add_ip6(eh_builder* builder, const char* name, const uint8_t* address);
void eh_builder_add_time(eh_builder* builder, const char* name, int64_t seconds);
void eh_builder_add_binary(eh_builder* builder, const char* name, const void* data, size_t size);
/* Begins a struct. Returns the `where` for eh_builder_set_struct_fields, which must be called when
 * the number of members is known. */
size_t eh_builder_start_struct(eh_builder* builder, const char* name);
/* Begins an array of structs, and returns the `where` for eh_builder_set_struct_fields. `arity` and
 * `count` are those of eh_builder_add_raw. Add the definition of each member once, by
 * eh_builder_add_raw without data. Then add the payload of all elements by eh_builder_add_data; in
 * a variable array, a uint16_t count of elements comes first. */
size_t eh_builder_start_struct_array(eh_builder* builder, const char* name, uint8_t arity,
                                     uint16_t count, uint16_t tag);
/* Appends bytes to the payload of the event: values of the fields in the wire format, including
 * counts and lengths. */
void eh_builder_add_data(eh_builder* builder, const void* data, size_t data_size);
/* Sets the number of members, 1 to 127, of the struct for which eh_builder_start_struct or
 * eh_builder_start_struct_array returned `where`. */
void eh_builder_set_struct_fields(eh_builder* builder, size_t where, unsigned fields);
/* Returns the errno with which eh_builder_write would refuse the event: EINVAL or E2BIG; 0 if the
 * event is valid. Needs no set, so a program can check events that no collector records. An
 * activity can still make the event too big. If fields were added by eh_builder_add_raw without
 * data or by eh_builder_add_data, the call decodes the whole payload. */
int eh_builder_error(const eh_builder* builder);
/* Writes the event if `set` is enabled. The builder keeps the event, so that it can be written
 * again. `activity` may be NULL. */
int eh_builder_write(const eh_builder* builder, const eh_event_set* set,
                     const eh_activity* activity);

/* Fills `id` (16 bytes) with a new activity id. PerfView matches start and stop events only if
 * their ids come from this function or have the same form; see activity.h. */
void eh_new_activity_id(uint8_t* id);
/* Fills `id` (16 bytes) with the activity that this thread works for, and returns true. Returns
 * false, and leaves `id` unchanged, if there is none. eh_write and eh_builder_write do not use the
 * thread's activity unless the caller passes it to them. */
bool eh_current_activity(uint8_t* id);
/* Replaces the activity that this thread works for by `id` (16 bytes, copied); NULL: none. */
void eh_set_current_activity(const uint8_t* id);

#ifdef EVENTHEADER_C_SHARED
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* EVENTHEADER_EVENTHEADER_C_H_ */
