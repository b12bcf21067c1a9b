// Checks while compiling that the C header's numbers are those of wire.h.
#include "eventheader/eventheader_c.h"
#include "eventheader/wire.h"

namespace eh {
namespace {

template <typename Enum>
constexpr bool Are(int c_value, Enum value) {
  return c_value == static_cast<int>(value);
}

static_assert(Are(EH_LEVEL_CRITICAL_ERROR, Level::kCriticalError));
static_assert(Are(EH_LEVEL_ERROR, Level::kError));
static_assert(Are(EH_LEVEL_WARNING, Level::kWarning));
static_assert(Are(EH_LEVEL_INFORMATION, Level::kInformation));
static_assert(Are(EH_LEVEL_VERBOSE, Level::kVerbose));

static_assert(Are(EH_OPCODE_INFO, Opcode::kInfo));
static_assert(Are(EH_OPCODE_ACTIVITY_START, Opcode::kActivityStart));
static_assert(Are(EH_OPCODE_ACTIVITY_STOP, Opcode::kActivityStop));

static_assert(Are(EH_SCALAR, Arity::kScalar));
static_assert(Are(EH_CONSTANT_ARRAY, Arity::kConstantArray));
static_assert(Are(EH_VARIABLE_ARRAY, Arity::kVariableArray));
static_assert(Are(EH_CONSTANT_ARRAY_FLAG, kEncodingConstantArray));
static_assert(Are(EH_VARIABLE_ARRAY_FLAG, kEncodingVariableArray));
static_assert(Are(EH_HAS_FORMAT, kEncodingHasFormat));

static_assert(Are(EH_ENCODING_STRUCT, Encoding::kStruct));
static_assert(Are(EH_ENCODING_VALUE8, Encoding::kValue8));
static_assert(Are(EH_ENCODING_VALUE16, Encoding::kValue16));
static_assert(Are(EH_ENCODING_VALUE32, Encoding::kValue32));
static_assert(Are(EH_ENCODING_VALUE64, Encoding::kValue64));
static_assert(Are(EH_ENCODING_VALUE128, Encoding::kValue128));
static_assert(Are(EH_ENCODING_ZSTRING8, Encoding::kZStringChar8));
static_assert(Are(EH_ENCODING_ZSTRING16, Encoding::kZStringChar16));
static_assert(Are(EH_ENCODING_ZSTRING32, Encoding::kZStringChar32));
static_assert(Are(EH_ENCODING_STRING8, Encoding::kStringLength16Char8));
static_assert(Are(EH_ENCODING_STRING16, Encoding::kStringLength16Char16));
static_assert(Are(EH_ENCODING_STRING32, Encoding::kStringLength16Char32));
static_assert(Are(EH_ENCODING_BINARY, Encoding::kBinaryLength16Char8));

static_assert(Are(EH_FORMAT_DEFAULT, Format::kDefault));
static_assert(Are(EH_FORMAT_UNSIGNED_INT, Format::kUnsignedInt));
static_assert(Are(EH_FORMAT_SIGNED_INT, Format::kSignedInt));
static_assert(Are(EH_FORMAT_HEX_INT, Format::kHexInt));
static_assert(Are(EH_FORMAT_ERRNO, Format::kErrno));
static_assert(Are(EH_FORMAT_PID, Format::kPid));
static_assert(Are(EH_FORMAT_TIME, Format::kTime));
static_assert(Are(EH_FORMAT_BOOLEAN, Format::kBoolean));
static_assert(Are(EH_FORMAT_FLOAT, Format::kFloat));
static_assert(Are(EH_FORMAT_HEX_BYTES, Format::kHexBytes));
static_assert(Are(EH_FORMAT_STRING8, Format::kString8));
static_assert(Are(EH_FORMAT_STRING_UTF, Format::kStringUtf));
static_assert(Are(EH_FORMAT_STRING_UTF_BOM, Format::kStringUtfBom));
static_assert(Are(EH_FORMAT_STRING_XML, Format::kStringXml));
static_assert(Are(EH_FORMAT_STRING_JSON, Format::kStringJson));
static_assert(Are(EH_FORMAT_UUID, Format::kUuid));
static_assert(Are(EH_FORMAT_PORT, Format::kPort));
static_assert(Are(EH_FORMAT_IP_ADDRESS, Format::kIpAddress));

}  // namespace
}  // namespace eh
