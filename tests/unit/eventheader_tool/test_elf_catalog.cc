// Tests the catalogue of this program itself, and of files that have none.
#include <eventheader/eh.h>
#include <eventheader/macros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "eventheader/decoder.h"
#include "tests/support/eventheader/memory_file.h"
#include "tools/eventheader/elf_catalog.h"

namespace tools {
namespace {

// Definitions as programs have them: shared by source files or used by one, with a group, and by
// macros.
inline constinit eh::Provider inline_provider("Catalog_Inline");
constinit eh::Provider grouped_provider("Catalog_Grouped", "mygroup");
EVENTHEADER_DEFINE_PROVIDER(macro_provider, "Catalog_Macro");

constexpr eh::Event<inline_provider, "Request", eh::Traits{.keyword = 0x10, .id = 7, .version = 2},
                    eh::Field<"path", std::string_view>, eh::Field<"status", int>>
    request;
constexpr eh::Event<inline_provider, "Reply", eh::Traits{.keyword = 0x10}> reply;
constexpr eh::Event<grouped_provider, "Alone", eh::Traits{.level = eh::Level::kError}> alone;
// Never written.
[[maybe_unused]] constexpr eh::Event<inline_provider, "Never", eh::Traits{.keyword = 0x20}> never;

void Write() {
  static_cast<void>(request.Write("/", 200));
  static_cast<void>(reply.Write());
  static_cast<void>(alone.Write());
  EVENTHEADER_EVENT(macro_provider, "Statement", eh::Level::kWarning, 0x3,
                    EVENTHEADER_FIELD("x", 1));
  if (EVENTHEADER_ENABLED(macro_provider, eh::Level::kVerbose, 0x4)) GTEST_FAIL();
}

Catalog OfThisProgram() {
  Write();
  absl::StatusOr<Catalog> catalog = ReadCatalog("/proc/self/exe");
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  return catalog.ok() ? *std::move(catalog) : Catalog();
}

TEST(Catalog, HasTheEventSetsThatTheProgramHasCodeFor) {
  const Catalog catalog = OfThisProgram();
  EXPECT_EQ(catalog.tracepoints,
            (std::vector<std::string>{"Catalog_Grouped_L2K0Gmygroup", "Catalog_Inline_L4K10",
                                      "Catalog_Macro_L3K3", "Catalog_Macro_L5K4"}));
  EXPECT_EQ(catalog.unclear, std::vector<std::string>());
}

TEST(Catalog, HasEachKindOfEventOnce) {
  std::vector<std::string> names;
  for (const CatalogEvent& event : OfThisProgram().events) {
    names.push_back(event.tracepoint + " " + event.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "Catalog_Grouped_L2K0Gmygroup Alone", "Catalog_Inline_L4K10 Reply",
                       "Catalog_Inline_L4K10 Request", "Catalog_Macro_L3K3 Statement"}));
}

TEST(Catalog, AnEventHasItsAttributesAndFields) {
  const Catalog catalog = OfThisProgram();
  const auto found =
      std::find_if(catalog.events.begin(), catalog.events.end(),
                   [](const CatalogEvent& event) { return event.name == "Request"; });
  ASSERT_NE(found, catalog.events.end());
  eh::EventView view{};
  ASSERT_EQ(eh::ParseEvent(found->head, &view), eh::ParseError::kNone);
  EXPECT_EQ(view.header.id, 7);
  EXPECT_EQ(view.header.version, 2);
  EXPECT_EQ(view.header.level, 4);
  eh::MetadataReader metadata(view.metadata, view.little_endian);
  eh::FieldDefinition field{};
  ASSERT_TRUE(metadata.Next(&field));
  EXPECT_EQ(field.name, "path");
  EXPECT_EQ(field.encoding, eh::Encoding::kStringLength16Char8);
  ASSERT_TRUE(metadata.Next(&field));
  EXPECT_EQ(field.name, "status");
  EXPECT_EQ(field.encoding, eh::Encoding::kValue32);
  EXPECT_FALSE(metadata.Next(&field));
}

TEST(Catalog, ProgramWithoutEventsHasAnEmptyCatalog) {
  const absl::StatusOr<Catalog> catalog = ReadCatalog("/bin/true");
  ASSERT_TRUE(catalog.ok()) << catalog.status();
  EXPECT_TRUE(catalog->tracepoints.empty());
  EXPECT_TRUE(catalog->events.empty());
  EXPECT_TRUE(catalog->unclear.empty());
}

TEST(Catalog, RefusesOtherFiles) {
  EXPECT_TRUE(absl::IsNotFound(ReadCatalog("/no/such/file").status()));
  for (const char* path : {"/", "/dev/null", "/etc/passwd"}) {
    const absl::Status status = ReadCatalog(path).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.message().find(path), std::string_view::npos) << status;
  }
}

TEST(Catalog, CutProgramHasNoMoreEventsThanTheWholeOne) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string program{std::istreambuf_iterator<char>(file), {}};
  ASSERT_GT(program.size(), 4096u);
  int read = 0;
  for (std::size_t size = 0; size < program.size(); size += program.size() / 16) {
    const tests::MemoryFile cut(std::as_bytes(std::span(program).first(size)));
    const absl::StatusOr<Catalog> catalog = ReadCatalog(cut.path());
    if (!catalog.ok()) continue;
    ++read;
    EXPECT_LE(catalog->tracepoints.size(), 4u);
    EXPECT_LE(catalog->events.size(), 4u);
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace tools
