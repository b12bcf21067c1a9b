#include "tools/collector/convert/tracepoint_schema.h"

#include <traceevent/event-parse.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/collector/convert/print_format.h"

namespace collector {
namespace {

using nettrace::Type;
using nettrace::TypeCode;

// Size of the location of a field with variable size, in bytes.
constexpr int kLocationSize = 4;

// Maximum size of a format that another process has defined, in bytes. It is larger than any format
// that the kernel accepts.
constexpr std::size_t kMaxFormat = 65536;
// Maximum length of the declaration of a field in a format that another process has defined, in
// bytes.
constexpr std::size_t kMaxDeclaration = 1024;

struct FreeTep {
  void operator()(tep_handle* tep) const { tep_free(tep); }
};
using Tep = std::unique_ptr<tep_handle, FreeTep>;

bool Has(const tep_format_field& field, unsigned long flag) { return (field.flags & flag) != 0; }

// Returns whether processes, and not the kernel, define the tracepoints of `system`.
bool IsUserEvents(std::string_view system) {
  return system.substr(0, std::string_view("user_events").size()) == "user_events";
}

bool IsOfWordCharacters(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// Returns whether `text` is an identifier of C. Excludes two macros of old kernels, because
// libtraceevent replaces them with text.
bool IsWord(absl::string_view text) {
  return !text.empty() && text != "STA_PR_FMT" && text != "LOCAL_PR_FMT" &&
         !absl::ascii_isdigit(static_cast<unsigned char>(text[0])) && IsOfWordCharacters(text);
}

bool IsTypeWord(absl::string_view text) {
  const std::size_t stars = text.find('*');
  const bool ends_with_stars =
      stars == absl::string_view::npos || text.find_first_not_of('*', stars) == text.npos;
  return ends_with_stars && (stars == 0 || IsWord(text.substr(0, stars)));
}

// Returns whether `text` declares a field: "TYPE NAME", "TYPE NAME[COUNT]", or "__data_loc TYPE[]
// NAME".
bool IsDeclaration(absl::string_view text) {
  const std::size_t open = text.find('[');
  const std::vector<absl::string_view> words = absl::StrSplit(text.substr(0, open), ' ');
  if (words.size() < 2 || !IsWord(words.front()) || !IsWord(words.back()) ||
      !std::all_of(words.begin(), words.end(), IsTypeWord)) {
    return false;
  }
  if (open == absl::string_view::npos) return true;
  const std::size_t close = text.find(']', open);
  if (close == absl::string_view::npos ||
      !IsOfWordCharacters(text.substr(open + 1, close - open - 1))) {
    return false;
  }
  absl::string_view behind = text.substr(close + 1);
  const bool is_located = words.front() == "__data_loc" || words.front() == "__rel_loc";
  return behind.empty() || (is_located && absl::ConsumePrefix(&behind, " ") && IsWord(behind));
}

// Returns whether `line` describes a field of a record.
bool IsFieldLine(absl::string_view line) {
  constexpr std::size_t kMaxRecord = 65536;
  const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(";\t", 3));
  if (parts.size() != 4 || parts[0].size() > kMaxDeclaration) return false;
  absl::string_view declaration = parts[0];
  absl::string_view offset_text = parts[1];
  absl::string_view size_text = parts[2];
  std::size_t offset = 0;
  std::size_t size = 0;
  return absl::ConsumePrefix(&declaration, "\tfield:") && IsDeclaration(declaration) &&
         absl::ConsumePrefix(&offset_text, "offset:") && absl::SimpleAtoi(offset_text, &offset) &&
         absl::ConsumePrefix(&size_text, "size:") && absl::SimpleAtoi(size_text, &size) &&
         offset <= kMaxRecord && size <= kMaxRecord - offset &&
         (parts[3] == "signed:0;" || parts[3] == "signed:1;");
}

// Returns whether libtraceevent can parse `format`, up to its `print fmt`, without crashing. The
// kernel accepts any names of user_events tracepoints and of their fields, including line feeds,
// quotes and unbalanced brackets. libtraceevent 1.7.1 dereferences a null pointer on such names.
bool IsSafeFormat(const std::string& event, int id, absl::string_view format) {
  if (format.size() > kMaxFormat || !IsOfWordCharacters(event) ||
      !absl::ConsumePrefix(&format, absl::StrCat("name: ", event, "\nID: ", id, "\nformat:\n"))) {
    return false;
  }
  const std::vector<absl::string_view> lines = absl::StrSplit(format, '\n');
  return std::all_of(lines.begin(), lines.end(),
                     [](absl::string_view line) { return line.empty() || IsFieldLine(line); });
}

// Parses `format` and returns its event; null if libtraceevent reports an error. Version 1.7.1
// reports none for a field or a `print fmt` that it cannot parse: it sets TEP_EVENT_FL_FAILED, and
// the event has only the fields and arguments before the fault.
const tep_event* ParseEvent(tep_handle* tep, const std::string& system, int id,
                            const std::string& format, std::endian order) {
  tep_set_loglevel(TEP_LOG_NONE);
  const tep_endian tep_order = order == std::endian::big ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN;
  tep_set_file_bigendian(tep, tep_order);
  tep_set_local_bigendian(tep, tep_order);
  tep_set_long_size(tep, sizeof(long));
  const tep_errno parsed = tep_parse_event(tep, format.data(), format.size(), system.c_str());
  return parsed == TEP_ERRNO__SUCCESS ? tep_find_event(tep, id) : nullptr;
}

// Returns the type of one value in the field's declaration: "u8" for "__data_loc const u8[]".
std::string ValueType(const tep_format_field& field) {
  absl::string_view type = field.type;
  absl::ConsumePrefix(&type, "__data_loc ");
  absl::ConsumePrefix(&type, "__rel_loc ");
  type = type.substr(0, type.find('['));
  for (bool more = true; more;) {
    type = absl::StripAsciiWhitespace(type);
    more = absl::ConsumePrefix(&type, "const ") || absl::ConsumePrefix(&type, "volatile ") ||
           absl::ConsumeSuffix(&type, " const");
  }
  return std::string(type);
}

// Returns the size in bytes of an element of an array with variable size. The format does not state
// this size, so it is derived from the name of the type.
std::size_t SizeOfType(const tep_format_field& field, std::string_view type) {
  constexpr std::pair<std::string_view, std::size_t> kSizes[] = {
      {"unsigned short", 2},
      {"short", 2},
      {"__u16", 2},
      {"__s16", 2},
      {"uint16_t", 2},
      {"int16_t", 2},
      {"__le16", 2},
      {"__be16", 2},
      {"unsigned int", 4},
      {"unsigned", 4},
      {"int", 4},
      {"__u32", 4},
      {"__s32", 4},
      {"uint32_t", 4},
      {"int32_t", 4},
      {"pid_t", 4},
      {"dev_t", 4},
      {"__le32", 4},
      {"__be32", 4},
      {"unsigned long long", 8},
      {"long long", 8},
      {"__u64", 8},
      {"__s64", 8},
      {"uint64_t", 8},
      {"int64_t", 8},
      {"dma_addr_t", 8},
      {"__le64", 8},
      {"__be64", 8},
      {"unsigned long", sizeof(long)},
      {"long", sizeof(long)},
      {"size_t", sizeof(long)},
      {"cpumask_t", sizeof(long)},
  };
  const auto* const found = std::find_if(std::begin(kSizes), std::end(kSizes),
                                         [&](const auto& known) { return known.first == type; });
  if (found != std::end(kSizes)) return found->second;
  if (!type.empty() && type.back() == '*') return sizeof(void*);
  const std::size_t size = field.elementsize;
  // Elements that have an unknown size or are no numbers are converted as bytes.
  return size == 2 || size == 4 || size == 8 ? size : 1;
}

// Returns whether the name of a type states that its values are unsigned. The name is more reliable
// than `signed:` in the format: for user_events, Linux decides by the first letter of the whole
// type, so that it reports the elements of "__rel_loc u8[]" as signed.
bool IsUnsignedName(std::string_view type) {
  for (const std::string_view start : {"unsigned", "uint", "__u", "u8", "u16", "u32", "u64"}) {
    if (type.substr(0, start.size()) == start) return true;
  }
  return false;
}

// Returns the type of a number of `size` bytes, or an array of bytes if no number has that size.
Type NumberType(const tep_format_field& field, std::string_view type, std::size_t size) {
  const bool is_signed = Has(field, TEP_FIELD_IS_SIGNED) && !IsUnsignedName(type);
  switch (size) {
    case 1:
      if (type == "bool" || type == "_Bool") return Type::Simple(TypeCode::kBoolean8);
      return Type::Simple(is_signed ? TypeCode::kSByte : TypeCode::kByte);
    case 2:
      return Type::Simple(is_signed ? TypeCode::kInt16 : TypeCode::kUInt16);
    case 4:
      return Type::Simple(is_signed ? TypeCode::kInt32 : TypeCode::kUInt32);
    case 8:
      return Type::Simple(is_signed ? TypeCode::kInt64 : TypeCode::kUInt64);
    default:
      return Type::FixedLengthArray(Type::Simple(TypeCode::kByte),
                                    static_cast<std::uint16_t>(size));
  }
}

Type TextType() { return Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit)); }

