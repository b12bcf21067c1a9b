// `eventheader catalog`: lists the events that programs may write. The programs need not have run.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "eventheader/decoder.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/eventheader/commands.h"
#include "tools/eventheader/elf_catalog.h"
#include "tools/eventheader/program_files.h"
#include "tools/eventheader/tracepoint_json.h"
#include "tools/trace/eventheader_keys.h"

namespace tools {
namespace {

struct CatalogArguments {
  std::vector<std::string> programs;
  bool json = false;
};

std::string ArrayOf(const eh::FieldDefinition& field) {
  switch (field.arity) {
    case eh::Arity::kScalar:
      return "";
    case eh::Arity::kConstantArray:
      return absl::StrCat("[", field.array_length, "]");
    case eh::Arity::kVariableArray:
      return "[]";
  }
  return "";
}

// Returns the names of an event's fields, with marks for arrays and structs: "(a, b[], c{x, y})".
std::string Signature(eh::MetadataReader metadata) {
  std::string text = "(";
  int depth = 0;
  eh::FieldDefinition field;
  bool is_first = true;
  while (metadata.Next(&field)) {
    for (; depth > field.depth; --depth) text += '}';
    if (!is_first) text += ", ";
    text += field.name;
    text += ArrayOf(field);
    is_first = field.encoding == eh::Encoding::kStruct;
    if (is_first) {
      text += '{';
      ++depth;
    }
  }
  for (; depth > 0; --depth) text += '}';
  return text + ")";
}

void PutFields(base::JsonWriter* json, eh::MetadataReader metadata) {
  json->Key("fields");
  json->StartArray();
  int depth = 0;
  eh::FieldDefinition field;
  while (metadata.Next(&field)) {
    for (; depth > field.depth; --depth) {
      json->EndArray();
      json->EndObject();
    }
    json->StartObject();
    base::PutText(json, "name", field.name);
    const std::optional<std::uint16_t> tag =
        field.has_tag ? std::optional(field.tag) : std::nullopt;
    base::PutText(
        json, "type",
        trace::FormatFieldNote({field.encoding, field.format, tag, std::string(field.attributes)}));
    base::PutText(json, "array", ArrayOf(field));
    if (field.encoding == eh::Encoding::kStruct) {
      json->Key("fields");
      json->StartArray();
      ++depth;
    } else {
      json->EndObject();
    }
  }
  for (; depth > 0; --depth) {
    json->EndArray();
    json->EndObject();
  }
  json->EndArray();
}

void PutEvent(base::JsonWriter* json, const CatalogEvent& event) {
  eh::EventView view;
  static_cast<void>(eh::ParseEvent(event.head, &view));  // ReadCatalog has checked it
  const eh::MetadataReader metadata(view.metadata, view.little_endian);
  json->StartObject();
  base::PutText(json, "name", event.name);
  base::PutNumber(json, "id", view.header.id);
  base::PutNumber(json, "version", view.header.version);
  base::PutNumber(json, "opcode", view.header.opcode);
  base::PutNumber(json, "tag", view.header.tag);
  base::PutText(json, "attributes", metadata.event_attributes());
  PutFields(json, metadata);
  json->EndObject();
}

void PrintJson(const std::string& file, const Catalog& catalog) {
  auto event = catalog.events.begin();
  for (const std::string& tracepoint : catalog.tracepoints) {
    rapidjson::StringBuffer buffer;
    base::JsonWriter json(buffer);
    json.StartObject();
    base::PutText(&json, "file", file);
    base::PutText(&json, "tracepoint", tracepoint);
    PutName(&json, eh::ParseTracepointName(tracepoint));
    json.Key("events");
    json.StartArray();
    for (; event != catalog.events.end() && event->tracepoint == tracepoint; ++event) {
      PutEvent(&json, *event);
    }
    json.EndArray();
    json.EndObject();
    base::PrintJsonLine(buffer);
  }
}

void PrintTable(const std::string& file, const Catalog& catalog) {
  absl::PrintF("%s\n", base::Printable(file));
  auto event = catalog.events.begin();
  for (const std::string& tracepoint : catalog.tracepoints) {
    absl::PrintF("  %s\n", base::Printable(tracepoint));
    for (; event != catalog.events.end() && event->tracepoint == tracepoint; ++event) {
      eh::EventView view;
      static_cast<void>(eh::ParseEvent(event->head, &view));  // ReadCatalog has checked it
      absl::PrintF("    %s%s\n", base::Printable(event->name),
                   base::Printable(Signature({view.metadata, view.little_endian})));
    }
  }
}

void ShowCatalogs(const CatalogArguments& arguments, Invocation* invocation) {
  for (const std::string& program : arguments.programs) {
    const auto catalogs = CatalogsOf(program);
    if (!catalogs.ok()) {
      invocation->Fail(catalogs.status());
      continue;
    }
    for (const ProgramFile& file : *catalogs) {
      if (arguments.json) {
        PrintJson(file.path, file.catalog);
      } else {
        PrintTable(file.path, file.catalog);
      }
      for (const std::string& text : file.catalog.unclear) {
        invocation->Fail(absl::DataLossError(absl::StrCat(file.path, ": ", text)));
      }
    }
    if (catalogs->empty()) FailEmpty(program, invocation);
  }
  invocation->FinishOutput();
}

}  // namespace

void AddCatalog(CLI::App& app, Invocation* invocation) {
  auto arguments = std::make_shared<CatalogArguments>();
  CLI::App* command = app.add_subcommand(
      "catalog", "List the tracepoints and events that programs can write, without running them");
  command
      ->add_option("program", arguments->programs,
                   "A program, a shared object, or an installed Debian package with programs and "
                   "shared objects")
      ->required();
  command->add_flag("--json", arguments->json,
                    "Print one JSON object per line for each tracepoint");
  command->footer(
      "The list is read from the ELF notes that libeventheader stores in the file. The program "
      "does not run. Events of providers whose name is set at run time are not listed.\n\n"
      "Exit code: 0 events were listed; 1 failed, or a part of a file cannot be read; 2 wrong "
      "usage; 3 a program has no events.\n\n"
      "Examples:\n"
      "  eventheader catalog /usr/bin/my-service\n"
      "  eventheader catalog --json my-package | jq -r .tracepoint\n");
  command->callback([arguments, invocation] { ShowCatalogs(*arguments, invocation); });
}

}  // namespace tools
