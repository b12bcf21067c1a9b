#include "tools/nettrace/export/ctf/tsdl.h"

#include <array>
#include <cstdint>
#include <variant>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/text.h"

namespace tools::ctf {
namespace {

std::string IntegerType(bool is_signed, unsigned bits, bool is_hex) {
  return absl::StrFormat("%sint%d_%st", is_signed ? "" : "u", bits, is_hex ? "hex_" : "");
}

// Declares the types of the fields, except time_t, which DeclareClock declares.
std::string DeclareTypes() {
  std::string text;
  for (const bool is_hex : {false, true}) {
    for (const unsigned bits : {8U, 16U, 32U, 64U}) {
      for (const bool is_signed : {false, true}) {
        absl::StrAppendFormat(&text,
                              "typealias integer { size = %d; align = 8; signed = %s;%s } := %s;\n",
                              bits, is_signed ? "true" : "false", is_hex ? " base = 16;" : "",
                              IntegerType(is_signed, bits, is_hex));
      }
    }
  }
  absl::StrAppend(
      &text,
      "typealias floating_point { exp_dig = 8; mant_dig = 24; align = 8; } := float32_t;\n"
      "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := float64_t;\n");
  return text;
}

class StructText {
 public:
  // With `has_reserved_names`, CTF prescribes the names of the members, and they are written
  // unchanged. Other names get the prefix '_', so that no name is a keyword of TSDL. Readers remove
  // the prefix.
  explicit StructText(bool has_reserved_names) : has_reserved_names_(has_reserved_names) {}

  std::string Of(const FieldClass& structure) {
    Struct(structure);
    return text_;
  }

 private:
  void Struct(const FieldClass& structure) {
    absl::StrAppend(&text_, "struct {\n");
    indent_ += '\t';
    MemberNames names;
    for (const Member& member : structure.members) {
      PutMember(member.field, has_reserved_names_
                                  ? member.name
                                  : names.Add(absl::StrCat("_", Identifier(member.name))));
    }
    indent_.pop_back();
    absl::StrAppend(&text_, indent_, "}");
  }

  void PutMember(const FieldClass& field, const std::string& name) {
    std::string length;
    if (field.HasLengthBefore()) {
      length = MemberNames::LengthName(name);
      absl::StrAppend(&text_, indent_, "uint32_t ", length, ";\n");
    } else if (field.length) {
      length = absl::StrCat(*field.length);
    }
    absl::StrAppend(&text_, indent_);
    Type(field.kind == FieldClass::Kind::kArray ? field.element[0] : field);
    absl::StrAppend(&text_, " ", name);
    if (!length.empty()) absl::StrAppend(&text_, "[", length, "]");
    absl::StrAppend(&text_, ";\n");
  }

  void Type(const FieldClass& field) {
    switch (field.kind) {
      case FieldClass::Kind::kInteger:
        return Integer(field);
      case FieldClass::Kind::kFloat:
        return absl::StrAppend(&text_, "float", field.bits, "_t");
      case FieldClass::Kind::kBoolean:
        return absl::StrAppend(&text_, R"(enum : uint8_t { "false" = 0, "true" = 1 })");
      case FieldClass::Kind::kText:
        return absl::StrAppend(&text_, "string");
      case FieldClass::Kind::kBytes:
        return absl::StrAppend(&text_, "uint8_hex_t");
      case FieldClass::Kind::kStruct:
      case FieldClass::Kind::kArray:  // handled by PutMember
        return Struct(field);
    }
  }

  void Integer(const FieldClass& field) {
    if (field.is_time) return absl::StrAppend(&text_, "time_t");
    const std::string type = IntegerType(field.is_signed, field.bits, field.is_hex);
    if (field.names.empty()) return absl::StrAppend(&text_, type);
    absl::StrAppend(&text_, "enum : ", type, " { ");
    const char* separator = "";
    for (const auto& [name, value] : field.names) {
      absl::StrAppend(&text_, separator, Quote(name), " = ", value);
      separator = ", ";
    }
    absl::StrAppend(&text_, " }");
  }

