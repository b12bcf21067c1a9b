#include "tools/nettrace/symbolize/run.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/merger.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/time_ordered_reader.h"
#include "tools/base/json_text.h"
#include "tools/base/prompt_files.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/nettrace/command/reread_input.h"
#include "tools/nettrace/symbolize/debuginfod.h"
#include "tools/nettrace/symbolize/stack_hits.h"
#include "tools/trace/code_events.h"

namespace tools::symbolize {
namespace {

using Step = nettrace::TimeOrderedReader::Step;

// Returns the metadata row of the events for functions. The collector writes an equal row for
// functions of the kernel, so the file needs only one row for both.
nettrace::EventMetadata FunctionMetadata() {
  const auto number = nettrace::Type::Simple(nettrace::TypeCode::kVarUInt);
  nettrace::EventMetadata metadata;
  metadata.provider = std::string(nettrace::internal::traceevent::kUniversalSystem);
  metadata.event_id = 4;
  metadata.name = "ProcessSymbol";
  metadata.opcode = 0;
  metadata.fields = {{"Id", number},
                     {"MappingId", number},
                     {"StartAddress", number},
                     {"EndAddress", number},
                     nettrace::MakeField<std::string_view>("Name")};
  return metadata;
}

// Returns the metadata row of the events that describe files. It is equal to the collector's row.
nettrace::EventMetadata DescriptionMetadata() {
  nettrace::EventMetadata metadata;
  metadata.provider = std::string(nettrace::internal::traceevent::kUniversalSystem);
  metadata.event_id = 5;
  metadata.name = "ProcessMappingMetadata";
  metadata.opcode = 0;
  metadata.fields = {{"Id", nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)},
                     nettrace::MakeField<std::string_view>("SymbolMetadata"),
                     nettrace::MakeField<std::string_view>("VersionMetadata")};
  return metadata;
}

// Returns the SymbolMetadata that TraceEvent reads.
std::string SymbolMetadata(const ElfDescription& description) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutText(&json, "type", "ELF");
  base::PutText(&json, "build_id", absl::BytesToHexString(description.build_id));
  base::PutText(&json, "p_vaddr", absl::StrFormat("0x%x", description.address));
  base::PutText(&json, "p_offset", absl::StrFormat("0x%x", description.offset));
  if (!description.debug_link.empty()) {
    base::PutText(&json, "debug_link", description.debug_link);
  }
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize());
}

// Creates the events that are added to a file: the functions of its mappings, and descriptions of
// the mapped files, with which other programs find more functions.
class FunctionEvents {
 public:
  // Ids of functions are greater than `max_id`, the greatest id in the file. They are also greater
  // than the current time in ns since 1970, so that the ids of several files differ when the files
  // are merged.
  FunctionEvents(FunctionsByMapping functions, ElfDescriptions descriptions, std::uint64_t max_id)
      : functions_(std::move(functions)),
        descriptions_(std::move(descriptions)),
        metadata_(FunctionMetadata()),
        description_metadata_(DescriptionMetadata()),
        payload_(&metadata_.fields),
        description_payload_(&description_metadata_.fields),
        last_id_(std::max(max_id, static_cast<std::uint64_t>(absl::ToUnixNanos(absl::Now())))) {}

  // Returns the events for the functions of the mapping that `event` describes, or the full
  // description of the file that `event` describes. Returns none if `event` describes neither, or
  // describes a mapping that was passed before.
  std::vector<nettrace::AddedEvent> After(const nettrace::Event& event) {
    std::vector<nettrace::AddedEvent> added;
    const std::optional<trace::CodeEvent> code = trace::ReadCodeEvent(event);
    if (!code) return added;
    if (code->kind == trace::CodeEvent::Kind::kFile) return AfterFile(code->id);
    if (code->kind != trace::CodeEvent::Kind::kMapping) return added;
    const auto found = functions_.find(code->id);
    if (found == functions_.end()) return added;
    for (const elf::Function& function : found->second) {
      const auto payload = payload_.UInt(++last_id_)
                               .UInt(code->id)
                               .UInt(function.first)
                               .UInt(function.last)
                               .Utf8(base::ValidUtf8(function.name))
                               .Finish();
      if (payload.ok()) added.push_back({metadata_, {payload->begin(), payload->end()}});
    }
    functions_.erase(found);
    return added;
  }

 private:
  // Returns a complete description of the file with this id, to be written after the event that
  // the collector has written for the file. Both events have the same id: TraceEvent uses the last
  // event with an id.
  std::vector<nettrace::AddedEvent> AfterFile(std::uint64_t id) {
    const auto found = descriptions_.find(id);
    if (found == descriptions_.end()) return {};
    const auto payload =
        description_payload_.UInt(id).Utf8(SymbolMetadata(found->second)).Utf8("{}").Finish();
    if (!payload.ok()) return {};
    return {{description_metadata_, {payload->begin(), payload->end()}}};
  }

  FunctionsByMapping functions_;
  const ElfDescriptions descriptions_;
  const nettrace::EventMetadata metadata_;
  const nettrace::EventMetadata description_metadata_;
  nettrace::PayloadEncoder payload_;
  nettrace::PayloadEncoder description_payload_;
  std::uint64_t last_id_;
};

absl::Status Named(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(InputName(path), ": ", status.message()));
}

