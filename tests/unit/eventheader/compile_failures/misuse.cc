// Uses of the C++ API that must not compile, and some that must. Without any macro defined, the
// file compiles. With one of the macros below, it must not compile, and the compiler's messages
// must contain the text after "expect:", which explains the mistake. If "within N lines:" follows,
// the messages must have at most N lines and contain this text, too. " | " separates alternatives.
// check.py compiles the file once for each macro.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eventheader/eh.h"

namespace {

using namespace eh;

constinit Provider provider("Test_Misuse");

#define TEN(text) text text text text text text text text text text
#define HUNDRED(text) TEN(TEN(text))

// ---- Providers ----

const std::string name_of_run_time("MyCompany");
DynamicProvider any(name_of_run_time);

#if defined(PROVIDER_NAME_IS_EMPTY)
// expect: TheProvidersNameMustBeAnIdentifier
constinit Provider named("");
#elif defined(PROVIDER_NAME_HAS_A_SPACE)
// expect: TheProvidersNameMustBeAnIdentifier
constinit Provider named("My Company");
#elif defined(PROVIDER_NAME_BEGINS_WITH_A_DIGIT)
// expect: TheProvidersNameMustBeAnIdentifier
constinit Provider named("1Company");
#elif defined(PROVIDER_NAME_IS_TOO_LONG)
// expect: TheProvidersNameHasMoreThan200Bytes
constinit Provider named(HUNDRED("x") HUNDRED("x") "x");
#elif defined(PROVIDER_GROUP_IN_CAPITALS)
// expect: TheProvidersGroupMustBeLowerCaseLetters
constinit Provider named("MyCompany", "Group");
#elif defined(PROVIDER_GROUP_IS_TOO_LONG)
// expect: TheProvidersGroupHasMoreThan24Bytes
constinit Provider named("MyCompany", TEN("x") TEN("x") "xxxxx");
#elif defined(PROVIDER_NAME_OF_RUN_TIME)
// expect: constant expression | constant initializer
constinit Provider named(name_of_run_time);
#else
constinit Provider named("MyCompany", "group1");
constinit Provider longest(HUNDRED("x") HUNDRED("x"), TEN("x") TEN("x") "xxxx");
#endif

// ---- Events: name, traits, parts ----

#if defined(EVENT_NAME_IS_EMPTY)
// expect: an event's name must not be empty or contain ';' or
constexpr Event<provider, "", Traits{}> event;
#elif defined(EVENT_NAME_HAS_A_SEMICOLON)
// expect: an event's name must not be empty or contain
constexpr Event<provider, "a;b", Traits{}> event;
#elif defined(EVENT_NAME_HAS_A_NUL)
// expect: an event's name must not be empty or contain
constexpr Event<provider, "a\0b", Traits{}> event;
#elif defined(EVENT_OF_LEVEL_0)
// expect: an event's level is at least 1
constexpr Event<provider, "E", Traits{.level = Level::kInvalid}> event;
#elif defined(EVENT_OF_LEVEL_256)
// expect: 256
constexpr Event<provider, "E", Traits{.level = Level{256}}> event;
#elif defined(EVENT_WITH_A_BARE_TYPE)
// expect: only Fields and Attributes may follow the traits of an event
constexpr Event<provider, "E", Traits{}, int> event;
#elif defined(EVENT_NAMES_OVER_THE_MAXIMUM_SIZE)
// expect: names alone exceed the maximum event size
constexpr Event<provider, "E", Traits{}, Field<HUNDRED(TEN("name name ")), int>> event;
#elif defined(EVENT_THAT_CANNOT_BE_WRITTEN)
// expect: the event can never be written
constexpr Event<provider, "E", Traits{}, Field<"f", std::array<bool, 8200>>> event;
#elif defined(FIELDS_OF_THE_SAME_NAME)
// expect: two fields of an event, or two members of a struct, have the same name
constexpr Event<provider, "E", Traits{}, Field<"f", int>, Attribute<"a", "b">, Field<"f", bool>>
    event;
#elif defined(EVENT_OF_A_LOCAL_PROVIDER)
// expect: provider
void Local() {
  DynamicProvider local_provider("Local");
  Event<local_provider, "E", Traits{}> event;
}
#else
constexpr Event<provider, "E", Traits{.level = Level{255}}, Field<HUNDRED("name name "), int>>
    event;
#endif

// ---- Fields: name, type, options ----

struct Undescribed {
  int x;
};

#if defined(FIELD_NAME_IS_EMPTY)
// expect: a field's name must not be empty or contain ';' or NUL
constexpr Event<provider, "E", Traits{}, Field<"", int>> fields;
#elif defined(FIELD_NAME_HAS_A_SEMICOLON)
// expect: a field's name must not be empty or contain
constexpr Event<provider, "E", Traits{}, Field<"a;b", int>> fields;
#elif defined(FIELD_NAME_HAS_A_NUL)
// expect: a field's name must not be empty or contain
constexpr Event<provider, "E", Traits{}, Field<"a\0", int>> fields;
#elif defined(FIELD_OF_A_STRUCT_NOT_DESCRIBED)
// expect: the type of this field is not supported
// within 25 lines: eh::Field<eh::FixedString<6>{"where"}, {anonymous}::Undescribed> | Undescribed>'
// requested here
constexpr Event<provider, "E", Traits{}, Field<"where", Undescribed>> fields;
[[maybe_unused]] void WriteUndescribed() { fields.Write(Undescribed{1}); }
#elif defined(FIELD_OF_AN_ARRAY_OF_A_STRUCT_NOT_DESCRIBED)
// expect: the type of this field is not supported
// within 25 lines: Undescribed
constexpr Event<provider, "E", Traits{}, Field<"where", std::vector<Undescribed>>> fields;
#elif defined(FIELD_CONVERTED_TO_AN_OBJECT_WITH_MEMORY)
// expect: EventheaderValue must return a number, a view or a reference
struct Copied {};
std::string EventheaderValue(const Copied&) { return "copy"; }
constexpr Event<provider, "E", Traits{}, Field<"f", Copied>> fields;
#elif defined(ATOMIC_TEXT)
// expect: a field of type std::atomic must contain a number, an enum or a bool
constexpr Event<provider, "E", Traits{}, Field<"f", std::atomic<const char*>>> fields;
#elif defined(TRUNCATED_TO_NOTHING)
// expect: Truncate must keep at least 1 byte of a text
constexpr Event<provider, "E", Traits{}, Field<"f", Truncate<0>>> fields;
#elif defined(FIELD_OF_LONG_DOUBLE)
// expect: the type of this field is not supported
constexpr Event<provider, "E", Traits{}, Field<"f", long double>> fields;
#elif defined(FIELD_OF_ANOTHER_CLOCK)
// expect: time point of the system clock
constexpr Event<provider, "E", Traits{}, Field<"f", std::chrono::steady_clock::time_point>> fields;
#elif defined(FIELD_OF_A_REFERENCE)
// expect: of these, but no reference
constexpr Event<provider, "E", Traits{}, Field<"f", int&>> fields;
#elif defined(OPTIONAL_ARRAY)
// expect: optional values cannot themselves be arrays
constexpr Event<provider, "E", Traits{}, Field<"f", std::optional<std::vector<int>>>> fields;
#elif defined(ARRAY_OF_ARRAYS)
// expect: array elements and optional values cannot
constexpr Event<provider, "E", Traits{}, Field<"f", std::vector<std::vector<int>>>> fields;
#elif defined(ARRAY_OF_NOTHING)
// expect: a constant array has 1 to 65535 elements
constexpr Event<provider, "E", Traits{}, Field<"f", std::array<int, 0>>> fields;
#elif defined(ARRAY_OF_65536)
// expect: a constant array has 1 to 65535 elements
constexpr Event<provider, "E", Traits{}, Field<"f", std::array<bool, 65536>>> fields;
#elif defined(FIELD_WITH_A_BARE_OPTION)
// expect: a field's options must be Tag, Attribute or As
constexpr Event<provider, "E", Traits{}, Field<"f", int, Format>> fields;
#elif defined(ATTRIBUTE_NAME_HAS_AN_EQUALS_SIGN)
// expect: an attribute's name must not be empty or
constexpr Event<provider, "E", Traits{}, Field<"f", int, Attribute<"a=b", "c">>> fields;
#elif defined(ATTRIBUTE_NAME_IS_EMPTY)
// expect: an attribute's name must not be empty or contain
constexpr Event<provider, "E", Traits{}, Attribute<"", "c">> fields;
#elif defined(ATTRIBUTE_HAS_A_NUL)
// expect: an attribute must not contain NUL
constexpr Event<provider, "E", Traits{}, Attribute<"a", "b\0">> fields;
#elif defined(FORMAT_OF_ANOTHER_SIZE)
// expect: this format does not fit the field's type
constexpr Event<provider, "E", Traits{}, Field<"f", std::int16_t, As<Format::kErrno>>> fields;
#elif defined(TEXT_FORMAT_OF_A_NUMBER)
// expect: this format does not fit the field's type
constexpr Event<provider, "E", Traits{}, Field<"f", int, As<Format::kStringJson>>> fields;
#elif defined(LATIN1_OF_WIDE_TEXT)
// expect: this format does not fit the field's type
constexpr Event<provider, "E", Traits{}, Field<"f", Latin1<std::u16string_view>>> fields;
#elif defined(OBSOLETE_FORMAT)
// expect: this format does not fit the field's type
constexpr Event<provider, "E", Traits{}, Field<"f", int, As<Format::kIpAddressObsolete>>> fields;
#else
constexpr Event<provider, "E", Traits{}, Field<"a", std::int32_t, As<Format::kErrno>>,
                Field<"b", std::string, As<Format::kStringJson>, Attribute<"a", "b=c;">>,
                Field<"c", std::array<bool, 8000>>>
    fields;
static_assert(Field<"f", std::array<bool, 65535>>::Facts().count == 65535);
#endif

// ---- Structs ----

struct Point {
  std::uint8_t x;
};
struct Outer {
  Undescribed inner;
};
template <int kDepth>
struct Nested {
  Nested<kDepth - 1> inner;
};
template <>
struct Nested<0> {
  int x;
};

}  // namespace

