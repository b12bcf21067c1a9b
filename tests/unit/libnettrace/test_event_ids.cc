#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "libnettrace-writer/core/event_ids.h"
#include "libnettrace-writer/core/sha1.h"
#include "libnettrace-writer/core/traceevent.h"

namespace nettrace::internal {
namespace {

const std::vector<Field> kFields = {
    {"Status", Type::Simple(TypeCode::kUInt32)},
    {"Path", Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit))},
    {"Point", Type::Object({{"x", Type::Simple(TypeCode::kInt32)}})},
};

// The expected ids were computed by other code. If a version had other ids, its recordings would
// differ from those of earlier versions.
TEST(EventIds, AreTheSameInAllVersionsAndOnAllMachines) {
  EXPECT_EQ(HashedEventId("Request", {}, 0), 52405u);
  EXPECT_EQ(HashedEventId("Request", kFields, 1), 42590u);
}

TEST(EventIds, DependOnNameFieldsAndOpcode) {
  std::vector<std::vector<Field>> layouts = {kFields, kFields, kFields, kFields, kFields, {}};
  layouts[1][0].name = "Statu5";
  layouts[2][0].type.code = TypeCode::kInt32;
  layouts[3][2].type.fields[0].name = "y";
  layouts[4].pop_back();
  std::set<std::uint32_t> ids;
  for (const auto& fields : layouts) ids.insert(HashedEventId("Request", fields, 1));
  ids.insert(HashedEventId("Request", kFields, 2));
  ids.insert(HashedEventId("Requests", kFields, 1));
  ids.insert(HashedEventId("A", {{"BC", Type::Simple(TypeCode::kByte)}}, 0));
  ids.insert(HashedEventId("AB", {{"C", Type::Simple(TypeCode::kByte)}}, 0));
  EXPECT_EQ(ids.size(), layouts.size() + 4);
}

TEST(EventIds, TriesAllThatTraceEventHasNoUseFor) {
  const std::uint32_t first = HashedEventId("Request", kFields, 1);
  std::set<std::uint32_t> ids;
  for (std::uint32_t id = first; ids.insert(id).second; id = NextEventId(id)) {
  }
  EXPECT_EQ(ids.size(), 65533u);
  EXPECT_EQ(*ids.begin(), 1u);
  EXPECT_EQ(*ids.rbegin(), 65533u);
}

EventMetadata Row(const std::string& name, std::uint32_t id = 0) {
  EventMetadata row;
  row.provider = "P";
  row.name = name;
  row.event_id = id;
  return row;
}

TEST(EventIds, FreeIdIsTheHashUnlessAnotherSchemaHasIt) {
  EventIdTable table;
  const std::uint32_t hash = HashedEventId("A", {}, 0);
  EXPECT_EQ(table.FreeId(Row("A")), hash);
  table.Add(Row("B", hash));
  EXPECT_EQ(table.FreeId(Row("A")), NextEventId(hash));
  table.Add(Row("A", NextEventId(hash)));
  EXPECT_EQ(table.FreeId(Row("A")), NextEventId(hash));
}

TEST(EventIds, FindsEveryIdBeforeRunningOut) {
  EventIdTable table;
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 65533; ++i) {
    EventMetadata row = Row(std::to_string(i));
    const std::optional<std::uint32_t> id = table.FreeId(row);
    ASSERT_TRUE(id) << i;
    EXPECT_TRUE(ids.insert(*id).second);
    row.event_id = *id;
    table.Add(row);
  }
  EXPECT_EQ(*ids.begin(), 1u);
  EXPECT_EQ(*ids.rbegin(), 65533u);
  EXPECT_EQ(table.FreeId(Row("one more")), std::nullopt);
  EXPECT_TRUE(table.FreeId(Row("0")));  // The row already has an id.
}

std::string GuidOf(const std::string& provider) {
  EventMetadata row;
  row.provider = provider;
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(traceevent::ProviderGuid(row).data()), 16});
}

// GUIDs from the sources of .NET, in the byte order of the file.
TEST(EventIds, ProviderGuidsMatchThoseOfDotNet) {
  EXPECT_EQ(GuidOf("System.Runtime"), "0f2c5949055a6d51aa4ba64e02026c89");
  EXPECT_EQ(GuidOf("sYSTEM.rUNTIME"), GuidOf("System.Runtime"));
  EXPECT_EQ(GuidOf("Microsoft-Diagnostics-DiagnosticSource"), "e101b4ad9652f851c1255fda75826144");
}

// Messages with lengths around that of a block, with the hashes that sha1sum prints.
TEST(EventIds, Sha1IsThatOfTheStandard) {
  const auto sha1 = [](const std::string& text) {
    const auto hash = Sha1(std::as_bytes(std::span(text)));
    return absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), hash.size()});
  };
  EXPECT_EQ(sha1(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(sha1("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sha1(std::string(55, 'a')), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
  EXPECT_EQ(sha1(std::string(56, 'a')), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
  EXPECT_EQ(sha1(std::string(63, 'a')), "03f09f5b158a7a8cdad920bddc29b81c18a551f5");
  EXPECT_EQ(sha1(std::string(64, 'a')), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
  EXPECT_EQ(sha1(std::string(119, 'a')), "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56");
  EXPECT_EQ(sha1(std::string(1000, 'a')), "291e9a6c66994949b57ba5e650361e98fc36b1ba");
}

}  // namespace
}  // namespace nettrace::internal
