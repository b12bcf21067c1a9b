#include "tools/collector/convert/event_schema.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eventheader/internal/field_rules.h"
#include "libnettrace-writer/core/types.h"
#include "tools/trace/eventheader_keys.h"

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
  bool type_says_format = true;  // the type implies the format, so no FieldNote states it
  bool is_whole_array = false;   // the value is the whole array of the field, as text
  Encoding encoding = Encoding::kInvalid;
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

// Returns whether values in this format are in network byte order, whatever the event's byte order
// is.
bool IsInNetworkOrder(Format format) {
  return format == Format::kPort || format == Format::kUuid || format == Format::kIpAddress;
}

class SchemaCompiler {
 public:
  SchemaCompiler(const eh::EventView& event, const ValueForms& forms)
      : reader_(event.metadata, event.little_endian), swap_(!event.little_endian), forms_(forms) {}

  absl::StatusOr<EventSchema> Compile() {
    EventSchema schema;
    CompileFields(/*limit=*/-1, &schema.metadata.fields);
    if (reader_.error() != eh::ParseError::kNone) {
      return absl::InvalidArgumentError(eh::ParseErrorText(reader_.error()));
    }
    schema.metadata.name = std::string(reader_.event_name());
    if (!reader_.event_attributes().empty()) {
      schema.metadata.key_values.emplace_back(trace::kKeyAttributes, reader_.event_attributes());
    }
    for (auto& pair : field_notes_) schema.metadata.key_values.push_back(std::move(pair));
    schema.program = PayloadProgram(std::move(ops_), swap_);
    schema.nullable_fields = nullable_fields_;
    return schema;
  }

 private:
  // Compiles the next `limit` definitions, or all of them if `limit` is negative. Calls itself for
  // the members of structs; MetadataReader limits how deep structs are nested.
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

  Value CompileValue(FieldDefinition field) {
    const Format given = field.format;
    field.format = eh::internal::ShownFormat(field.encoding, given);
    Value value;
    value.encoding = field.encoding;
    const bool is_fixed = eh::internal::FixedSize(field.encoding) != 0;
    const bool is_text =
        eh::internal::FactsOf(field.format)->kind == eh::internal::FormatKind::kText;
    if (is_fixed && is_text) {
      CompileCharacters(field, &value);
    } else if (is_fixed) {
      CompileFixed(field, &value);
    } else if (trace::IsNullable(field.encoding, field.format)) {
      CompileNullable(field, &value);
    } else if (is_text) {
      CompileText(field, &value);
    } else {
      CompileBytes(field, &value);
    }
    value.type_says_format = value.type_says_format && field.format == given;
    return value;
  }

  static void Bytes(std::uint16_t count, Value* value) {
    value->type = Type::FixedLengthArray(Type::Simple(TypeCode::kByte), count);
    value->type_says_format = false;
  }