  const bool has_reserved_names_;
  std::string text_;
  std::string indent_{"\t"};
};

std::string Fields(const FieldClass& structure) { return StructText(false).Of(structure); }
std::string Reserved(const FieldClass& structure) { return StructText(true).Of(structure); }

std::string DeclareEnvironment(const TraceClass& trace) {
  std::string text = "env {\n";
  absl::flat_hash_set<std::string> names;
  for (const auto& [key, value] : trace.environment) {
    const std::string name = Identifier(key);
    if (!names.insert(name).second) continue;
    const auto* const number = std::get_if<std::int64_t>(&value);
    absl::StrAppend(&text, "\t", name, " = ",
                    number != nullptr ? absl::StrCat(*number) : Quote(std::get<std::string>(value)),
                    ";\n");
  }
  return text + "};\n\n";
}

std::string DeclareClock(const TraceClass& trace) {
  const std::string uuid =
      trace.clock_uuid.empty() ? "" : absl::StrCat("\tuuid = ", Quote(trace.clock_uuid), ";\n");
  return absl::StrFormat(
      "clock {\n\tname = \"%s\";\n%s\tdescription = \"%s\";\n"
      "\tfreq = %d;\n\toffset_s = %d;\n\toffset = %d;\n\tabsolute = TRUE;\n};\n\n"
      "typealias integer { size = 64; align = 8; signed = false; map = clock.%s.value; } "
      ":= time_t;\n\n",
      kClockName, uuid, kClockDescription, kNanosecondsPerSecond, trace.clock_start.seconds,
      trace.clock_start.nanoseconds, kClockName);
}

// Returns LTTng's number for a level: a syslog level for 0 to 4, and 14 (debug) for 5.
int LogLevel(std::uint8_t level) {
  constexpr std::array<int, 6> kLogLevels = {0, 2, 3, 4, 6, 14};
  return kLogLevels[level];
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : base::Printable(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Identifier(std::string_view text) {
  std::string identifier(text.substr(0, kMaxIdentifier));
  for (char& c : identifier) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return identifier;
}

std::string TsdlOf(const EventClass& event) {
  std::string text = absl::StrCat("\tname = ", Quote(event.name), ";\n");
  if (event.level) absl::StrAppend(&text, "\tloglevel = ", LogLevel(*event.level), ";\n");
  return absl::StrCat(text, "\tfields := ", Fields(event.fields), ";\n");
}

std::string TsdlOf(const TraceClass& trace) {
  std::string text = absl::StrCat(
      "/* CTF 1.8 */\n\n", DeclareTypes(), "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"",
      base::FormatGuid(nettrace::GuidFromUuid(trace.uuid)),
      "\";\n\tbyte_order = le;\n\tpacket.header := ", Reserved(PacketHeader()), ";\n};\n\n",
      DeclareEnvironment(trace), DeclareClock(trace));
  for (std::uint32_t stream_class = 0; stream_class < kStreamClasses; ++stream_class) {
    absl::StrAppend(&text, "stream {\n\tid = ", stream_class,
                    ";\n\tpacket.context := ", Reserved(PacketContext(stream_class)),
                    ";\n\tevent.header := ", Reserved(EventHeader()), ";\n");
    const std::vector<const std::string*>& events = trace.event_classes[stream_class];
    // babeltrace2 2.0.4 aborts if a context contains sequences but the stream has no events.
    if (!events.empty()) {
      absl::StrAppend(&text, "\tevent.context := ", Fields(trace.context), ";\n");
    }
    absl::StrAppend(&text, "};\n\n");
    for (std::size_t id = 0; id < events.size(); ++id) {
      absl::StrAppend(&text, "event {\n\tid = ", id, ";\n\tstream_id = ", stream_class, ";\n",
                      *events[id], "};\n\n");
    }
  }
  return text;
}

}  // namespace tools::ctf
