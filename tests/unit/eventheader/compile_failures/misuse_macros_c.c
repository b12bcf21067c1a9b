/* Uses of the C macros that must not compile, and some that must; see misuse.cc. */
#include "eventheader/macros_c.h"

#if defined(PROVIDER_NAME_IS_EMPTY)
// expect: a provider's name has 1 to 200 bytes
EVENTHEADER_DEFINE_PROVIDER(named, "");
#elif defined(PROVIDER_GROUP_IS_TOO_LONG)
// expect: a provider's group has at most 24 bytes
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(named, "MyCompany", "abcdefghijklmnopqrstuvwxy");
#elif defined(PROVIDER_NAME_OF_RUN_TIME)
// expect: expected
extern const char name[];
EVENTHEADER_DEFINE_PROVIDER(named, name);
#else
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(named, "MyCompany", "group");
#endif
static EVENTHEADER_DEFINE_PROVIDER(provider, "Test_Misuse");

struct Undescribed {
  int x;
};

void Write(int number, const char* text, uint64_t keyword_of_run_time);
void Write(int number, const char* text, uint64_t keyword_of_run_time) {
  const struct Undescribed undescribed = {number};
  const char* texts[] = {text};
  (void)undescribed, (void)texts, (void)keyword_of_run_time;
#if defined(EVENT_NAME_IS_EMPTY)
  // expect: a name must not be empty or contain ';' or NUL
  EVENTHEADER_EVENT(provider, "", 4, 0);
#elif defined(EVENT_NAME_HAS_A_SEMICOLON)
  // expect: a name must not be empty or contain ';' or NUL
  EVENTHEADER_EVENT(provider, "a;b", 4, 0);
#elif defined(EVENT_NAME_HAS_A_NUL)
  // expect: a name must not be empty or contain ';' or NUL
  EVENTHEADER_EVENT(provider, "a\0b", 4, 0);
#elif defined(EVENT_NAME_OF_RUN_TIME)
  // expect: expected
  EVENTHEADER_EVENT(provider, text, 4, 0);
#elif defined(EVENT_OF_LEVEL_0)
  // expect: an event's level is 1 to 255
  EVENTHEADER_EVENT(provider, "E", 0, 0);
#elif defined(EVENT_OF_LEVEL_256)
  // expect: an event's level is 1 to 255
  EVENTHEADER_EVENT(provider, "E", 256, 0);
#elif defined(KEYWORD_OF_RUN_TIME)
  // expect: constant
  EVENTHEADER_EVENT(provider, "E", 4, keyword_of_run_time);
#elif defined(ENABLED_OF_LEVEL_0)
  // expect: an event's level is 1 to 255
  number = EVENTHEADER_ENABLED(provider, 0, 0);
#elif defined(FIELD_NAME_HAS_A_SEMICOLON)
  // expect: a name must not be empty or contain ';' or NUL
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("a;b", number));
#elif defined(FIELD_OF_A_STRUCT)
  // expect: this type is not supported as a field
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", undescribed));
#elif defined(FIELD_OF_LONG_DOUBLE)
  // expect: this type is not supported as a field
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", 1.0L));
#elif defined(FIELD_OF_16_BIT_TEXT)
  // expect: a pointer to 16- or 32-bit integers may be text
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", u"text"));
#elif defined(FIELD_OF_32_BIT_TEXT)
  // expect: a pointer to 16- or 32-bit integers may be text
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", U"text"));
#elif defined(FIELD_OF_WIDE_TEXT)
  // expect: a pointer to 16- or 32-bit integers may be text
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", L"text"));
#elif defined(ZSTRING_OF_16_BIT_TEXT)
  // expect: a pointer to 16- or 32-bit integers may be text
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_ZSTRING("f", u"text"));
#elif defined(ARRAY_OF_WIDE_TEXTS)
  // expect: a pointer to 16- or 32-bit integers may be text
  const wchar_t* wide_texts[] = {L"text"};
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_ARRAY("f", wide_texts, 1));
#elif defined(FORMAT_OF_ANOTHER_SIZE)
  // expect: this format does not fit the field's type
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD_AS("f", number, EH_FORMAT_PORT));
#elif defined(TEXT_FORMAT_OF_A_NUMBER)
  // expect: this format does not fit the field's type
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD_AS("f", number, EH_FORMAT_STRING_JSON));
#elif defined(ARRAY_OF_TEXTS)
  // expect: an array's elements are numbers
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_ARRAY("f", texts, 1));
#elif defined(CONSTANT_ARRAY_OF_NOTHING)
  // expect: a constant array has 1 to 65535 elements
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_CONSTANT_ARRAY("f", &number, 0));
#elif defined(CONSTANT_ARRAY_OF_RUN_TIME)
  // expect: constant
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_CONSTANT_ARRAY("f", &number, number));
#elif defined(STRUCT_WITHOUT_MEMBERS)
  // expect: a struct has 1 to 127 members
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_STRUCT("s", 0));
#elif defined(STRUCT_OF_MORE_THAN_FOLLOW)
  // expect: EVENTHEADER_STRUCT must be followed by as many fields as it declares
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_STRUCT("s", 2), EVENTHEADER_FIELD("f", 1));
#elif defined(TWO_OPCODES)
  // expect: eventheader_the_one_opcode_of_an_event
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_OPCODE(1), EVENTHEADER_OPCODE(2));
#elif defined(TWO_ACTIVITIES)
  // expect: eventheader_the_one_activity_of_an_event
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_ACTIVITY(NULL), EVENTHEADER_ACTIVITY(NULL));
#else
  if (EVENTHEADER_ENABLED(provider, 255, 0)) {
    EVENTHEADER_EVENT(provider, "E", 255, 0, EVENTHEADER_FIELD("f", number),
                      EVENTHEADER_FIELD_AS("g", number, EH_FORMAT_ERRNO),
                      EVENTHEADER_FIELD("h", text), EVENTHEADER_ID(1, 2), EVENTHEADER_TAG(3),
                      EVENTHEADER_STRUCT("s", 1), EVENTHEADER_FIELD("m", (const void*)&number),
                      EVENTHEADER_STRING("w", L"text", 4),
                      EVENTHEADER_OPCODE(EH_OPCODE_ACTIVITY_STOP));
  }
#endif
}
