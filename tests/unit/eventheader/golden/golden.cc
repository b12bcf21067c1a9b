#include "golden.h"

#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/json_formatter.h"
#include "tests/support/eventheader/event_bytes.h"

namespace eh::testing {
namespace {

using namespace std::string_literals;

std::string_view DefinitionOf(std::string_view golden) {
  return golden.substr(0, golden.find('|'));
}
std::string_view PayloadOf(std::string_view golden) { return golden.substr(golden.find('|')); }

// Returns the formats that the specification permits for each encoding.
std::set<Format> FormatsOf(Encoding encoding) {
  using enum Format;
  switch (encoding) {
    case Encoding::kValue8:
      return {kDefault, kUnsignedInt, kSignedInt, kHexInt, kBoolean, kHexBytes, kString8};
    case Encoding::kValue16:
      return {kDefault, kUnsignedInt, kSignedInt, kHexInt, kBoolean, kHexBytes, kStringUtf, kPort};
    case Encoding::kValue32:
      return {kDefault, kUnsignedInt, kSignedInt, kHexInt,   kErrno,     kPid,
              kTime,    kBoolean,     kFloat,     kHexBytes, kStringUtf, kIpAddress};
    case Encoding::kValue64:
      return {kDefault, kUnsignedInt, kSignedInt, kHexInt, kTime, kFloat, kHexBytes};
    case Encoding::kValue128:
      return {kDefault, kHexBytes, kUuid, kIpAddress};
    case Encoding::kZStringChar8:
      return {kDefault, kHexBytes, kString8, kStringUtf, kStringUtfBom, kStringXml, kStringJson};
    case Encoding::kZStringChar16:
    case Encoding::kZStringChar32:
    case Encoding::kStringLength16Char16:
    case Encoding::kStringLength16Char32:
      return {kDefault, kHexBytes, kStringUtf, kStringUtfBom, kStringXml, kStringJson};
    case Encoding::kStringLength16Char8:
    case Encoding::kBinaryLength16Char8:
      return {kDefault,      kUnsignedInt, kSignedInt,  kHexInt,   kErrno,   kPid,
              kTime,         kBoolean,     kFloat,      kHexBytes, kString8, kStringUtf,
              kStringUtfBom, kStringXml,   kStringJson, kUuid,     kPort,    kIpAddress};
    default:
      return {};
  }
}

}  // namespace

void GoldenBytes::ExpectWholeMatrixOf(Encoding encoding) const {
  std::set<std::pair<Encoding, Format>> wanted;
  for (const Format format : FormatsOf(encoding)) wanted.emplace(encoding, format);
  EXPECT_EQ(rows_, wanted);
  RecordProperty("combinations", static_cast<int>(3 * rows_.size()));
}

std::string GoldenBytes::Take() {
  const auto records = transport_.Take();
  if (records.size() != 1) return std::to_string(records.size()) + " events";
  EXPECT_EQ(records[0].tracepoint, "Test_Golden_L4K0");
  return TextOfWritten(records[0].event);
}

std::string GoldenBytes::Bytes(std::string_view golden) {
  return EventBytes("E\0f\0"s + FromHex(DefinitionOf(golden)), FromHex(PayloadOf(golden)));
}

void GoldenBytes::ExpectJson(std::string_view golden, std::string_view json) {
  const std::string bytes = Bytes(golden);
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  std::string text;
  AppendEventJson(event, "", &text);
  EXPECT_EQ(text, R"({"name":"E","level":4,"fields":{"f":)" + std::string(json) + "}}");
}

void GoldenBytes::Begin(Encoding encoding, Format format) {
  EXPECT_TRUE(rows_.emplace(encoding, format).second) << "the row is there twice";
}

void GoldenBytes::Untyped(Encoding encoding, Format format, const Golden& golden) {
  // An array of characters is shown as text.
  const bool characters = internal::FixedSize(encoding) != 0 && golden.first.starts_with('"') &&
                          internal::FactsOf(format)->kind == internal::FormatKind::kText;
  const std::string array =
      characters ? std::string(golden.first.substr(0, golden.first.size() - 1)) +
                       std::string(golden.second.substr(1))
                 : "[" + std::string(golden.first) + "," + std::string(golden.second) + "]";
  UntypedOne(encoding, format, Arity::kScalar, golden.scalar, golden.first);
  UntypedOne(encoding, format, Arity::kConstantArray, golden.constant, array);
  UntypedOne(encoding, format, Arity::kVariableArray, golden.variable, array);
}

void GoldenBytes::UntypedOne(Encoding encoding, Format format, Arity arity, std::string_view golden,
                             std::string_view json) {
  SCOPED_TRACE(golden);
  const std::string bytes = Bytes(golden);
  const std::string payload = FromHex(PayloadOf(golden));
  const std::uint16_t count = arity == Arity::kConstantArray ? 2 : 0;

  dynamic_.Reset("E");
  dynamic_.AddRaw("f", encoding, arity, count, format, 0, AsBytes(payload));
  EXPECT_EQ(dynamic_.Write(set_), WriteResult::kWritten);
  EXPECT_EQ(Take(), bytes) << "raw field of a dynamic event";

  eh_builder_reset(builder_.get(), "E");
  eh_builder_add_raw(builder_.get(), "f", static_cast<std::uint8_t>(encoding),
                     static_cast<std::uint8_t>(arity), count, static_cast<std::uint8_t>(format), 0,
                     payload.data(), payload.size());
  EXPECT_EQ(eh_builder_write(builder_.get(), c_set(), nullptr), 0);
  EXPECT_EQ(Take(), bytes) << "C builder";

  Prepared(golden);

  EventView view;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &view), ParseError::kNone);
  Decoder decoder(view);
  Item item;
  ASSERT_TRUE(decoder.Next(&item));
  EXPECT_EQ(item.field->encoding, encoding);
  EXPECT_EQ(item.field->arity, arity);
  EXPECT_EQ(item.field->array_length, count);
  EXPECT_EQ(item.field->format,
            format == Format::kDefault ? internal::DefaultFormat(encoding) : format);
  while (decoder.Next(&item)) {
  }
  EXPECT_EQ(decoder.error(), ParseError::kNone);
  EXPECT_TRUE(decoder.rest().empty());
  ExpectJson(golden, json);
}

