/* Macros that write an event in one statement, for C11 and later (gcc, clang). The arguments are
 * evaluated only if the event is enabled:
 *
 *     EVENTHEADER_DEFINE_PROVIDER(my_provider, "MyCompany_MyService");
 *
 *     EVENTHEADER_EVENT(my_provider, "RequestDone", EH_LEVEL_INFORMATION, 0x1,
 *                       EVENTHEADER_FIELD("path", path),
 *                       EVENTHEADER_FIELD("status", CostlyToMake()));
 *
 * While none of the provider's tracepoints is enabled, the macro is a load, a test and a branch.
 * Names, level and keyword are constants, and the metadata is built at compile time. With
 * user_events, an enabled event is assembled on the stack and written with one system call. With
 * rings in user space, most events are assembled in a ring without a system call. Writing does not
 * allocate, wait for a lock or change errno. The only exception is that the first event of a forked
 * child may start the helper thread of rings. Events may be written in any thread and signal
 * handler. The tracepoints are registered when the program starts or the shared object is loaded.
 * An event has the same bytes as with the C++17 macros (macros.h).
 *
 * Up to 97 parts may follow the keyword. Most parts are fields:
 *
 * - EVENTHEADER_FIELD("name", value)
 *   an integer, bool, character, float, double, text (char*; NULL is ""), or pointer; use
 *   EVENTHEADER_STRING for text of 16-bit or 32-bit characters; cast a pointer to unsigned short,
 *   int or unsigned to const void* to write the address
 * - EVENTHEADER_FIELD_AS("name", value, format)
 *   uses another format: EH_FORMAT_ERRNO, EH_FORMAT_PORT, ...
 * - EVENTHEADER_FIELD_TAGGED("name", value, format, tag)
 *   also has a tag; EH_FORMAT_DEFAULT is the format of the value's type
 * - EVENTHEADER_STRING("name", pointer, size)
 *   text of `size` characters of 8, 16 or 32 bits
 * - EVENTHEADER_ZSTRING("name", text)
 *   NUL-terminated text of 8-bit characters; the event contains the NUL too
 * - EVENTHEADER_BINARY("name", pointer, size)
 *   bytes
 * - EVENTHEADER_ARRAY("name", pointer, count)
 *   a variable array of the elements at `pointer`, which are numbers or pointers
 * - EVENTHEADER_CONSTANT_ARRAY("name", pointer, count)
 *   an array with a constant count
 * - EVENTHEADER_UUID("name", pointer)
 *   16 bytes, in the order of RFC 4122
 * - EVENTHEADER_IP4("name", pointer), EVENTHEADER_IP6("name", pointer)
 *   4 or 16 bytes in network byte order
 * - EVENTHEADER_STRUCT("name", number)
 *   a struct that contains the next `number` fields
 *
 * STRING, ZSTRING, BINARY, ARRAY and CONSTANT_ARRAY also exist with the suffix _AS and a format as
 * last argument. A character array is text up to its NUL, which it must contain; use
 * EVENTHEADER_STRING for an array without a NUL. The data that a pointer refers to must outlive the
 * argument's expression; an array in a struct that a function returns does not.
 *
 * The other parts may stand anywhere among the fields, each at most once:
 *
 * - EVENTHEADER_ACTIVITY(id) or EVENTHEADER_ACTIVITY(id, related)
 *   the activity that the event belongs to; each id is a uint8_t[16]
 * - EVENTHEADER_OPCODE(EH_OPCODE_ACTIVITY_START)
 * - EVENTHEADER_ID(id, version)
 * - EVENTHEADER_TAG(tag)
 *
 * EVENTHEADER_ENABLED(my_provider, level, keyword) returns whether events with this level and
 * keyword are enabled. Use it within a function, to skip work that only such events need.
 *
 * EVENTHEADER_PROVIDER(my_provider) is the eh_provider* for functions of eventheader_c.h, except
 * eh_provider_destroy: for status, counters, and event sets of dynamic events. If the name or group
 * is invalid, the provider's status is EINVAL.
 *
 * The macros cannot be used in a function that is inline but not static, because C does not allow
 * such a function to define static objects. In C++, this header includes macros.h instead. */
#ifndef EVENTHEADER_MACROS_C_H_
#define EVENTHEADER_MACROS_C_H_

#ifdef __cplusplus
#include "eventheader/macros.h"
#else

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "eventheader/eventheader_c.h"
#include "eventheader/internal/catalog_note.h"
#include "eventheader/internal/each.h"
#include "eventheader/internal/static_objects.h"

/* Defines a provider, at file scope, in one source file (with `static`: only for this file).
 * `name`: [A-Za-z_][A-Za-z0-9_]*, `group`: [a-z0-9]*. */
#define EVENTHEADER_DEFINE_PROVIDER(provider, name) \
  EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, "")
#define EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, group)                   \
  eh_static_provider provider = {                                                     \
      0, NULL, "" name, sizeof("" name) - 1, "" group, sizeof("" group) - 1, 0, {0}}; \
  _Static_assert(sizeof("" name) > 1 && sizeof("" name) <= 201,                       \
                 "a provider's name has 1 to 200 bytes");                             \
  _Static_assert(sizeof("" group) <= 25, "a provider's group has at most 24 bytes")
/* Declares a provider that another source file of the same program or shared object defines. */
#define EVENTHEADER_DECLARE_PROVIDER(provider) extern eh_static_provider provider

#define EVENTHEADER_PROVIDER(provider) ((eh_provider*)(void*)&(provider))