  void CompileFixed(const FieldDefinition& field, Value* value) const {
    const std::size_t size = eh::internal::FixedSize(field.encoding);
    value->op.size = static_cast<std::uint8_t>(size);
    if (trace::IsByteSequence(field.encoding, field.format)) {
      Bytes(static_cast<std::uint16_t>(size), value);
      return;
    }
    if (field.encoding == Encoding::kValue128) {
      value->op.element = PayloadOp::Element::kUuid;
      value->type = Type::Simple(TypeCode::kGuid);
      return;
    }
    value->op.swap = swap_;
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
      case Format::kPort:
        // A port is in network byte order in every event, so its bytes are always swapped.
        value->op.swap = true;
        value->type_says_format = false;
        break;
      default:
        value->type_says_format = false;
        break;
    }
    value->type = Type::Simple(IntegerType(size, is_signed));
  }

  // Sets in `*op` how the text of the field is encoded. A code unit has `unit` bytes.
  void SetText(const FieldDefinition& field, std::size_t unit, PayloadOp* op) const {
    op->size = static_cast<std::uint8_t>(unit);
    op->swap = unit > 1 && swap_;
    op->byte_order_mark = eh::internal::HasByteOrderMark(field.format);
    if (unit == 1) {
      op->charset = field.format == Format::kString8 ? PayloadOp::Charset::kLatin1
                                                     : PayloadOp::Charset::kUtf8;
    }
  }

  // Compiles a field whose values are single code units. An array of code units is text, as in
  // NetTrace.
  void CompileCharacters(const FieldDefinition& field, Value* value) const {
    const std::size_t unit = eh::internal::FixedSize(field.encoding);
    const bool as_units = unit == 2 || (unit == 1 && forms_.text == TextForm::kBytes);
    SetText(field, unit, &value->op);
    value->type_says_format = field.format == Format::kStringUtf && unit <= 2;
    const Type type =
        Type::Simple(unit == 1 && as_units ? TypeCode::kUtf8CodeUnit : TypeCode::kUtf16CodeUnit);
    if (field.arity == Arity::kVariableArray) {
      value->is_whole_array = true;
      value->op.element = PayloadOp::Element::kText;
      value->op.output = as_units ? PayloadOp::Output::kUnits : PayloadOp::Output::kUtf16;
      value->type = Type::Array(type);
    } else if (as_units) {
      value->type = type;
    } else {
      value->op.element = PayloadOp::Element::kUnits;
      if (field.arity == Arity::kConstantArray) {
        value->is_whole_array = true;
        value->op.count = field.array_length;
        value->op.ends_at_zero = true;
      }
      const bool one_unit = field.arity == Arity::kScalar && unit == 1;
      value->op.output = one_unit ? PayloadOp::Output::kUtf16Unit : PayloadOp::Output::kUtf16;
      value->type = one_unit ? type : Type::Array(type);
    }
  }

  void CompileBytes(const FieldDefinition& field, Value* value) const {
    const std::size_t unit = eh::internal::CodeUnitSize(field.encoding);
    const bool zero_ended = eh::internal::IsZeroTerminated(field.encoding);
    value->op.element = zero_ended ? PayloadOp::Element::kZText : PayloadOp::Element::kText;
    value->op.size = static_cast<std::uint8_t>(unit);
    value->op.output = PayloadOp::Output::kBytes;
    value->type = Type::Array(Type::Simple(TypeCode::kByte));
    value->type_says_format = false;
  }

  void CompileText(const FieldDefinition& field, Value* value) const {
    const std::size_t unit = eh::internal::CodeUnitSize(field.encoding);
    const bool zero_ended = eh::internal::IsZeroTerminated(field.encoding);
    value->op.element = zero_ended ? PayloadOp::Element::kZText : PayloadOp::Element::kText;
    SetText(field, unit, &value->op);
    value->type_says_format = field.format == Format::kStringUtf;
    if (unit == 1 && forms_.text == TextForm::kBytes) {
      value->type = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
    } else if (unit == 2 && !value->op.byte_order_mark) {
      value->type = zero_ended ? Type::Simple(TypeCode::kNullTerminatedUtf16String)
                               : Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit));
      if (zero_ended) value->op.output = PayloadOp::Output::kUnitsAndZero;
    } else {
      value->type = Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit));
      value->op.output = PayloadOp::Output::kUtf16;
    }
  }

  // Compiles a field whose values may have several sizes, or be null. `forms_.seen` states which
  // sizes the events have, and whether a value is null.
  void CompileNullable(const FieldDefinition& field, Value* value) {
    PayloadOp op;
    op.element = PayloadOp::Element::kNullable;
    op.slot = static_cast<std::uint16_t>(nullable_fields_++);
    const auto seen =
        op.slot < forms_.seen.size() ? static_cast<unsigned char>(forms_.seen[op.slot]) : 0u;
    FieldDefinition of_value = field;
    for (const std::size_t size : {1, 2, 4, 8, 16}) {
      if (eh::ValueFormat(field.encoding, field.format, size) != field.format) continue;
      op.fitting |= SeenSize(size);
      if ((seen & ~kSeenNull) == SeenSize(size)) {
        of_value.encoding = eh::internal::ValueEncoding(size);
      }
    }
    const bool is_string = field.encoding == Encoding::kStringLength16Char8;
    if (seen == kSeenMisfit && is_string) {
      FieldDefinition text = field;
      text.format = Format::kStringUtf;
      CompileText(text, value);
      value->type_says_format = false;
      return;
    }
    if (seen == kSeenNull) {
      // Writes null as an empty text, because NetTrace has no null, and TraceEvent displays an
      // empty text as it displays null.
      value->type = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
      value->type_says_format = false;
    } else if (of_value.encoding != field.encoding) {
      CompileFixed(of_value, value);
      op.swap = value->op.swap;
      op.uuid = value->op.element == PayloadOp::Element::kUuid;
      if ((seen & kSeenNull) == 0) {
        op.output = PayloadOp::Output::kValue;
        value->encoding = of_value.encoding;
      } else if (value->type.code != TypeCode::kFixedLengthArray) {
        op.output = PayloadOp::Output::kCountAndValue;
        value->type = Type::Array(std::move(value->type));
        value->type_says_format = false;
      } else {
        value->type = Type::Array(Type::Simple(TypeCode::kByte));
      }
    } else {
      value->type = Type::Array(Type::Simple(TypeCode::kByte));
      value->type_says_format = false;
      op.swap = swap_ && !IsInNetworkOrder(field.format);
      if (is_string) op.charset = PayloadOp::Charset::kUtf8;
    }
    value->op = op;
  }

  // Returns the type of the whole field; `*value` describes one of its values. Sets how often the
  // value's operation is repeated.
  static Type Arrayed(const FieldDefinition& field, Value* value) {
    if (field.arity == Arity::kScalar || value->is_whole_array) return std::move(value->type);
    if (nettrace::internal::IsPlainArray(value->type) && !nettrace::internal::IsText(value->type)) {
      // TraceEvent misreads arrays of arrays, except arrays of text. Therefore each value that is
      // an array, but not text, becomes the member of a struct.
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
    // The note states the encoding in the event's metadata. For a nullable field that is not null
    // in events of this form, it states the encoding of the values instead.
    const Encoding encoding = field.encoding == Encoding::kStruct ? field.encoding : value.encoding;
    trace::FieldNote note{encoding, field.format, std::nullopt, std::string(field.attributes)};
    if (field.has_tag) note.tag = field.tag;
    field_notes_.emplace_back(absl::StrCat(trace::kKeyField, index), trace::FormatFieldNote(note));
  }

  eh::MetadataReader reader_;
  bool swap_;
  ValueForms forms_;
  int index_ = 0;
  std::size_t nullable_fields_ = 0;
  std::vector<PayloadOp> ops_;
  nettrace::KeyValues field_notes_;
};

}  // namespace