absl::Status ReadHits(const std::string& path, RereadInput* input, StackHits* hits,
                      Machine* machine) {
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Reader> opened, input->Read());
  *machine = CompareMachine(opened->trace());
  nettrace::TimeOrderedReader reader(std::move(opened));
  for (Step step = reader.Next(); step != Step::kEnd; step = reader.Next()) {
    if (step == Step::kEvent) hits->OnEvent(reader.reader(), reader.event());
    if (step == Step::kSequencePoint) hits->OnSequencePoint();
  }
  RETURN_IF_ERROR(Named(path, reader.sort_status()));
  return Named(path, reader.reader().status());
}

absl::Status WriteOutput(const Options& options, RereadInput* input, FunctionEvents* functions,
                         Summary* summary) {
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Reader> reader, input->ReadAgain());
  nettrace::MergerOptions merging;
  merging.add_after = [functions](const nettrace::Reader&, const nettrace::Event& event) {
    return functions->After(event);
  };
  nettrace::Merger merger(std::move(merging));
  merger.AddInput(std::move(reader));
  OutputFile file(options.output);
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink =
      file.Create(OutputAccess(input->facts(), options.mode));
  if (!sink.ok()) return Named(options.output, sink.status());
  RETURN_IF_ERROR(Named(options.output, merger.Run(*std::move(sink))));
  if (!merger.has_date(0)) {
    return Named(options.input, absl::DataLossError("the Trace block has no date; 'nettrace "
                                                    "repair' adds one"));
  }
  RETURN_IF_ERROR(Named(options.input, merger.status(0)));
  RETURN_IF_ERROR(Named(options.output, file.Keep()));
  summary->uncompressed_bytes = merger.stats().bytes;
  summary->bytes = file.Size(merger.stats().bytes);
  return absl::OkStatus();
}

}  // namespace

ModuleResult Summary::Total() const {
  ModuleResult total;
  for (const ModuleResult& module : modules) {
    total.addresses += module.addresses;
    total.named += module.named;
    total.functions += module.functions;
  }
  return total;
}

absl::StatusOr<Summary> Run(const Options& options) {
  std::unique_ptr<Debuginfod> debuginfod;
  if (options.debuginfod) {
    ASSIGN_OR_RETURN(debuginfod, Debuginfod::Load());
  }
  Progress progress(options.command);
  ASSIGN_OR_RETURN(const std::unique_ptr<RereadInput> input,
                   RereadInput::Open({options.input}, &progress));
  StackHits hits;
  Machine machine;
  RETURN_IF_ERROR(ReadHits(options.input, input.get(), &hits, &machine));
  base::PromptFiles prompt_files;
  FunctionFinder finder(machine, options.debug_folders, std::move(debuginfod),
                        options.has_prompt_files_only ? &prompt_files : nullptr);
  finder.Find(hits.Finish());
  Summary summary;
  summary.modules = finder.modules();
  summary.ignored = hits.ignored();
  const bool replaces_nothing = options.input != options.output;
  ElfDescriptions descriptions = finder.descriptions();
  if (summary.Total().functions != 0 || !descriptions.empty() || replaces_nothing) {
    FunctionEvents functions(finder.functions(), std::move(descriptions), hits.max_id());
    RETURN_IF_ERROR(WriteOutput(options, input.get(), &functions, &summary));
  }
  return summary;
}

void PrintSummary(const Summary& summary, std::size_t max_files, const std::string& prefix) {
  const ModuleResult total = summary.Total();
  absl::FPrintF(stderr, "%s%s for %d of %d addresses\n", prefix,
                base::Counted(total.functions, "function"), total.named, total.addresses);
  std::size_t shown = 0;
  for (const ModuleResult& module : summary.modules) {
    if (module.reason.empty() || ++shown > max_files) continue;
    absl::FPrintF(stderr, "  %s: %d of %d addresses without a function: %s\n",
                  base::Printable(module.path), module.addresses - module.named, module.addresses,
                  base::Printable(module.reason));
  }
  if (shown > max_files) {
    absl::FPrintF(stderr,
                  "  %s with addresses without a function; 'nettrace symbolize --json' shows all\n",
                  base::Counted(shown - max_files, "more file"));
  }
  if (summary.ignored != 0) {
    absl::FPrintF(
        stderr,
        "  mappings, functions and addresses that were ignored because of the limit of memory: %d; "
        "write parts of the file with 'nettrace cut', and symbolize each of them\n",
        summary.ignored);
  }
}

std::string SummaryJson(const std::string& file, const Summary& summary) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  const ModuleResult total = summary.Total();
  json.StartObject();
  base::PutText(&json, "file", file);
  base::PutNumber(&json, "functions", total.functions);
  base::PutNumber(&json, "addresses", total.addresses);
  base::PutNumber(&json, "named", total.named);
  base::PutNumber(&json, "ignored", summary.ignored);
  base::PutNumber(&json, "bytes", summary.bytes);
  json.Key("modules");
  json.StartArray();
  for (const ModuleResult& module : summary.modules) {
    json.StartObject();
    base::PutText(&json, "path", module.path);
    if (!module.build_id.empty()) {
      base::PutText(&json, "buildId", absl::BytesToHexString(module.build_id));
    }
    if (!module.source.empty()) base::PutText(&json, "source", module.source);
    base::PutNumber(&json, "functions", module.functions);
    base::PutNumber(&json, "addresses", module.addresses);
    base::PutNumber(&json, "named", module.named);
    if (!module.reason.empty()) base::PutText(&json, "reason", module.reason);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return std::string(buffer.GetString(), buffer.GetSize());
}

}  // namespace tools::symbolize
