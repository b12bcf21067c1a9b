/* The ELF notes by which a program or shared object lists the events that it may write. Each source
 * file emits at least one note for each event that it contains code for, and for each event set
 * without such an event. The notes are in the section .note.eventheader, which is loaded but never
 * read at run time. The owner of a note is "EventHeader", and the type is 1. The descriptor of a
 * note is two signed offsets of 8 bytes, each relative to its own address: to the eh_static_set,
 * and to the eh_static_event. A second offset of 0 means that the note is only for the set.
 *
 * The linker keeps notes and what they refer to, even with --gc-sections, and so does strip. On
 * machines other than amd64 and arm64, no notes are emitted. Needs C11 or C++17. */
#ifndef EVENTHEADER_INTERNAL_CATALOG_NOTE_H_
#define EVENTHEADER_INTERNAL_CATALOG_NOTE_H_

#define EVENTHEADER_INTERNAL_NOTE_BEGIN             \
  ".pushsection .note.eventheader,\"a\",%%note\n\t" \
  ".balign 4\n\t"                                   \
  ".4byte 12, 16, 1\n\t"                            \
  ".asciz \"EventHeader\"\n\t"                      \
  ".8byte %c0 - .\n\t"

/* `set` and `event` must be objects of this program or shared object that another definition cannot
 * replace. The macro below is the asm constraint for an address that is known at link time, in
 * position-independent code. */
#if defined(__LP64__) && (defined(__x86_64__) || (defined(__aarch64__) && defined(__clang__)))
#define EVENTHEADER_INTERNAL_NOTE_ADDRESS "i"
#elif defined(__LP64__) && defined(__aarch64__)
#define EVENTHEADER_INTERNAL_NOTE_ADDRESS "S"
#endif

#ifdef EVENTHEADER_INTERNAL_NOTE_ADDRESS
#define EVENTHEADER_INTERNAL_NOTE_EVENT(set, event)                                             \
  __asm__ volatile(EVENTHEADER_INTERNAL_NOTE_BEGIN                                              \
                   ".8byte %c1 - .\n\t.popsection" ::EVENTHEADER_INTERNAL_NOTE_ADDRESS(&(set)), \
                   EVENTHEADER_INTERNAL_NOTE_ADDRESS(&(event)))
#define EVENTHEADER_INTERNAL_NOTE_SET(set)         \
  __asm__ volatile(EVENTHEADER_INTERNAL_NOTE_BEGIN \
                   ".8byte 0\n\t.popsection" ::EVENTHEADER_INTERNAL_NOTE_ADDRESS(&(set)))
#else
#define EVENTHEADER_INTERNAL_NOTE_EVENT(set, event) ((void)0)
#define EVENTHEADER_INTERNAL_NOTE_SET(set) ((void)0)
#endif

#endif /* EVENTHEADER_INTERNAL_CATALOG_NOTE_H_ */