template <int kDepth>
struct eh::StructOf<Nested<kDepth>> {
  using Members = eh::Members<eh::Member<"inner", &Nested<kDepth>::inner>>;
};
template <>
struct eh::StructOf<Nested<0>> {
  using Members = eh::Members<eh::Member<"x", &Nested<0>::x>>;
};
template <>
struct eh::StructOf<Point> {
#define X(name) eh::Member<name, &Point::x>
#define X7(n) X(n "1"), X(n "2"), X(n "3"), X(n "4"), X(n "5"), X(n "6"), X(n "7")
#define X8(n) X7(n), X(n "8")
#define X56(n) X8(n "1"), X8(n "2"), X8(n "3"), X8(n "4"), X8(n "5"), X8(n "6"), X8(n "7")
#define X64(n) X56(n), X8(n "8")
#if defined(STRUCT_OF_128_MEMBERS)
  // expect: a struct has 1 to 127 members
  using Members = eh::Members<X64("a"), X64("b")>;
#elif defined(STRUCT_WITHOUT_MEMBERS)
  // expect: a struct has 1 to 127 members
  using Members = eh::Members<>;
#elif defined(MEMBER_NAME_HAS_A_SEMICOLON)
  // expect: a field's name must not be empty or contain
  using Members = eh::Members<eh::Member<"x;", &Point::x>>;
#elif defined(MEMBERS_OF_THE_SAME_NAME)
  // expect: two fields of an event, or two members of a struct, have the same name
  using Members = eh::Members<X("x"), X("y"), X("x")>;
#elif defined(MEMBER_OF_A_STRUCT_NOT_DESCRIBED)
  // expect: the type of this field is not supported
  using Members = eh::Members<eh::Member<"where", &Outer::inner>>;
#else
  using Members = eh::Members<X64("a"), X56("b"), X7("c")>;
#endif
};

