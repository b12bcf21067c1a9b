/* What a program with events has in its static storage, and the function that writes them: for the
 * templates of C++ and the macros of C alike. C11 and C++17. Layouts and functions are part of the
 * C ABI, since the macros compile them into programs that link libeventheader-c.so. */
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

/* An eh::ProviderBase, made by the compiler. Its address is a multiple of 64. */
typedef struct eh_static_provider {
  uint64_t enabled; /* a bit for each of its tracepoints that is enabled */
  void* transport;
  const char* name;
  size_t name_size;
  const char* group;
  size_t group_size;
  uint64_t used_bits;
  uint64_t counters[256 - 7];
} __attribute__((aligned(64))) eh_static_provider;

/* An eh::EventSet, made by the compiler and registered later. */
typedef struct eh_static_set {
  uint64_t mask; /* its bit of the provider's word; 0 while it is not registered */
  eh_static_provider* provider;
  uint64_t keyword;
  int status;
  uint8_t level;
  uint64_t registration[8];
} __attribute__((aligned(8))) eh_static_set;

/* The part of an event that is known when it is compiled. After it come header, metadata extension
 * and metadata, which are the head, and EH_HEAD_STEP bytes that may have any value.
 *
 * The payload of an event is, in turns, some bytes of fixed size and a piece, and at last fixed
 * bytes again. How many are before each piece says a uint16_t each, all of these before the
 * eh_static_event. EH_MADE_PIECE in one says that the piece is an eh_made_piece. */
typedef struct eh_static_event {
  uint16_t last; /* how many fixed bytes are after the last piece */
  uint16_t head_size;
  uint16_t head_padded; /* head_size, rounded up to a multiple of EH_HEAD_STEP */
  int16_t pieces;       /* how many, times -2: where the numbers begin, in bytes from here */
} eh_static_event;
enum { EH_SLACK = 16, EH_HEAD_STEP = 32, EH_MADE_PIECE = 0x8000 };

/* Bytes of a size that is known at run time. */
typedef struct eh_piece {
  const void* data;
  size_t size;
} eh_piece;

/* The data of a piece whose bytes are not in memory as they are in the event. `put` writes them and
 * returns their end. */
typedef struct eh_made_piece {
  void* (*put)(void* out, const void* value);
  const void* value;
} eh_made_piece;

/* Writes an event to `set` (an eh_static_set or an eh_event_set) and counts the result, which is an
 * eh::WriteResult. Does not ask whether it is enabled. At `fixed` are all bytes of fixed size, one
 * after the other, and EH_SLACK bytes that may have any value; right before it the pieces, eh_piece
 * each, none of them a made one. `size`: that of the event, which 64 bits must be enough for, but
 * for the activity, which may be NULL. Async-signal-safe; takes 1 KiB of the stack, and as much as
 * the event is large if that is more. */
uint8_t eh_write_static(const void* set, const eh_static_event* event, const void* fixed,
                        uint64_t size, const eh_activity* activity);

/* Each registers, or unregisters, the sets that are not NULL. */
void eh_register_sets(eh_static_set* const* begin, eh_static_set* const* end);
void eh_unregister_sets(eh_static_set* const* begin, eh_static_set* const* end);

#ifdef EVENTHEADER_C_SHARED
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif /* EVENTHEADER_INTERNAL_STATIC_OBJECTS_H_ */
