/* Uses the macros of C; the test compares the events with static ones. */
#ifndef TESTS_UNIT_EVENTHEADER_MACROS_C_MACRO_USER_H_
#define TESTS_UNIT_EVENTHEADER_MACROS_C_MACRO_USER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eventheader/eventheader_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A value of every type that the C macros support. */
struct CValues {
  bool b;
  char c;
  int8_t i8;
  uint8_t u8;
  int16_t i16;
  uint16_t u16;
  int32_t i32;
  uint32_t u32;
  int64_t i64;
  uint64_t u64;
  long long longest;
  float f;
  double d;
  const void* pointer;
  const char* text;
  const uint16_t* text16;
  size_t text16_size;
  const uint8_t* bytes16;
  const int32_t* numbers;
  size_t number_count;
};

eh_provider* CProvider(void);
void CWriteNothing(void);
void CWriteValues(const struct CValues* v);
void CWriteFormats(const struct CValues* v);
void CWriteRanges(const struct CValues* v);
void CWriteStructs(const struct CValues* v);
void CWriteBinary(const void* data, size_t size);
void CWriteActivity(const uint8_t* id, const uint8_t* related);
void CWriteCosts(int* evaluated);
void CWriteOneOf(bool first);
bool CEnabled(void);
/* Returns the encodings that the C macros accept with a format: bit N is set for encoding N. */
unsigned CEncodingsOf(int format);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_UNIT_EVENTHEADER_MACROS_C_MACRO_USER_H_ */