namespace {

#define P(name) Field<name, Point>
#define P8 P("1"), P("2"), P("3"), P("4"), P("5"), P("6"), P("7"), P("8")
#if defined(EVENT_OF_MORE_THAN_1024_FIELDS)
// expect: an event has at most 1024 fields
constexpr Event<provider, "E", Traits{}, P8, Field<"x", int>> structs;
#elif defined(STRUCTS_NESTED_TOO_DEEP)
// expect: structs are nested at most 8 deep
constexpr Event<provider, "E", Traits{}, Field<"n", Nested<8>>> structs;
#elif defined(FORMAT_OF_A_STRUCT)
// expect: this format does not fit the field's type
constexpr Event<provider, "E", Traits{}, Field<"p", Point, As<Format::kHexBytes>>> structs;
#else
constexpr Event<provider, "E", Traits{}, P8> structs;
constexpr Event<provider, "E", Traits{}, Field<"n", Nested<7>>> nested;
#endif

// ---- Activities ----

constexpr Event<provider, "Start", Traits{.opcode = Opcode::kActivityStart}> start;
constexpr Event<provider, "Stop", Traits{.opcode = Opcode::kActivityStop}, Field<"f", int>> stop;

[[maybe_unused]] void Scopes() {
#if defined(SCOPE_WITHOUT_START_OPCODE)
  // expect: the first event of an ActivityScope needs .opcode = Opcode::kActivityStart
  ActivityScope<stop, stop> scope;
#elif defined(SCOPE_WITHOUT_STOP_OPCODE)
  // expect: the second event of an ActivityScope needs .opcode = Opcode::kActivityStop
  ActivityScope<start, start> scope;
#elif defined(STOP_WITHOUT_ITS_FIELDS)
  // expect: no matching | too few arguments
  ActivityScope<start, stop> scope;
  scope.Stop();
#else
  ActivityScope<start, stop> scope;
  scope.Stop(1);
#endif
}

// ---- Writing ----

constexpr Event<provider, "E", Traits{}, Field<"text", std::string_view>, Field<"number", int>>
    writable;

[[maybe_unused]] void Write() {
#if defined(TOO_FEW_ARGUMENTS)
  // expect: no matching
  writable.Write("a");
#elif defined(TOO_MANY_ARGUMENTS)
  // expect: no matching
  writable.Write("a", 1, 2);
#elif defined(A_STRUCT_FOR_A_STRING)
  // expect: no matching
  writable.Write(Point{1}, 1);
#elif defined(A_STRING_FOR_A_NUMBER)
  // expect: no matching | invalid conversion
  writable.Write("a", "b");
#elif defined(DYNAMIC_FIELD_WITHOUT_ENCODING)
  // expect: the type of this field is not supported
  DynamicEvent dynamic;
  dynamic.AddField("f", Undescribed{1});
#else
  writable.Write("a", 1);
  DynamicEvent dynamic;
  dynamic.AddField("f", Point{1});
#endif
}

}  // namespace
