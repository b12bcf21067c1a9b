#include "c_macro_user.h"

#include "eventheader/macros_c.h"

EVENTHEADER_DECLARE_PROVIDER(c_macro_provider);
EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(c_macro_provider, "Test_Macros", "mygroup");

eh_provider* CProvider(void) { return EVENTHEADER_PROVIDER(c_macro_provider); }

void CWriteNothing(void) { EVENTHEADER_EVENT(c_macro_provider, "Nothing", EH_LEVEL_ERROR, 0x2a); }

void CWriteValues(const struct CValues* v) {
  EVENTHEADER_EVENT(c_macro_provider, "Values", 4, 1, EVENTHEADER_FIELD("b", v->b),
                    EVENTHEADER_FIELD("c", v->c), EVENTHEADER_FIELD("i8", v->i8),
                    EVENTHEADER_FIELD("u8", v->u8), EVENTHEADER_FIELD("i16", v->i16),
                    EVENTHEADER_FIELD("text", v->text), EVENTHEADER_FIELD("u16", v->u16),
                    EVENTHEADER_FIELD("i32", v->i32), EVENTHEADER_FIELD("u32", v->u32),
                    EVENTHEADER_FIELD("i64", v->i64), EVENTHEADER_FIELD("u64", v->u64),
                    EVENTHEADER_FIELD("longest", v->longest), EVENTHEADER_FIELD("f", v->f),
                    EVENTHEADER_FIELD("d", v->d), EVENTHEADER_FIELD("pointer", v->pointer),
                    EVENTHEADER_FIELD("literal", "literal"), EVENTHEADER_FIELD("last", 17));
}

void CWriteFormats(const struct CValues* v) {
  EVENTHEADER_EVENT(
      c_macro_provider, "Formats", 4, 1, EVENTHEADER_FIELD_AS("8u", v->u8, EH_FORMAT_UNSIGNED_INT),
      EVENTHEADER_FIELD_AS("8s", v->u8, EH_FORMAT_SIGNED_INT),
      EVENTHEADER_FIELD_AS("8x", v->u8, EH_FORMAT_HEX_INT),
      EVENTHEADER_FIELD_AS("8b", v->u8, EH_FORMAT_BOOLEAN),
      EVENTHEADER_FIELD_AS("8h", v->u8, EH_FORMAT_HEX_BYTES),
      EVENTHEADER_FIELD_AS("8c", v->u8, EH_FORMAT_STRING8),
      EVENTHEADER_FIELD_AS("16b", v->u16, EH_FORMAT_BOOLEAN),
      EVENTHEADER_FIELD_AS("16c", v->u16, EH_FORMAT_STRING_UTF),
      EVENTHEADER_FIELD_AS("16p", v->u16, EH_FORMAT_PORT),
      EVENTHEADER_FIELD_AS("32e", v->i32, EH_FORMAT_ERRNO),
      EVENTHEADER_FIELD_AS("32i", v->i32, EH_FORMAT_PID),
      EVENTHEADER_FIELD_AS("32t", v->i32, EH_FORMAT_TIME),
      EVENTHEADER_FIELD_AS("32b", v->i32, EH_FORMAT_BOOLEAN),
      EVENTHEADER_FIELD_AS("32f", v->u32, EH_FORMAT_FLOAT),
      EVENTHEADER_FIELD_AS("32c", v->u32, EH_FORMAT_STRING_UTF),
      EVENTHEADER_FIELD_AS("32a", v->u32, EH_FORMAT_IP_ADDRESS),
      EVENTHEADER_FIELD_AS("64t", v->i64, EH_FORMAT_TIME),
      EVENTHEADER_FIELD_AS("64f", v->u64, EH_FORMAT_FLOAT),
      EVENTHEADER_FIELD_AS("64x", v->u64, EH_FORMAT_HEX_INT), EVENTHEADER_UUID("uuid", v->bytes16),
      EVENTHEADER_IP4("ip4", v->bytes16), EVENTHEADER_IP6("ip6", v->bytes16),
      EVENTHEADER_FIELD_AS("json", v->text, EH_FORMAT_STRING_JSON),
      EVENTHEADER_FIELD_AS("latin", v->text, EH_FORMAT_STRING8),
      EVENTHEADER_FIELD_TAGGED("tagged", v->i32, EH_FORMAT_DEFAULT, 0x1234),
      EVENTHEADER_FIELD_TAGGED("both", v->i32, EH_FORMAT_HEX_INT, 7),
      EVENTHEADER_FIELD_TAGGED("plain", v->u32, EH_FORMAT_DEFAULT, 8));
}