void GoldenBytes::Prepared(std::string_view golden) {
  const std::string payload = FromHex(PayloadOf(golden));
  const std::string metadata = "E\0f\0"s + FromHex(DefinitionOf(golden));
  const eh_event event = {.id = 0,
                          .version = 0,
                          .opcode = 0,
                          .tag = 0,
                          .metadata_size = static_cast<std::uint16_t>(metadata.size()),
                          .metadata = metadata.data()};
  EXPECT_EQ(eh_write(c_set(), &event, nullptr, payload.data(), payload.size()), 0);
  EXPECT_EQ(Take(), Bytes(golden)) << "C, prepared metadata";
}

void GoldenBytes::UntypedStruct(Arity arity, std::string_view golden, std::string_view json) {
  SCOPED_TRACE(golden);
  const std::string payload = FromHex(PayloadOf(golden));
  const std::uint16_t count = arity == Arity::kConstantArray ? 2 : 0;

  dynamic_.Reset("E");
  const std::size_t where = dynamic_.StartStruct("f", arity, count);
  dynamic_.AddRaw("n", Encoding::kValue16, Arity::kScalar, 0, Format::kSignedInt, 0, {});
  dynamic_.AddRaw("s", Encoding::kStringLength16Char8, Arity::kScalar, 0, Format::kDefault, 0, {});
  dynamic_.SetStructFields(where, 2);
  dynamic_.AddData(AsBytes(payload));
  EXPECT_EQ(dynamic_.Write(set_), WriteResult::kWritten);
  EXPECT_EQ(Take(), Bytes(golden)) << "struct of a dynamic event";

  eh_builder* const builder = builder_.get();
  eh_builder_reset(builder, "E");
  const std::size_t c_where =
      eh_builder_start_struct_array(builder, "f", static_cast<std::uint8_t>(arity), count, 0);
  eh_builder_add_raw(builder, "n", 3, 0, 0, 2, 0, nullptr, 0);
  eh_builder_add_raw(builder, "s", 10, 0, 0, 0, 0, nullptr, 0);
  eh_builder_set_struct_fields(builder, c_where, 2);
  eh_builder_add_data(builder, payload.data(), payload.size());
  EXPECT_EQ(eh_builder_write(builder, c_set(), nullptr), 0);
  EXPECT_EQ(Take(), Bytes(golden)) << "C builder";

  Prepared(golden);
  ExpectJson(golden, json);
}

}  // namespace eh::testing
