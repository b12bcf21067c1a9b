// Tests the formats of all tracepoints of the running kernel: each becomes a metadata row that the
// strict writer accepts, with all of its fields.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/tracepoint_schema.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/trace/tracepoint_keys.h"

namespace collector {
namespace {

namespace fs = std::filesystem;

struct Format {
  std::string system;
  std::string event;
  int id = 0;
  std::string text;
};

std::vector<Format> AllFormats() {
  std::vector<Format> formats;
  const absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
  if (!tracefs.ok()) return formats;
  for (const auto& system : fs::directory_iterator(tracefs->directory() + "/events")) {
    if (!system.is_directory()) continue;
    for (const auto& event : fs::directory_iterator(system)) {
      std::ifstream file(event.path() / "format");
      std::ifstream id(event.path() / "id");
      Format format{system.path().filename(), event.path().filename(), 0, ""};
      if (!(id >> format.id) || !file) continue;
      format.text.assign(std::istreambuf_iterator<char>(file), {});
      formats.push_back(std::move(format));
    }
  }
  return formats;
}

// Returns the names of the fields that `text` declares, without the common ones.
std::vector<std::string> DeclaredNames(const std::string& text) {
  static const std::regex kField("\tfield:[^;]*?(\\w+)(\\[[^;]*\\])?;\toffset:");
  std::vector<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kField), end; at != end; ++at) {
    if ((*at)[1].str().rfind("common_", 0) != 0) names.push_back((*at)[1]);
  }
  return names;
}

TEST(KernelFormats, EachBecomesARowWithAllItsFields) {
  const std::vector<Format> formats = AllFormats();
  if (formats.empty()) GTEST_SKIP() << "tracefs is not mounted, or may not be read";
  auto writer = nettrace::Writer::Create(std::make_unique<nettrace::MemorySink>(), {});
  ASSERT_TRUE(writer.ok()) << writer.status();
  std::size_t rows = 0;
  std::size_t notes = 0;
  for (const Format& format : formats) {
    // The system ftrace describes records of ftrace itself, which perf cannot record.
    if (format.system == "ftrace") continue;
    SCOPED_TRACE(format.system + ":" + format.event);
    const auto schema = ParseTracepointFormat(format.system, format.event, format.id, format.text);
    ASSERT_TRUE(schema.ok()) << schema.status();
    std::vector<std::string> names;
    for (const nettrace::Field& field : schema->metadata.fields) names.push_back(field.name);
    EXPECT_EQ(names, DeclaredNames(format.text));
    for (const TextForm form : {TextForm::kBytes, TextForm::kUtf16}) {
      nettrace::EventMetadata metadata = schema->MetadataFor(form);
      metadata.provider = "formats";  // One provider for all systems, so that ids are unique.
      metadata.event_id = static_cast<std::uint32_t>(++rows);
      const auto added = (*writer)->AddMetadata(metadata);
      EXPECT_TRUE(added.ok()) << added.status();
    }
    for (const auto& [key, value] : schema->metadata.key_values) {
      EXPECT_TRUE(trace::ParseTracepointNote(value).has_value()) << key << ": " << value;
      ++notes;
    }
  }
  RecordProperty("rows", static_cast<int>(rows));
  EXPECT_GT(notes, 0u);
}

}  // namespace
}  // namespace collector