#define EVENTHEADER_ENABLED(provider, level, keyword)    \
  (__extension__({                                       \
    EVENTHEADER_INTERNAL_SET(provider, level, keyword);  \
    EVENTHEADER_INTERNAL_NOTE_SET(eventheader_set);      \
    EventheaderIsEnabled(&(provider), &eventheader_set); \
  }))

#define EVENTHEADER_EVENT(provider, ...)                                               \
  do {                                                                                 \
    EVENTHEADER_INTERNAL_SET(provider, EVENTHEADER_INTERNAL_SECOND(__VA_ARGS__, 0, 0), \
                             EVENTHEADER_INTERNAL_THIRD(__VA_ARGS__, 0, 0));           \
    if (EventheaderIsEnabled(&(provider), &eventheader_set)) {                         \
      EVENTHEADER_INTERNAL_WRITE(                                                      \
          EVENTHEADER_INTERNAL_FIRST(__VA_ARGS__, 0),                                  \
          EVENTHEADER_INTERNAL_SECOND(__VA_ARGS__, 0, 0), (EventheaderBegin, 0),       \
          EVENTHEADER_INTERNAL_AFTER_THIRD(__VA_ARGS__, (EventheaderNothing, 0)))      \
    }                                                                                  \
  } while (0)

#define EVENTHEADER_FIELD(name, value) EVENTHEADER_FIELD_TAGGED(name, value, EH_FORMAT_DEFAULT, 0)
#define EVENTHEADER_FIELD_AS(name, value, format) EVENTHEADER_FIELD_TAGGED(name, value, format, 0)
#define EVENTHEADER_FIELD_TAGGED(name, value, format, tag) \
  (EventheaderField, name, format, tag, value)
#define EVENTHEADER_STRING(name, pointer, size) \
  EVENTHEADER_STRING_AS(name, pointer, size, EH_FORMAT_DEFAULT)
#define EVENTHEADER_STRING_AS(name, pointer, size, format) \
  (EventheaderString, name, format, pointer, size)
#define EVENTHEADER_ZSTRING(name, text) EVENTHEADER_ZSTRING_AS(name, text, EH_FORMAT_DEFAULT)
#define EVENTHEADER_ZSTRING_AS(name, text, format) (EventheaderZString, name, format, text)
#define EVENTHEADER_BINARY(name, pointer, size) \
  EVENTHEADER_BINARY_AS(name, pointer, size, EH_FORMAT_DEFAULT)
#define EVENTHEADER_BINARY_AS(name, pointer, size, format) \
  (EventheaderBinary, name, format, pointer, size)
#define EVENTHEADER_ARRAY(name, pointer, count) \
  EVENTHEADER_ARRAY_AS(name, pointer, count, EH_FORMAT_DEFAULT)
#define EVENTHEADER_ARRAY_AS(name, pointer, count, format) \
  (EventheaderArray, name, format, pointer, count)
#define EVENTHEADER_CONSTANT_ARRAY(name, pointer, count) \
  EVENTHEADER_CONSTANT_ARRAY_AS(name, pointer, count, EH_FORMAT_DEFAULT)
#define EVENTHEADER_CONSTANT_ARRAY_AS(name, pointer, count, format) \
  (EventheaderConstantArray, name, format, pointer, count)
#define EVENTHEADER_UUID(name, pointer) \
  EVENTHEADER_FIELD(name, *(const EventheaderUuid*)(const void*)(pointer))
#define EVENTHEADER_IP4(name, pointer) \
  EVENTHEADER_FIELD(name, *(const EventheaderIp4*)(const void*)(pointer))
#define EVENTHEADER_IP6(name, pointer) \
  EVENTHEADER_FIELD(name, *(const EventheaderIp6*)(const void*)(pointer))
#define EVENTHEADER_STRUCT(name, number) (EventheaderStruct, name, number)
#define EVENTHEADER_ACTIVITY(...) (EventheaderActivity, __VA_ARGS__)
#define EVENTHEADER_OPCODE(opcode) (EventheaderOpcode, opcode)
#define EVENTHEADER_ID(id, version) (EventheaderId, id, version)
#define EVENTHEADER_TAG(tag) (EventheaderTag, tag)

/* Everything below is internal to the macros above. */

typedef struct __attribute__((packed, may_alias)) EventheaderUuid {
  uint8_t bytes[16];
} EventheaderUuid;
typedef struct __attribute__((packed, may_alias)) EventheaderIp4 {
  uint8_t bytes[4];
} EventheaderIp4;
typedef struct __attribute__((packed, may_alias)) EventheaderIp6 {
  uint8_t bytes[16];
} EventheaderIp6;

/* The first 12 bytes of an event without an activity. */
typedef struct __attribute__((packed)) EventheaderHeader {
  uint8_t flags;
  uint8_t version;
  uint16_t id;
  uint16_t tag;
  uint8_t opcode;
  uint8_t level;
  uint16_t metadata_size;
  uint16_t metadata_kind;
} EventheaderHeader;

/* The event sets of this program or shared object. Each source file with this header has a
 * constructor; the first constructor that runs registers the sets of all files. */
/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for a section */
extern eh_static_set* const __start_eventheader_sets[] __attribute__((weak, visibility("hidden")));
extern eh_static_set* const __stop_eventheader_sets[] __attribute__((weak, visibility("hidden")));
__attribute__((constructor)) static void EventheaderRegister(void) {
  eh_register_sets(__start_eventheader_sets, __stop_eventheader_sets);
}
__attribute__((destructor)) static void EventheaderUnregister(void) {
  eh_unregister_sets(__start_eventheader_sets, __stop_eventheader_sets);
}
/* NOLINTEND(bugprone-reserved-identifier) */

