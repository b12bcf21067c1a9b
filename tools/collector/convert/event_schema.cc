#include "tools/collector/convert/event_schema.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eventheader/internal/field_rules.h"
#include "tools/common/eventheader_keys.h"

namespace collector {
namespace {

using eh::Arity;
using eh::Encoding;
using eh::FieldDefinition;
using eh::Format;
using nettrace::Type;
using nettrace::TypeCode;

// The type of one value, and the operation that produces it.
struct Value {
  Type type;
  PayloadOp op;
  bool type_says_format = true;  // no other format has the type
};

TypeCode IntegerType(std::size_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? TypeCode::kSByte : TypeCode::kByte;
    case 2:
      return is_signed ? TypeCode::kInt16 : TypeCode::kUInt16;
    case 4:
      return is_signed ? TypeCode::kInt32 : TypeCode::kUInt32;
    default:
      return is_signed ? TypeCode::kInt64 : TypeCode::kUInt64;
  }
}

class Compiler {
 public:
  Compiler(const eh::EventView& event, TextForm form)
      : reader_(event.metadata, event.little_endian), swap_(!event.little_endian), form_(form) {}

  absl::StatusOr<EventSchema> Compile() {
    EventSchema schema;
    CompileFields(/*limit=*/-1, &schema.metadata.fields);
    if (reader_.error() != eh::ParseError::kNone) {
      return absl::InvalidArgumentError(eh::ParseErrorText(reader_.error()));
    }
    schema.metadata.name = std::string(reader_.event_name());
    if (!reader_.event_attributes().empty()) {
      schema.metadata.key_values.emplace_back(tools::kKeyAttributes, reader_.event_attributes());
    }
    for (auto& pair : field_notes_) schema.metadata.key_values.push_back(std::move(pair));
    schema.program = PayloadProgram(std::move(ops_), swap_);
    return schema;
  }

 private:
  // Compiles the next `limit` definitions, all that come if it is negative. Struct members recurse;
  // the reader bounds their depth.
  void CompileFields(int limit, std::vector<nettrace::Field>* fields) {
    FieldDefinition field;
    while (limit != 0 && reader_.Next(&field)) {
      if (limit > 0) --limit;
      const int index = index_++;
      Value value = field.encoding == Encoding::kStruct ? Value() : CompileValue(field);
      Note(field, value, index);
      if (field.encoding == Encoding::kStruct) {
        const std::size_t at = ops_.size();
        ops_.emplace_back();
        std::vector<nettrace::Field> members;
        CompileFields(field.struct_fields, &members);
        value.type = Type::Object(std::move(members));
        value.op.element = PayloadOp::Element::kStruct;
        value.op.children = static_cast<std::uint32_t>(ops_.size() - at - 1);
        Type type = Arrayed(field, &value);
        ops_[at] = value.op;
        fields->push_back({std::string(field.name), std::move(type)});
      } else {
        Type type = Arrayed(field, &value);
        ops_.push_back(value.op);
        fields->push_back({std::string(field.name), std::move(type)});
      }
    }
  }

  Value CompileValue(FieldDefinition field) const {
    const Format given = field.format;
    field.format = eh::internal::ShownFormat(field.encoding, given);
    Value value;
    value.op.swap = swap_;
    value.op.size = static_cast<std::uint8_t>(eh::internal::FixedSize(field.encoding));
    switch (field.encoding) {
      case Encoding::kValue8:
      case Encoding::kValue16:
      case Encoding::kValue32:
      case Encoding::kValue64:
        CompileNumber(field, &value);
        break;
      case Encoding::kValue128:
        value.op.swap = false;
        if (tools::IsByteSequence(field.encoding, field.format)) {
          Bytes(16, &value);
        } else {
          value.op.element = PayloadOp::Element::kUuid;
          value.type = Type::Simple(TypeCode::kGuid);
        }
        break;
      default:
        CompileBlob(field, &value);
        break;
    }
    value.type_says_format = value.type_says_format && field.format == given;
    return value;
  }

  static void Bytes(std::uint16_t count, Value* value) {
    value->type = Type::FixedLengthArray(Type::Simple(TypeCode::kByte), count);
    value->type_says_format = false;
  }

  void CompileNumber(const FieldDefinition& field, Value* value) const {
    const std::size_t size = value->op.size;
    if (tools::IsByteSequence(field.encoding, field.format)) {
      value->op.swap = false;
      Bytes(static_cast<std::uint16_t>(size), value);
      return;
    }
    bool is_signed = false;
    switch (field.format) {
      case Format::kUnsignedInt:
        break;
      case Format::kSignedInt:
        is_signed = true;
        break;
      case Format::kErrno:
      case Format::kPid:
      case Format::kTime:
        is_signed = true;
        value->type_says_format = false;
        break;
      case Format::kBoolean:
        if (size == 1 || size == 4) {
          value->type = Type::Simple(size == 1 ? TypeCode::kBoolean8 : TypeCode::kBoolean32);
          return;
        }
        value->type_says_format = false;
        break;
      case Format::kFloat:
        if (size >= 4) {
          value->type = Type::Simple(size == 4 ? TypeCode::kSingle : TypeCode::kDouble);
          return;
        }
        value->type_says_format = false;
        break;
      case Format::kString8:
      case Format::kStringUtf:
        if (size <= 2) {
          value->type =
              Type::Simple(size == 1 ? TypeCode::kUtf8CodeUnit : TypeCode::kUtf16CodeUnit);
          value->type_says_format = field.format == Format::kStringUtf;
          return;
        }
        value->type_says_format = false;
        break;
      case Format::kPort:
        // Always in network byte order on the wire.
        value->op.swap = true;
        value->type_says_format = false;
        break;
      default:
        value->type_says_format = false;
        break;
    }
    value->type = Type::Simple(IntegerType(size, is_signed));
  }