bool ValueForms::AreUsual() const {
  return text == TextForm::kBytes && std::all_of(seen.begin(), seen.end(), [](char set) {
           return set != 0 && (set & kSeenNull) == 0;
         });
}

absl::StatusOr<EventSchema> CompileEventSchema(const eh::EventView& event,
                                               const eh::TracepointName& name,
                                               std::string_view tracepoint_name,
                                               const ValueForms& forms) {
  absl::StatusOr<EventSchema> schema = SchemaCompiler(event, forms).Compile();
  if (!schema.ok()) return schema;
  nettrace::EventMetadata& metadata = schema->metadata;
  metadata.provider = std::string(name.provider);
  metadata.level = name.level;
  metadata.keywords = name.keyword;
  metadata.event_id = forms.AreUsual() ? event.header.id : 0;
  metadata.opcode = event.header.opcode;
  metadata.version = event.header.version;
  nettrace::KeyValues keys;
  keys.emplace_back(trace::kKeyTracepoint, tracepoint_name);
  keys.emplace_back(trace::kKeyId, absl::StrCat(event.header.id));
  if (event.header.tag != 0) {
    keys.emplace_back(trace::kKeyTag, absl::StrFormat("0x%x", event.header.tag));
  }
  if (const auto group = eh::FindOption(name.options, 'G')) {
    keys.emplace_back(trace::kKeyGroup, *group);
  }
  metadata.key_values.insert(metadata.key_values.begin(), keys.begin(), keys.end());
  return schema;
}

}  // namespace collector
