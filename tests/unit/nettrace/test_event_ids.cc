#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "libnettrace-writer/core/event_ids.h"

namespace nettrace::internal {
namespace {

const std::vector<Field> kFields = {
    {"Status", Type::Simple(TypeCode::kUInt32)},
    {"Path", Type::Array(Type::Simple(TypeCode::kUtf16CodeUnit))},
    {"Point", Type::Object({{"x", Type::Simple(TypeCode::kInt32)}})},
};

// Computed apart from this code. Other ids would part the recordings of two versions.
TEST(EventIds, AreTheSameInAllVersionsAndOnAllMachines) {
  EXPECT_EQ(HashedEventId("Request", {}, 0), 62025u);
  EXPECT_EQ(HashedEventId("Request", kFields, 1), 8478u);
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

}  // namespace
}  // namespace nettrace::internal