void CWriteRanges(const struct CValues* v) {
  EVENTHEADER_EVENT(c_macro_provider, "Ranges", 4, 1, EVENTHEADER_STRING("string", v->text, 2),
                    EVENTHEADER_STRING("string16", v->text16, v->text16_size),
                    EVENTHEADER_STRING_AS("xml", v->text, 3, EH_FORMAT_STRING_XML),
                    EVENTHEADER_ZSTRING("z", v->text),
                    EVENTHEADER_ZSTRING_AS("zj", v->text, EH_FORMAT_STRING_JSON),
                    EVENTHEADER_FIELD("between", v->u8),
                    EVENTHEADER_BINARY("binary", v->bytes16, 5),
                    EVENTHEADER_BINARY_AS("uuid", v->bytes16, 16, EH_FORMAT_UUID),
                    EVENTHEADER_ARRAY("array", v->numbers, v->number_count),
                    EVENTHEADER_ARRAY_AS("hex", v->numbers, v->number_count, EH_FORMAT_HEX_INT),
                    EVENTHEADER_CONSTANT_ARRAY("constant", v->numbers, 3),
                    EVENTHEADER_CONSTANT_ARRAY_AS("pids", v->numbers, 2, EH_FORMAT_PID));
}

void CWriteStructs(const struct CValues* v) {
  EVENTHEADER_EVENT(c_macro_provider, "Structs", 4, 1, EVENTHEADER_STRUCT("outer", 3),
                    EVENTHEADER_FIELD("a", v->i32), EVENTHEADER_STRUCT("inner", 1),
                    EVENTHEADER_FIELD("b", v->text), EVENTHEADER_FIELD("c", v->u16),
                    EVENTHEADER_FIELD("after", v->d));
}

void CWriteBinary(const void* data, size_t size) {
  EVENTHEADER_EVENT(c_macro_provider, "Binary", 4, 1, EVENTHEADER_BINARY("data", data, size));
}

void CWriteActivity(const uint8_t* id, const uint8_t* related) {
  EVENTHEADER_EVENT(c_macro_provider, "Alone", 4, 1, EVENTHEADER_ACTIVITY(id));
  EVENTHEADER_EVENT(c_macro_provider, "Started", EH_LEVEL_VERBOSE, 1,
                    EVENTHEADER_OPCODE(EH_OPCODE_ACTIVITY_START), EVENTHEADER_ID(0x1234, 5),
                    EVENTHEADER_TAG(0x6789), EVENTHEADER_FIELD("n", 17),
                    EVENTHEADER_ACTIVITY(id, related));
}

void CWriteCosts(int* evaluated) {
  EVENTHEADER_EVENT(c_macro_provider, "Costs", 4, 1, EVENTHEADER_FIELD("evaluated", ++*evaluated));
}

void CWriteOneOf(bool first) {
  if (first)
    EVENTHEADER_EVENT(c_macro_provider, "First", 4, 1);
  else
    EVENTHEADER_EVENT(c_macro_provider, "Second", 4, 1);
}

bool CEnabled(void) { return EVENTHEADER_ENABLED(c_macro_provider, EH_LEVEL_WARNING, 0x100); }

unsigned CEncodingsOf(int format) { return EVENTHEADER_INTERNAL_ENCODINGS_OF(format); }