// Returns the type of `field`, and sets `*op` to the operation that converts it. `binary` states
// that the `print fmt` displays the field as bytes.
Type CompileField(const tep_format_field& field, bool binary, RecordOp* op) {
  const auto size = static_cast<std::size_t>(field.size);
  const std::string type = ValueType(field);
  op->offset = static_cast<std::uint32_t>(field.offset);
  op->size = static_cast<std::uint32_t>(size);
  // Only `char` is text. libtraceevent also marks arrays of other 1-byte types as strings, but
  // their bytes are numbers.
  const bool is_text = type == "char" && !binary;
  if (Has(field, TEP_FIELD_IS_DYNAMIC)) {
    op->relative = Has(field, TEP_FIELD_IS_RELATIVE);
    if (is_text) {
      op->kind = RecordOp::Kind::kLocatedText;
      return TextType();
    }
    op->kind = RecordOp::Kind::kLocated;
    op->element_size = static_cast<std::uint8_t>(SizeOfType(field, type));
    return Type::Array(NumberType(field, type, op->element_size));
  }
  if (!Has(field, TEP_FIELD_IS_ARRAY)) {
    Type number = NumberType(field, type, size);
    if (number.code != TypeCode::kFixedLengthArray) {
      op->element_size = static_cast<std::uint8_t>(size);
    }
    return number;
  }
  if (is_text) {
    op->kind = RecordOp::Kind::kText;
    return TextType();
  }
  if (field.arraylen > 0 && size % field.arraylen == 0) {
    Type element = NumberType(field, type, size / field.arraylen);
    if (element.code != TypeCode::kFixedLengthArray) {
      op->element_size = static_cast<std::uint8_t>(size / field.arraylen);
      return Type::FixedLengthArray(std::move(element), static_cast<std::uint16_t>(field.arraylen));
    }
  }
  return Type::FixedLengthArray(Type::Simple(TypeCode::kByte), static_cast<std::uint16_t>(size));
}