  void CompileBlob(const FieldDefinition& field, Value* value) const {
    const bool zero_ended = eh::internal::IsZeroTerminated(field.encoding);
    value->op.element = zero_ended ? PayloadOp::Element::kZText : PayloadOp::Element::kText;
    value->op.size = static_cast<std::uint8_t>(eh::internal::CodeUnitSize(field.encoding));
    const bool in_array = field.arity != Arity::kScalar;
    if (tools::IsByteSequence(field.encoding, field.format)) {
      // Nullable values, too: their size, and so their type, differs from event to event. Null has
      // no bytes, and the note on the field says what the bytes are.
      value->type = Type::Array(Type::Simple(IntegerType(value->op.size, false)));
      value->type_says_format = false;
      return;
    }
    value->type_says_format = field.format == Format::kStringUtf;
    if (value->op.size == 1) {
      value->op.charset = field.format == Format::kString8 ? PayloadOp::Charset::kLatin1
                                                           : PayloadOp::Charset::kUtf8;
    }
    if (in_array) {
      value->type = Type::Simple(TypeCode::kNullTerminatedUtf16String);
      const bool as_is = zero_ended && value->op.size == 2;
      value->op.output =
          as_is ? PayloadOp::Output::kUnitsAndZero : PayloadOp::Output::kUtf16AndZero;
    } else if (value->op.size == 1) {
      const bool bytes = form_ == TextForm::kBytes;
      value->type =
          Type::Array(Type::Simple(bytes ? TypeCode::kUtf8CodeUnit : TypeCode::kUtf16CodeUnit));
      value->op.output = bytes ? PayloadOp::Output::kUnits : PayloadOp::Output::kUtf16;
    } else if (value->op.size == 2 && zero_ended) {
      value->type = Type::Simple(TypeCode::kNullTerminatedUtf16String);
      value->op.output = PayloadOp::Output::kUnitsAndZero;
    } else {
      value->type = Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit));
      value->op.output =
          value->op.size == 2 ? PayloadOp::Output::kUnits : PayloadOp::Output::kUtf16;
    }
  }

  // The type of the whole field, from that of one value.
  static Type Arrayed(const FieldDefinition& field, Value* value) {
    if (field.arity == Arity::kScalar) return std::move(value->type);
    if (value->type.code == TypeCode::kArray || value->type.code == TypeCode::kFixedLengthArray) {
      // TraceEvent misreads arrays of arrays.
      value->type = Type::Object({{"Value", std::move(value->type)}});
    }
    if (field.arity == Arity::kConstantArray) {
      value->op.repeat = PayloadOp::Repeat::kConstant;
      value->op.count = field.array_length;
      return Type::FixedLengthArray(std::move(value->type), field.array_length);
    }
    value->op.repeat = PayloadOp::Repeat::kCounted;
    value->op.write_count = true;
    return Type::Array(std::move(value->type));
  }

  void Note(const FieldDefinition& field, const Value& value, int index) {
    if (value.type_says_format && !field.has_tag && field.attributes.empty()) return;
    tools::FieldNote note{field.encoding, field.format, std::nullopt,
                          std::string(field.attributes)};
    if (field.has_tag) note.tag = field.tag;
    field_notes_.emplace_back(absl::StrCat(tools::kKeyField, index), tools::FormatFieldNote(note));
  }

  eh::MetadataReader reader_;
  bool swap_;
  TextForm form_;
  int index_ = 0;
  std::vector<PayloadOp> ops_;
  nettrace::KeyValues field_notes_;
};

}  // namespace

absl::StatusOr<EventSchema> CompileEventSchema(const eh::EventView& event,
                                               const eh::TracepointName& name,
                                               std::string_view tracepoint_name, TextForm form) {
  absl::StatusOr<EventSchema> schema = Compiler(event, form).Compile();
  if (!schema.ok()) return schema;
  nettrace::EventMetadata& metadata = schema->metadata;
  metadata.provider = std::string(name.provider);
  metadata.level = name.level;
  metadata.keywords = name.keyword;
  metadata.opcode = event.header.opcode;
  metadata.version = event.header.version;
  nettrace::KeyValues keys;
  keys.emplace_back(tools::kKeyTracepoint, tracepoint_name);
  keys.emplace_back(tools::kKeyId, absl::StrCat(event.header.id));
  if (event.header.tag != 0) {
    keys.emplace_back(tools::kKeyTag, absl::StrFormat("0x%x", event.header.tag));
  }
  if (const auto group = eh::FindOption(name.options, 'G')) {
    keys.emplace_back(tools::kKeyGroup, *group);
  }
  metadata.key_values.insert(metadata.key_values.begin(), keys.begin(), keys.end());
  return schema;
}

}  // namespace collector