__attribute__((always_inline)) static inline bool EventheaderIsEnabled(
    const eh_static_provider* provider, const eh_static_set* set) {
  const uint64_t word = __atomic_load_n(&provider->enabled, __ATOMIC_RELAXED);
  if (__builtin_expect(word == 0, 1)) return false;
  return (word & __atomic_load_n(&set->mask, __ATOMIC_RELAXED)) != 0;
}

/* Declared only to report an error: EVENTHEADER_INTERNAL_CHECK_NAME calls this function if a name
 * is invalid, and the compiler rejects calls that remain after optimization. */
__attribute__((error("a name must not be empty or contain ';' or NUL"))) void
EventheaderNameIsNotValid(void);
__attribute__((always_inline)) static inline size_t EventheaderLength(const char* text) {
  return text != NULL ? strlen(text) : 0;
}
/* Limits a size from the caller, which may be invalid, such as -1 from a failed read. An event with
 * 64 KiB is refused as too big, and a sum of limited sizes does not overflow. */
__attribute__((always_inline)) static inline size_t EventheaderAtMost64K(size_t size) {
  return size < 0x10000 ? size : 0x10000;
}

#if defined(__has_attribute)
#if __has_attribute(retain)
#define EVENTHEADER_INTERNAL_RETAIN , retain
#endif
#endif
#ifndef EVENTHEADER_INTERNAL_RETAIN
#define EVENTHEADER_INTERNAL_RETAIN
#endif

#define EVENTHEADER_INTERNAL_SET(provider, event_level, event_keyword)                        \
  _Static_assert((event_level) >= 1 && (event_level) <= 255, "an event's level is 1 to 255"); \
  static eh_static_set eventheader_set = {                                                    \
      0, &(provider), (event_keyword), ENOTCONN, (uint8_t)(event_level), {0}};                \
  static eh_static_set* eventheader_registered                                                \
      __attribute__((section("eventheader_sets"), used EVENTHEADER_INTERNAL_RETAIN)) =        \
          &eventheader_set

#define EVENTHEADER_INTERNAL_CHECK_NAME(name)                                     \
  if (sizeof("" name) == 1 || __builtin_strlen("" name) != sizeof("" name) - 1 || \
      __builtin_strchr("" name, ';') != NULL)                                     \
    EventheaderNameIsNotValid();

/* The encoding of a value's type, plus its format << 8. Pointers, except those to text, take the
 * `default` branch. */
#define EVENTHEADER_INTERNAL_CODE(value) \
  _Generic((value),                                                                          \
      _Bool: EH_ENCODING_VALUE8 | EH_FORMAT_BOOLEAN << 8,                                    \
      char: EH_ENCODING_VALUE8 | EH_FORMAT_STRING8 << 8,                                     \
      signed char: EH_ENCODING_VALUE8 | EH_FORMAT_SIGNED_INT << 8,                           \
      unsigned char: EH_ENCODING_VALUE8,                                                     \
      short: EH_ENCODING_VALUE16 | EH_FORMAT_SIGNED_INT << 8,                                \
      unsigned short: EH_ENCODING_VALUE16,                                                   \
      int: EH_ENCODING_VALUE32 | EH_FORMAT_SIGNED_INT << 8,                                  \
      unsigned: EH_ENCODING_VALUE32,                                                         \
      long: EVENTHEADER_INTERNAL_VALUE_OF(long) | EH_FORMAT_SIGNED_INT << 8,                 \
      unsigned long: EVENTHEADER_INTERNAL_VALUE_OF(long),                                    \
      long long: EH_ENCODING_VALUE64 | EH_FORMAT_SIGNED_INT << 8,                            \
      unsigned long long: EH_ENCODING_VALUE64,                                               \
      float: EH_ENCODING_VALUE32 | EH_FORMAT_FLOAT << 8,                                     \
      double: EH_ENCODING_VALUE64 | EH_FORMAT_FLOAT << 8,                                    \
      char*: EH_ENCODING_STRING8,                                                            \
      const char*: EH_ENCODING_STRING8,                                                      \
      EventheaderUuid: EH_ENCODING_VALUE128 | EH_FORMAT_UUID << 8,                           \
      EventheaderIp4: EH_ENCODING_VALUE32 | EH_FORMAT_IP_ADDRESS << 8,                       \
      EventheaderIp6: EH_ENCODING_VALUE128 | EH_FORMAT_IP_ADDRESS << 8,                      \
      default: EVENTHEADER_INTERNAL_VALUE_OF(void*) | EH_FORMAT_HEX_INT << 8)
#define EVENTHEADER_INTERNAL_VALUE_OF(Type) \
  (sizeof(Type) == 8 ? EH_ENCODING_VALUE64 : EH_ENCODING_VALUE32)
/* Encoding of text that consists of characters of this type. */
#define EVENTHEADER_INTERNAL_TEXT_CODE(character)  \
  (sizeof(character) == 1   ? EH_ENCODING_STRING8  \
   : sizeof(character) == 2 ? EH_ENCODING_STRING16 \
                            : EH_ENCODING_STRING32)
#define EVENTHEADER_INTERNAL_IS_TEXT(value) \
  _Generic((value), char* : 1, const char* : 1, default : 0)
/* Refuses pointers to integers that may be char16_t, char32_t or wchar_t: the event would contain
 * the address instead of the text. */
#define EVENTHEADER_INTERNAL_CHECK_WIDE(value)                                              \
  _Static_assert(                                                                           \
      _Generic((value), unsigned short* : 0, const unsigned short* : 0, unsigned* : 0,      \
               const unsigned* : 0, int* : 0, const int* : 0, default : 1),                 \
      "a pointer to 16- or 32-bit integers may be text: write text by EVENTHEADER_STRING, " \
      "and an address as a const void*");

