// Tests the numbers and names of hosts, and the names of processes with equal pids on several
// hosts.
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/payload.h"
#include "tools/trace/hosts.h"
#include "tools/trace/process_names.h"

namespace trace {
namespace {

nettrace::ThreadInfo ThreadOn(const std::string& host, const std::string& boot) {
  nettrace::ThreadInfo thread;
  thread.process_id = 7;
  thread.key_values = {{"Unit", "shop"}, {"BootId", boot}, {"HostName", host}};
  return thread;
}

TEST(Hosts, BootsOfOneHostAreDifferent) {
  Hosts hosts;
  EXPECT_EQ(hosts.Add({}), Hosts::kNone);
  EXPECT_EQ(hosts.Find(ThreadOn("a", "1")), Hosts::kOthers);
  EXPECT_EQ(hosts.Add(ThreadOn("a", "1")), 1u);
  EXPECT_EQ(hosts.TextOf(1), "a");
  EXPECT_EQ(hosts.Add(ThreadOn("a", "0123456789")), 2u);
  EXPECT_EQ(hosts.Add(ThreadOn("b", "")), 3u);
  EXPECT_EQ(hosts.Add(ThreadOn("", "2")), 4u);
  EXPECT_EQ(hosts.Find(ThreadOn("a", "0123456789")), 2u);
  EXPECT_EQ(hosts.Add(ThreadOn("a", "1")), 1u);
  EXPECT_EQ(hosts.size(), 5u);
  EXPECT_EQ(hosts.TextOf(Hosts::kNone), "");
  EXPECT_EQ(hosts.TextOf(1), "a (boot 1)");
  EXPECT_EQ(hosts.TextOf(2), "a (boot 01234567)");
  EXPECT_EQ(hosts.TextOf(3), "b");
  EXPECT_EQ(hosts.TextOf(4), "boot 2");
}

TEST(Hosts, NameOfAThreadIsItsHostOrItsBoot) {
  EXPECT_EQ(HostNameOf(ThreadOn("a", "1")), "a");
  EXPECT_EQ(HostNameOf(ThreadOn("", "1")), "1");
  EXPECT_EQ(HostNameOf({}), "");
}

TEST(Hosts, TheirNumberIsLimited) {
  Hosts hosts;
  for (std::size_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(hosts.Add(ThreadOn(absl::StrCat("host ", i), "")),
              i <= Hosts::kMax ? i : Hosts::kOthers);
  }
  EXPECT_EQ(hosts.TextOf(Hosts::kOthers), "another host");
}

TEST(Hosts, EqualPidsOfSeveralHostsHaveSeparateNames) {
  nettrace::EventMetadata metadata;
  metadata.provider = "Universal.System";
  metadata.name = "ExistingProcess";
  metadata.fields = {
      {"Name", nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kUtf8CodeUnit))}};
  const nettrace::ThreadInfo on_a = ThreadOn("a", "1");
  const nettrace::ThreadInfo on_b = ThreadOn("b", "2");
  nettrace::ThreadInfo on_none;
  on_none.process_id = 7;
  ProcessNames names;
  nettrace::Event event;
  event.metadata = &metadata;
  const auto add = [&](const nettrace::ThreadInfo& thread, char name) {
    const std::vector<std::byte> payload = {std::byte{1}, std::byte{0},
                                            static_cast<std::byte>(name)};
    event.thread = &thread;
    event.payload = payload;
    names.OnEvent(event);
  };
  add(on_a, 'x');
  EXPECT_EQ(names.NameOf(on_b), "");
  EXPECT_EQ(names.NameOf(on_none), "");
  add(on_b, 'y');
  add(on_none, 'z');
  EXPECT_EQ(names.NameOf(on_a), "x");
  EXPECT_EQ(names.NameOf(on_b), "y");
  EXPECT_EQ(names.NameOf(on_none), "z");
  metadata.name = "ProcessExit";
  add(on_b, 'y');
  EXPECT_EQ(names.NameOf(on_a), "x");
  EXPECT_EQ(names.NameOf(on_b), "");
}

}  // namespace
}  // namespace trace