bool IsText(const Type& type) {
  return type.code == TypeCode::kArray && type.element.front().code == TypeCode::kUtf8CodeUnit;
}

absl::Status Malformed(const std::string& system, const std::string& event) {
  return absl::InvalidArgumentError(
      absl::StrCat("tracepoint ", system, ":", event,
                   " cannot be recorded, because its format in tracefs cannot be parsed; leave it "
                   "out of the selectors"));
}

}  // namespace

nettrace::EventMetadata TracepointSchema::MetadataFor(TextForm form) const {
  nettrace::EventMetadata result = metadata;
  if (form == TextForm::kBytes) return result;
  for (nettrace::Field& field : result.fields) {
    if (IsText(field.type)) {
      field.type = Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit));
    }
  }
  return result;
}

std::optional<std::uint32_t> TracepointSchema::ReadTid(std::span<const std::byte> raw) const {
  std::uint32_t tid = 0;
  if (!tid_offset || raw.size() < *tid_offset + sizeof tid) return std::nullopt;
  std::memcpy(&tid, raw.data() + *tid_offset, sizeof tid);
  return tid;
}

absl::StatusOr<TracepointSchema> ParseTracepointFormat(const std::string& system,
                                                       const std::string& event, int id,
                                                       const std::string& format,
                                                       std::endian order) {
  // The fields are parsed from a format without `print fmt`. When the parser reads a `print fmt`,
  // it changes flags of the fields, and it cannot parse every `print fmt`.
  std::string fields = format.substr(0, format.find("\nprint fmt:"));
  const bool is_foreign = IsUserEvents(system);
  if (is_foreign && !IsSafeFormat(event, id, fields)) return Malformed(system, event);
  fields += "\nprint fmt: \"\"\n";
  const Tep tep(tep_alloc());
  const Tep print_tep(tep_alloc());
  if (tep == nullptr || print_tep == nullptr) return absl::ResourceExhaustedError("out of memory");
  const tep_event* const found = ParseEvent(tep.get(), system, id, fields, order);
  if (found == nullptr || (found->flags & TEP_EVENT_FL_FAILED) != 0) {
    return Malformed(system, event);
  }
  const tep_event* printed = found;
  if (!is_foreign) {
    const tep_event* const whole = ParseEvent(print_tep.get(), system, id, format, order);
    if (whole != nullptr) printed = whole;
  }
  PrintFormat print = CompilePrintFormat(*printed);

  TracepointSchema schema;
  schema.metadata.provider = system;
  schema.metadata.name = event;
  // Sets the opcode, because TraceEvent would otherwise derive one from a name that ends in "start"
  // or "stop".
  schema.metadata.opcode = 0;
  schema.metadata.key_values = std::move(print.notes);
  for (const tep_format_field* field = found->format.common_fields; field != nullptr;
       field = field->next) {
    schema.payload_offset =
        std::max(schema.payload_offset, static_cast<std::size_t>(field->offset + field->size));
    if (std::string_view(field->name) == "common_pid" && field->size == sizeof(std::uint32_t)) {
      schema.tid_offset = static_cast<std::size_t>(field->offset);
    }
  }
  const tep_format_field* const first = found->format.fields;
  if (first != nullptr) {
    // Alignment may leave a gap after the common fields.
    schema.payload_offset =
        std::max(schema.payload_offset, static_cast<std::size_t>(first->offset));
    schema.first_field = first->name;
  }
  std::vector<RecordOp> ops;
  std::size_t position = schema.payload_offset;
  for (const tep_format_field* field = first; field != nullptr; field = field->next) {
    const auto offset = static_cast<std::size_t>(field->offset);
    const bool is_located = Has(*field, TEP_FIELD_IS_DYNAMIC);
    if (field->offset < 0 || offset < position || field->size <= 0 ||
        static_cast<std::size_t>(field->size) >
            nettrace::internal::traceevent::kMaxFixedArrayBytes ||
        (is_located && field->size != kLocationSize)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tracepoint ", system, ":", event, " cannot be decoded: field ", field->name,
          " overlaps another, or its size is 0 or not supported; leave the tracepoint out of "
          "the selectors"));
    }
    const bool binary = print.binary.contains(field->name);
    schema.metadata.fields.push_back(
        {field->name, CompileField(*field, binary, &ops.emplace_back())});
    for (const PrintFormat::KernelAddress& address : print.kernel_addresses) {
      if (address.field == field->name && !is_located && (field->size == 4 || field->size == 8)) {
        schema.kernel_addresses.push_back({address.field, static_cast<std::uint32_t>(offset),
                                           static_cast<std::uint8_t>(field->size),
                                           address.with_offset});
      }
    }
    position = offset + static_cast<std::size_t>(field->size);
  }
  schema.program = RecordProgram(ops, order);
  return schema;
}

}  // namespace collector