/* The encodings that allow a format: bit n for encoding n. */
#define EVENTHEADER_INTERNAL_ENCODINGS_OF(format)                                       \
  ((format) == EH_FORMAT_DEFAULT || (format) == EH_FORMAT_HEX_BYTES            ? 0x3FFC \
   : (format) >= EH_FORMAT_UNSIGNED_INT && (format) <= EH_FORMAT_HEX_INT       ? 0x243C \
   : (format) == EH_FORMAT_ERRNO || (format) == EH_FORMAT_PID                  ? 0x2410 \
   : (format) == EH_FORMAT_TIME || (format) == EH_FORMAT_FLOAT                 ? 0x2430 \
   : (format) == EH_FORMAT_BOOLEAN                                             ? 0x241C \
   : (format) == EH_FORMAT_STRING8                                             ? 0x2484 \
   : (format) == EH_FORMAT_STRING_UTF                                          ? 0x3F98 \
   : (format) >= EH_FORMAT_STRING_UTF_BOM && (format) <= EH_FORMAT_STRING_JSON ? 0x3F80 \
   : (format) == EH_FORMAT_UUID                                                ? 0x2440 \
   : (format) == EH_FORMAT_PORT                                                ? 0x2408 \
   : (format) == EH_FORMAT_IP_ADDRESS                                          ? 0x2450 \
                                                                               : 0)
#define EVENTHEADER_INTERNAL_CHECK_FORMAT(code, format)                                 \
  _Static_assert((EVENTHEADER_INTERNAL_ENCODINGS_OF(format) >> ((code)&0x1F) & 1) != 0, \
                 "this format does not fit the field's type");

/* The bytes after a field's name (encoding, format, tag) as one integer.
 * EVENTHEADER_INTERNAL_TYPE is the type of the integer, which has the size of the bytes, and
 * EVENTHEADER_INTERNAL_TYPE_VALUE is its value. */
#define EVENTHEADER_INTERNAL_FORMAT(code, format) ((format) != 0 ? (format) : (code) >> 8)
#define EVENTHEADER_INTERNAL_TYPE(code, format, tag)                                     \
  __typeof__(__builtin_choose_expr(                                                      \
      (tag) != 0, (uint32_t)0,                                                           \
      __builtin_choose_expr(EVENTHEADER_INTERNAL_FORMAT(code, format) != 0, (uint16_t)0, \
                            (uint8_t)0)))
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define EVENTHEADER_INTERNAL_TYPE_VALUE(code, format, tag)                                 \
  (EVENTHEADER_INTERNAL_TYPE(code, format, tag))(                                          \
      ((code)&0xFF) |                                                                      \
      (EVENTHEADER_INTERNAL_FORMAT(code, format) != 0 || (tag) != 0 ? EH_HAS_FORMAT : 0) | \
      EVENTHEADER_INTERNAL_FORMAT(code, format) << 8 |                                     \
      ((tag) != 0 ? 0x8000u | (uint32_t)(tag) << 16 : 0))
#else
#define EVENTHEADER_INTERNAL_TYPE_VALUE(code, format, tag)                                         \
  (EVENTHEADER_INTERNAL_TYPE(code, format, tag))(                                                  \
      (tag) != 0 ? (((code)&0xFFu) | EH_HAS_FORMAT) << 24 |                                        \
                       (EVENTHEADER_INTERNAL_FORMAT(code, format) | 0x80u) << 16 | (uint16_t)(tag) \
      : EVENTHEADER_INTERNAL_FORMAT(code, format) != 0                                             \
          ? (((code)&0xFFu) | EH_HAS_FORMAT) << 8 | EVENTHEADER_INTERNAL_FORMAT(code, format)      \
          : ((code)&0xFFu))
#endif

#define EVENTHEADER_INTERNAL_FLAGS \
  (4 | (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 2 : 0) | (sizeof(void*) == 8 ? 1 : 0))

/* Each part is expanded in eight places, by a macro for its kind. A piece (eh_piece) is a value
 * that is passed by its address and size. DECLARE: variables, and checks at compile time. ADD: the
 * counts of pieces and bytes. DEFINITION: members that hold the definition. NUMBER: the bytes of
 * fixed size before a piece. HEADER: members of the header. DEFINITION_VALUE: the value of the
 * definition. PLACE: a member for a value of fixed size. STORE: stores the value. */
