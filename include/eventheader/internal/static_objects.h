/* The static objects of a program with events, and the functions that write events and register
 * event sets, for the C++ templates and the C macros. Needs C11 or C++17. Layouts and functions are
 * part of the C ABI: the macros compile them into programs that link libeventheader-c.so. */
#ifndef EVENTHEADER_INTERNAL_STATIC_OBJECTS_H_
#define EVENTHEADER_INTERNAL_STATIC_OBJECTS_H_

#include <stddef.h>
#include <stdint.h>

#include "eventheader/eventheader_c.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef EVENTHEADER_C_SHARED
#pragma GCC visibility push(default)
#endif

/* An eh::ProviderBase that the compiler initializes. Its address is a multiple of 64. */
typedef struct eh_static_provider {
  uint64_t enabled; /* a bit for each event set, which is 1 while the set is enabled */
  void* transport;
  const char* name;
  size_t name_size;
  const char* group;
  size_t group_size;
  uint64_t used_bits;
  uint64_t counters[256 - 7];
} __attribute__((aligned(64))) eh_static_provider;

/* An eh::EventSet that the compiler initializes and that is registered later. */
typedef struct eh_static_set {
  uint64_t mask; /* this set's bit in eh_static_provider::enabled; 0 while it is not registered */
  eh_static_provider* provider;
  uint64_t keyword;
  int status;
  uint8_t level;
  uint64_t registration[8];
} __attribute__((aligned(8))) eh_static_set;

/* The part of an event that is known at compile time. The head (header, metadata extension and
 * metadata) follows it in memory, then EH_HEAD_STEP bytes of any value.
 *
 * The payload of an event alternates between bytes of fixed size and pieces, and ends with bytes
 * of fixed size. For each piece, the number of fixed bytes before it is a uint16_t; these numbers
 * are directly before the eh_static_event, `pieces` bytes from it. A number with the bit
 * EH_MADE_PIECE belongs to a piece that points to an eh_made_piece. */
typedef struct eh_static_event {
  uint16_t last; /* number of fixed bytes after the last piece */
  uint16_t head_size;
  uint16_t head_padded; /* head_size rounded up to a multiple of EH_HEAD_STEP */
  int16_t pieces;       /* -2 times the number of pieces */
} eh_static_event;
enum { EH_SLACK = 16, EH_HEAD_STEP = 32, EH_MADE_PIECE = 0x8000 };

/* A value that is passed by its address and size, because its size is large or known only at run
 * time. */
typedef struct eh_piece {
  const void* data;
  size_t size;
} eh_piece;

/* The data of a piece whose bytes in memory are not its bytes in the event. eh_piece::data points
 * to this struct. `put` writes the bytes that `value` has in the event, and returns their end. */
typedef struct eh_made_piece {
  void* (*put)(void* out, const void* value);
  const void* value;
} eh_made_piece;

/* Writes an event to `set` (an eh_static_set or an eh_event_set), counts the result and returns it
 * as an eh::WriteResult. Does not check whether the set is enabled. `fixed` points to all bytes of
 * fixed size, one after the other, then EH_SLACK bytes of any value. The pieces are directly before
 * `fixed`, as eh_piece values. None of them may point to an eh_made_piece. `size` is the size of
 * the event in bytes, without the activity, and must not overflow 64 bits. `activity` may be NULL.
 * Async-signal-safe. Uses about 1 KiB of the stack, or about the size of the event if that exceeds
 * 1 KiB. */
uint8_t eh_write_static(const void* set, const eh_static_event* event, const void* fixed,
                        uint64_t size, const eh_activity* activity);

/* Register or unregister the sets from `begin` to `end` that are not NULL. */
void eh_register_sets(eh_static_set* const* begin, eh_static_set* const* end);
void eh_unregister_sets(eh_static_set* const* begin, eh_static_set* const* end);

#ifdef EVENTHEADER_C_SHARED
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* EVENTHEADER_INTERNAL_STATIC_OBJECTS_H_ */
