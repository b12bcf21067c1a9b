// Uses of the macros that must not compile, and some that must; see misuse.cc.
#include <string>
#include <vector>

#include "eventheader/macros.h"

#if defined(PROVIDER_NAME_HAS_A_SPACE)
// expect: a provider's name must match [A-Za-z_][A-Za-z0-9_]*
EVENTHEADER_DEFINE_PROVIDER(named, "My Company");
#elif defined(PROVIDER_NAME_HAS_A_NUL)
// expect: a provider's name must match [A-Za-z_][A-Za-z0-9_]*
EVENTHEADER_DEFINE_PROVIDER(named, "MyCompany\0");
#elif defined(PROVIDER_GROUP_IN_CAPITALS)
// expect: a provider's group must be at most 24 lower-case
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(named, "MyCompany", "Group");
#else
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(named, "MyCompany", "group");
#endif
EVENTHEADER_DEFINE_PROVIDER(provider, "Test_Misuse");

struct Undescribed {
  int x;
};

struct Described {
  int x;
};

// Structs with the same names as types of namespace eh.
struct Level {
  int x;
};
struct Members {
  int x;
};
EVENTHEADER_DESCRIBE_STRUCT(Level, EVENTHEADER_MEMBER("x", x));
EVENTHEADER_DESCRIBE_STRUCT(Members, EVENTHEADER_MEMBER("x", x));
#if defined(MEMBER_NAME_IS_EMPTY)
// expect: a field's name must not be empty or contain ';' or NUL
EVENTHEADER_DESCRIBE_STRUCT(Described, EVENTHEADER_MEMBER("", x));
#else
EVENTHEADER_DESCRIBE_STRUCT(Described, EVENTHEADER_MEMBER("x", x));
#endif

void Write(int number, const std::string& text, std::uint64_t keyword_of_run_time) {
  using eh::Format;
  static_cast<void>(text), static_cast<void>(number), static_cast<void>(keyword_of_run_time);
#if defined(EVENT_NAME_HAS_A_SEMICOLON)
  // expect: an event's name must not be empty or contain ';' or NUL
  EVENTHEADER_EVENT(provider, "a;b", 4, 0);
#elif defined(EVENT_NAME_OF_RUN_TIME)
  // expect: text
  EVENTHEADER_EVENT(provider, text, 4, 0);
#elif defined(EVENT_OF_LEVEL_0)
  // expect: an event's level is 1 to 255
  EVENTHEADER_EVENT(provider, "E", 0, 0);
#elif defined(EVENT_OF_LEVEL_256)
  // expect: an event's level is 1 to 255
  EVENTHEADER_EVENT(provider, "E", 256, 0);
#elif defined(KEYWORD_OF_RUN_TIME)
  // expect: constant expression
  EVENTHEADER_EVENT(provider, "E", 4, keyword_of_run_time);
#elif defined(FIELD_NAME_IS_EMPTY)
  // expect: a field's name must not be empty or contain ';' or NUL
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("", number));
#elif defined(FIELD_WITHOUT_ENCODING)
  // expect: the type of this field is not supported
  // within 40 lines: Undescribed
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", Undescribed{number}));
#elif defined(FORMAT_OF_ANOTHER_SIZE)
  // expect: this format does not fit the field's type
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD_AS("f", number, Format::kPort));
#elif defined(FORMAT_OF_A_STRUCT)
  // expect: this format does not fit the field's type
  EVENTHEADER_EVENT(provider, "E", 4, 0,
                    EVENTHEADER_FIELD_AS("f", Described{number}, Format::kHexInt));
#elif defined(UUID_OF_ANOTHER_SIZE)
  // expect: a UUID has 16 bytes, an IP4 4 and an IP6 16
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_UUID("f", number));
#elif defined(STRUCT_WITHOUT_MEMBERS)
  // expect: a struct has 1 to 127 members
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_STRUCT("s", 0));
#elif defined(STRUCT_OF_MORE_THAN_FOLLOW)
  // expect: EVENTHEADER_STRUCT must be followed by as many fields as it declares
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_STRUCT("s", 2), EVENTHEADER_STRUCT("t", 1),
                    EVENTHEADER_FIELD("f", 1));
#elif defined(CONSTANT_ARRAY_OF_NOTHING)
  // expect: a constant array has 1 to 65535 elements
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_CONSTANT_ARRAY("f", &number, 0));
#elif defined(ENABLED_OF_LEVEL_0)
  // expect: an event's level is 1 to 255
  number = EVENTHEADER_ENABLED(provider, 0, 0);
#elif defined(FIELDS_OF_THE_SAME_NAME)
  // expect: two fields of an event, or two members of a struct, have the same name
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_FIELD("f", 1), EVENTHEADER_STRUCT("s", 1),
                    EVENTHEADER_FIELD("g", 1), EVENTHEADER_FIELD("f", 2));
#elif defined(MEMBERS_OF_THE_SAME_NAME)
  // expect: two fields of an event, or two members of a struct, have the same name
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_STRUCT("s", 2), EVENTHEADER_FIELD("f", 1),
                    EVENTHEADER_FIELD("f", 2));
#elif defined(TWO_OPCODES)
  // expect: an event has at most one opcode, id, tag and activity
  EVENTHEADER_EVENT(provider, "E", 4, 0, EVENTHEADER_OPCODE(eh::Opcode::kSend),
                    EVENTHEADER_OPCODE(eh::Opcode::kReply));
#else
  EVENTHEADER_EVENT(provider, "E", 255, 0, EVENTHEADER_FIELD("f", number),
                    EVENTHEADER_FIELD_AS("g", number, Format::kErrno), EVENTHEADER_FIELD("h", text),
                    EVENTHEADER_ID(1, 2), EVENTHEADER_TAG(3), EVENTHEADER_STRUCT("s", 2),
                    EVENTHEADER_STRUCT("t", 1), EVENTHEADER_FIELD("u", 1),
                    EVENTHEADER_FIELD("v", Described{number}),
                    EVENTHEADER_OPCODE(eh::Opcode::kSend));
  // Members of different structs may have the same name.
  EVENTHEADER_EVENT(provider, "Structs", 5, 0, EVENTHEADER_STRUCT("s", 1),
                    EVENTHEADER_FIELD("x", number), EVENTHEADER_FIELD("l", Level{number}),
                    EVENTHEADER_FIELD("m", Members{number}), EVENTHEADER_FIELD("x", number));
#endif
}