#define EVENTHEADER_INTERNAL_WRITE(name, event_level, ...)                                         \
  EVENTHEADER_INTERNAL_CHECK_NAME(name)                                                            \
  EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_DECLARE, __VA_ARGS__)                             \
  enum { EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_ADD, __VA_ARGS__) };                       \
  struct __attribute__((packed)) EventheaderMetadata {                                             \
    char event_name[sizeof("" name)];                                                              \
    EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_DEFINITION, __VA_ARGS__)                        \
  };                                                                                               \
  enum {                                                                                           \
    eventheader_head = sizeof(EventheaderHeader) + sizeof(struct EventheaderMetadata),             \
    eventheader_padded = (eventheader_head + EH_HEAD_STEP - 1) / EH_HEAD_STEP * EH_HEAD_STEP       \
  };                                                                                               \
  _Static_assert(eventheader_head <= 8184,                                                         \
                 "the event's names alone exceed the maximum event size, 8184 bytes");             \
  static const struct {                                                                            \
    uint16_t bytes[eventheader_parts];                                                             \
    eh_static_event start;                                                                         \
    EventheaderHeader header;                                                                      \
    struct EventheaderMetadata metadata;                                                           \
    char slack[EH_HEAD_STEP];                                                                      \
  } eventheader_event = {                                                                          \
      {EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_NUMBER, __VA_ARGS__)},                       \
      {eventheader_run_1, eventheader_head, eventheader_padded, -2 * eventheader_piece_1},         \
      {.flags = EVENTHEADER_INTERNAL_FLAGS,                                                        \
       .level = (event_level),                                                                     \
       .metadata_size = sizeof(struct EventheaderMetadata),                                        \
       .metadata_kind = 1,                                                                         \
       EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_HEADER, __VA_ARGS__)},                       \
      {"" name, EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_DEFINITION_VALUE, __VA_ARGS__)},    \
      {0}};                                                                                        \
  struct {                                                                                         \
    eh_piece pieces[eventheader_piece_1 + !eventheader_piece_1];                                   \
    struct __attribute__((packed)) {                                                               \
      EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_PLACE, __VA_ARGS__)                           \
      char slack[EH_SLACK];                                                                        \
    } fixed;                                                                                       \
  } eventheader_values;                                                                            \
  uint64_t eventheader_size = eventheader_head + sizeof(eventheader_values.fixed) -                \
                              sizeof(eventheader_values.fixed.slack);                              \
  /* Prevents a warning: the byte is never used, but compilers cannot know that. */                \
  if (sizeof(eventheader_values.fixed) == EH_SLACK) eventheader_values.fixed.slack[0] = 0;         \
  EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_STORE, __VA_ARGS__)                               \
  EVENTHEADER_INTERNAL_NOTE_EVENT(eventheader_set, eventheader_event.start);                       \
  eh_write_static(&eventheader_set, &eventheader_event.start,                                      \
                  (const char*)&eventheader_values +                                               \
                      ((const char*)&eventheader_values.fixed - (const char*)&eventheader_values), \
                  eventheader_size, eventheader_activity);

#define EVENTHEADER_INTERNAL_DECLARE(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_DECLARE_##KIND(n, before, __VA_ARGS__)
#define EVENTHEADER_INTERNAL_ADD(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_ADD_##KIND(n, before, __VA_ARGS__)
#define EVENTHEADER_INTERNAL_DEFINITION(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_DEFINITION_##KIND(n, before, __VA_ARGS__)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_DEFINITION_VALUE_##KIND(n, before, __VA_ARGS__)
#define EVENTHEADER_INTERNAL_HEADER(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_HEADER_##KIND(n, before, __VA_ARGS__)
#define EVENTHEADER_INTERNAL_PLACE(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_PLACE_##KIND(n, before, __VA_ARGS__)
#define EVENTHEADER_INTERNAL_STORE(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_STORE_##KIND(n, before, __VA_ARGS__)

/* ADD_PART counts up to and including part n: pieces (eventheader_piece_n), and bytes of fixed size
 * since the last piece (eventheader_run_n). NUMBER_PART initializes one element of
 * eventheader_event.bytes for each part. Pieces have the elements at the end of the array, which
 * are the numbers of fixed bytes before each piece. Other parts have the elements at the start,
 * which are not used. */
#define EVENTHEADER_INTERNAL_ADD_PART(n, before, is_piece, bytes, after)            \
  eventheader_is_piece_##n = (is_piece),                                            \
  eventheader_bytes_##n = eventheader_run_##before + (int)(bytes),                  \
  eventheader_run_##n = eventheader_is_piece_##n ? (after) : eventheader_bytes_##n, \
  eventheader_piece_##n = eventheader_piece_##before + eventheader_is_piece_##n,
#define EVENTHEADER_INTERNAL_NUMBER(n, before, KIND, ...) \
  EVENTHEADER_INTERNAL_NUMBER_##KIND(n, before)
#define EVENTHEADER_INTERNAL_NUMBER_PART(n, before)                            \
  [eventheader_parts - (eventheader_is_piece_##n                               \
                            ? eventheader_piece_1 - eventheader_piece_##before \
                            : (n) + eventheader_piece_##before)] =             \
      eventheader_is_piece_##n ? eventheader_bytes_##n : 0,

/* Stores the address and size of a piece. Used by the STORE macro of every kind of piece. */
#define EVENTHEADER_INTERNAL_STORE_PIECE(n, before, pointer, bytes)       \
  eventheader_values.pieces[eventheader_piece_##before].data = (pointer); \
  eventheader_values.pieces[eventheader_piece_##before].size = (bytes);   \
  eventheader_size += (bytes);

/* The first part, which EVENTHEADER_EVENT adds. It declares the activity, and starts the counts. */
#define EVENTHEADER_INTERNAL_DECLARE_EventheaderBegin(n, before, zero) \
  const eh_activity* eventheader_activity = NULL;
#define EVENTHEADER_INTERNAL_ADD_EventheaderBegin(n, before, zero)                  \
  eventheader_parts = (n), eventheader_is_piece_##n = 0, eventheader_bytes_##n = 0, \
  eventheader_run_##n = 0, eventheader_piece_##n = 0, eventheader_piece_##before = 0,
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderBegin(n, before, zero)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderBegin(n, before, zero)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderBegin(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderBegin(n, before, zero)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderBegin(n, before, zero)
#define EVENTHEADER_INTERNAL_STORE_EventheaderBegin(n, before, zero)

/* The last part, which EVENTHEADER_EVENT adds. It adds nothing to the event, but makes sure that
 * there is at least one part after the keyword. */
#define EVENTHEADER_INTERNAL_DECLARE_EventheaderNothing(n, before, zero)
#define EVENTHEADER_INTERNAL_ADD_EventheaderNothing(n, before, zero) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 0, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderNothing(n, before, zero)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderNothing(n, before, zero)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderNothing(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderNothing(n, before, zero)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderNothing(n, before, zero)
#define EVENTHEADER_INTERNAL_STORE_EventheaderNothing(n, before, zero)

/* The part of EVENTHEADER_FIELD: a value whose type determines its encoding. */
#define EVENTHEADER_INTERNAL_DECLARE_EventheaderField(n, before, name, format, tag, ...)          \
  EVENTHEADER_INTERNAL_CHECK_NAME(name)                                                           \
  __typeof__(((void)0, __VA_ARGS__)) eventheader_value_##n = __VA_ARGS__;                         \
  _Static_assert(                                                                                 \
      (EVENTHEADER_INTERNAL_CODE(eventheader_value_##n) & 0xFF) == EH_ENCODING_STRING8 ||         \
          (sizeof(eventheader_value_##n) == /* NOLINT(bugprone-sizeof-expression) */              \
               1u << ((EVENTHEADER_INTERNAL_CODE(eventheader_value_##n) & 0xFF) -                 \
                      EH_ENCODING_VALUE8) &&                                                      \
           EVENTHEADER_INTERNAL_IS_KNOWN(eventheader_value_##n)),                                 \
      "this type is not supported as a field: use an integer, bool, character, float, double, "   \
      "text or pointer");                                                                         \
  EVENTHEADER_INTERNAL_CHECK_WIDE(eventheader_value_##n)                                          \
  EVENTHEADER_INTERNAL_CHECK_FORMAT(EVENTHEADER_INTERNAL_CODE(eventheader_value_##n), format)     \
  const char* const eventheader_text_##n =                                                      \
      _Generic((eventheader_value_##n), char*                                                   \
               : eventheader_value_##n, const char*                                             \
               : eventheader_value_##n, default                                                 \
               : (const char*)NULL); \
  const size_t eventheader_length_##n = EventheaderLength(eventheader_text_##n);
#define EVENTHEADER_INTERNAL_ADD_EventheaderField(n, before, name, format, tag, ...) \
  EVENTHEADER_INTERNAL_ADD_PART(                                                     \
      n, before, EVENTHEADER_INTERNAL_IS_TEXT(eventheader_value_##n),                \
      EVENTHEADER_INTERNAL_IS_TEXT(eventheader_value_##n)                            \
          ? 2                                                                        \
          : sizeof(eventheader_value_##n), /* NOLINT(bugprone-sizeof-expression) */  \
      0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderField(n, before, name, format, tag, ...)      \
  EVENTHEADER_INTERNAL_DEFINE(n, name, EVENTHEADER_INTERNAL_CODE(eventheader_value_##n), format, \
                              tag)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderField(n, before, name, format, tag, ...) \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(name, EVENTHEADER_INTERNAL_CODE(eventheader_value_##n),       \
                                    format, tag)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderField(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderField(n, before, name, format, tag, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderField(n, before, name, format, tag, ...) \
  __typeof__(_Generic((eventheader_value_##n), char*                                            \
                      : (uint16_t)0, const char*                                                \
                      : (uint16_t)0, default                                                    \
                      : eventheader_value_##n)) field_##n;
#define EVENTHEADER_INTERNAL_STORE_EventheaderField(n, before, name, format, tag, ...)            \
  eventheader_values.fixed.field_##n =                                                          \
      _Generic((eventheader_value_##n), char*                                                   \
               : (uint16_t)eventheader_length_##n, const char*                                  \
               : (uint16_t)eventheader_length_##n, default                                      \
               : eventheader_value_##n); \
  if (eventheader_is_piece_##n) {                                                                 \
    EVENTHEADER_INTERNAL_STORE_PIECE(n, before, eventheader_text_##n, eventheader_length_##n)     \
  }
/* Checks that only pointers take the `default` branch of EVENTHEADER_INTERNAL_CODE. */
#define EVENTHEADER_INTERNAL_IS_KNOWN(value)                              \
  (EVENTHEADER_INTERNAL_CODE(value) !=                                    \
       (EVENTHEADER_INTERNAL_VALUE_OF(void*) | EH_FORMAT_HEX_INT << 8) || \
   __builtin_classify_type(value) == __builtin_classify_type((void*)0))

/* Declares a field of `number` values at `pointer`: a text or an array. */
#define EVENTHEADER_INTERNAL_DECLARE_COUNTED(n, name, code, format, pointer, number) \
  EVENTHEADER_INTERNAL_CHECK_NAME(name)                                              \
  EVENTHEADER_INTERNAL_CHECK_FORMAT(code, format)                                    \
  __typeof__(((void)0, (pointer))) eventheader_value_##n = (pointer);                \
  const size_t eventheader_length_##n = EventheaderAtMost64K(number);
#define EVENTHEADER_INTERNAL_DEFINE(n, name, code, format, tag) \
  char name_##n[sizeof("" name)];                               \
  EVENTHEADER_INTERNAL_TYPE(code, format, tag) type_##n;
#define EVENTHEADER_INTERNAL_DEFINE_VALUE(name, code, format, tag) \
  "" name, EVENTHEADER_INTERNAL_TYPE_VALUE(code, format, tag),

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderString(n, before, name, format, pointer, size) \
  EVENTHEADER_INTERNAL_DECLARE_COUNTED(n, name, EVENTHEADER_INTERNAL_TEXT_CODE(*(pointer)),    \
                                       format, pointer, size)
#define EVENTHEADER_INTERNAL_ADD_EventheaderString(n, before, name, format, pointer, size) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 1, 2, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderString(n, before, name, format, pointer, size) \
  EVENTHEADER_INTERNAL_DEFINE(n, name, EVENTHEADER_INTERNAL_TEXT_CODE(*eventheader_value_##n),    \
                              format, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderString(n, before, name, format, pointer, \
                                                                size)                             \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(name, EVENTHEADER_INTERNAL_TEXT_CODE(*eventheader_value_##n), \
                                    format, 0)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderString(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderString(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderString(n, before, ...) uint16_t field_##n;
#define EVENTHEADER_INTERNAL_STORE_EventheaderString(n, before, ...)     \
  eventheader_values.fixed.field_##n = (uint16_t)eventheader_length_##n; \
  EVENTHEADER_INTERNAL_STORE_PIECE(n, before, eventheader_value_##n,     \
                                   eventheader_length_##n * sizeof(*eventheader_value_##n))

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderZString(n, before, name, format, text) \
  EVENTHEADER_INTERNAL_CHECK_NAME(name)                                                \
  EVENTHEADER_INTERNAL_CHECK_FORMAT(EH_ENCODING_ZSTRING8, format)                      \
  EVENTHEADER_INTERNAL_CHECK_WIDE(text)                                                \
  const char* const eventheader_value_##n = (text);                                    \
  const size_t eventheader_length_##n = EventheaderLength(eventheader_value_##n);
#define EVENTHEADER_INTERNAL_ADD_EventheaderZString(n, before, name, format, text) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 1, 0, 1)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderZString(n, before, name, format, text) \
  EVENTHEADER_INTERNAL_DEFINE(n, name, EH_ENCODING_ZSTRING8, format, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderZString(n, before, name, format, text) \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(name, EH_ENCODING_ZSTRING8, format, 0)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderZString(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderZString(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderZString(n, before, ...) char field_##n;
#define EVENTHEADER_INTERNAL_STORE_EventheaderZString(n, before, ...) \
  eventheader_values.fixed.field_##n = '\0';                          \
  EVENTHEADER_INTERNAL_STORE_PIECE(n, before, eventheader_value_##n, eventheader_length_##n)

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderBinary(n, before, name, format, pointer, size) \
  EVENTHEADER_INTERNAL_CHECK_NAME(name)                                                        \
  EVENTHEADER_INTERNAL_CHECK_FORMAT(EH_ENCODING_BINARY, format)                                \
  const void* const eventheader_value_##n = (pointer);                                         \
  const size_t eventheader_length_##n = EventheaderAtMost64K(size);
#define EVENTHEADER_INTERNAL_ADD_EventheaderBinary(n, before, name, format, pointer, size) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 1, 2, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderBinary(n, before, name, format, pointer, size) \
  EVENTHEADER_INTERNAL_DEFINE(n, name, EH_ENCODING_BINARY, format, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderBinary(n, before, name, format, pointer, \
                                                                size)                             \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(name, EH_ENCODING_BINARY, format, 0)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderBinary(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderBinary(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderBinary(n, before, ...) uint16_t field_##n;
#define EVENTHEADER_INTERNAL_STORE_EventheaderBinary(n, before, ...)     \
  eventheader_values.fixed.field_##n = (uint16_t)eventheader_length_##n; \
  EVENTHEADER_INTERNAL_STORE_PIECE(n, before, eventheader_value_##n, eventheader_length_##n)

#define EVENTHEADER_INTERNAL_ARRAY_CODE(element, flag)                                           \
  ((EVENTHEADER_INTERNAL_CODE(element) & 0xFF00) | (EVENTHEADER_INTERNAL_CODE(element) & 0xFF) | \
   (flag))
#define EVENTHEADER_INTERNAL_CHECK_ELEMENT(element)                                              \
  _Static_assert((EVENTHEADER_INTERNAL_CODE(element) & 0xFF) <= EH_ENCODING_VALUE128 &&          \
                     EVENTHEADER_INTERNAL_IS_KNOWN(element),                                     \
                 "an array's elements are numbers, characters, UUIDs, addresses or pointers to " \
                 "anything but text");                                                           \
  EVENTHEADER_INTERNAL_CHECK_WIDE(element)
#define EVENTHEADER_INTERNAL_DECLARE_EventheaderArray(n, before, name, format, pointer, count) \
  EVENTHEADER_INTERNAL_CHECK_ELEMENT(*(pointer))                                               \
  EVENTHEADER_INTERNAL_DECLARE_COUNTED(n, name, EVENTHEADER_INTERNAL_CODE(*(pointer)), format, \
                                       pointer, count)
#define EVENTHEADER_INTERNAL_ADD_EventheaderArray(n, before, name, format, pointer, count) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 1, 2, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderArray(n, before, name, format, pointer, count) \
  EVENTHEADER_INTERNAL_DEFINE(                                                                    \
      n, name, EVENTHEADER_INTERNAL_ARRAY_CODE(*eventheader_value_##n, EH_VARIABLE_ARRAY_FLAG),   \
      format, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderArray(n, before, name, format, pointer, \
                                                               count)                            \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(                                                             \
      name, EVENTHEADER_INTERNAL_ARRAY_CODE(*eventheader_value_##n, EH_VARIABLE_ARRAY_FLAG),     \
      format, 0)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderArray(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderArray(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderArray(n, before, ...) uint16_t field_##n;
#define EVENTHEADER_INTERNAL_STORE_EventheaderArray(n, before, ...) \
  EVENTHEADER_INTERNAL_STORE_EventheaderString(n, before, )

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderConstantArray(n, before, name, format, pointer, \
                                                              count)                            \
  _Static_assert((count) >= 1 && (count) <= 65535, "a constant array has 1 to 65535 elements"); \
  EVENTHEADER_INTERNAL_DECLARE_EventheaderArray(n, before, name, format, pointer, count)
#define EVENTHEADER_INTERNAL_ADD_EventheaderConstantArray(n, before, name, format, pointer, count) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 1, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderConstantArray(n, before, name, format, pointer, \
                                                                 count)                            \
  EVENTHEADER_INTERNAL_DEFINE(                                                                     \
      n, name, EVENTHEADER_INTERNAL_ARRAY_CODE(*eventheader_value_##n, EH_CONSTANT_ARRAY_FLAG),    \
      format, 0)                                                                                   \
  uint16_t count_##n;
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderConstantArray(n, before, name, format, \
                                                                       pointer, count)          \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(                                                            \
      name, EVENTHEADER_INTERNAL_ARRAY_CODE(*eventheader_value_##n, EH_CONSTANT_ARRAY_FLAG),    \
      format, 0)                                                                                \
  (count),
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderConstantArray(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderConstantArray(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderConstantArray(n, before, ...)
#define EVENTHEADER_INTERNAL_STORE_EventheaderConstantArray(n, before, ...) \
  EVENTHEADER_INTERNAL_STORE_PIECE(n, before, eventheader_value_##n,        \
                                   eventheader_length_##n * sizeof(*eventheader_value_##n))

/* A struct that contains the next `number` fields. Parts are numbered down to 1, which is
 * EventheaderNothing, so at most n - 2 fields follow part n. */
#define EVENTHEADER_INTERNAL_DECLARE_EventheaderStruct(n, before, name, number)      \
  EVENTHEADER_INTERNAL_CHECK_NAME(name)                                              \
  _Static_assert((number) >= 1 && (number) <= 127, "a struct has 1 to 127 members"); \
  _Static_assert((number) <= (n)-2,                                                  \
                 "EVENTHEADER_STRUCT must be followed by as many fields as it declares");
#define EVENTHEADER_INTERNAL_ADD_EventheaderStruct(n, before, name, number) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 0, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderStruct(n, before, name, number) \
  EVENTHEADER_INTERNAL_DEFINE(n, name, EH_ENCODING_STRUCT, number, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderStruct(n, before, name, number) \
  EVENTHEADER_INTERNAL_DEFINE_VALUE(name, EH_ENCODING_STRUCT, number, 0)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderStruct(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderStruct(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderStruct(n, before, ...)
#define EVENTHEADER_INTERNAL_STORE_EventheaderStruct(n, before, ...)

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderActivity(n, before, ...) \
  const eh_activity eventheader_the_one_activity_of_an_event = {         \
      EVENTHEADER_INTERNAL_FIRST(__VA_ARGS__, 0),                        \
      EVENTHEADER_INTERNAL_SECOND(__VA_ARGS__, NULL, 0)};
#define EVENTHEADER_INTERNAL_ADD_EventheaderActivity(n, before, ...) \
  EVENTHEADER_INTERNAL_ADD_PART(n, before, 0, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderActivity(n, before, ...)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderActivity(n, before, ...)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderActivity(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderActivity(n, before, ...)
#define EVENTHEADER_INTERNAL_PLACE_EventheaderActivity(n, before, ...)
#define EVENTHEADER_INTERNAL_STORE_EventheaderActivity(n, before, ...) \
  eventheader_activity = &eventheader_the_one_activity_of_an_event;

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderOpcode(n, before, opcode)
#define EVENTHEADER_INTERNAL_ADD_EventheaderOpcode(n, before, opcode) \
  eventheader_the_one_opcode_of_an_event, EVENTHEADER_INTERNAL_ADD_PART(n, before, 0, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderOpcode(n, before, opcode)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderOpcode(n, before, opcode)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderOpcode(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderOpcode(n, before, event_opcode) \
  .opcode = (event_opcode),
#define EVENTHEADER_INTERNAL_PLACE_EventheaderOpcode(n, before, opcode)
#define EVENTHEADER_INTERNAL_STORE_EventheaderOpcode(n, before, opcode)

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderId(n, before, id, version)
#define EVENTHEADER_INTERNAL_ADD_EventheaderId(n, before, id, version) \
  eventheader_the_one_id_of_an_event, EVENTHEADER_INTERNAL_ADD_PART(n, before, 0, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderId(n, before, id, version)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderId(n, before, id, version)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderId(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderId(n, before, event_id, event_version) \
  .id = (event_id), .version = (event_version),
#define EVENTHEADER_INTERNAL_PLACE_EventheaderId(n, before, id, version)
#define EVENTHEADER_INTERNAL_STORE_EventheaderId(n, before, id, version)

#define EVENTHEADER_INTERNAL_DECLARE_EventheaderTag(n, before, tag)
#define EVENTHEADER_INTERNAL_ADD_EventheaderTag(n, before, tag) \
  eventheader_the_one_tag_of_an_event, EVENTHEADER_INTERNAL_ADD_PART(n, before, 0, 0, 0)
#define EVENTHEADER_INTERNAL_DEFINITION_EventheaderTag(n, before, tag)
#define EVENTHEADER_INTERNAL_DEFINITION_VALUE_EventheaderTag(n, before, tag)
#define EVENTHEADER_INTERNAL_NUMBER_EventheaderTag(n, before) \
  EVENTHEADER_INTERNAL_NUMBER_PART(n, before)
#define EVENTHEADER_INTERNAL_HEADER_EventheaderTag(n, before, event_tag) .tag = (event_tag),
#define EVENTHEADER_INTERNAL_PLACE_EventheaderTag(n, before, tag)
#define EVENTHEADER_INTERNAL_STORE_EventheaderTag(n, before, tag)

#endif /* C */

#endif /* EVENTHEADER_MACROS_C_H_ */
