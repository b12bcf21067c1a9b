// Tests the conversion of entries of the journal to events, and the names of units and fields.
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "eventheader/decoder.h"
#include "tools/collector/journal/journal_entry.h"
#include "tools/collector/journal/journal_options.h"

namespace collector {
namespace {

JournalEntryBuilder Build(std::initializer_list<std::string> fields) {
  JournalEntryBuilder builder({"MESSAGE_ID"});
  builder.Begin();
  for (const std::string& field : fields) builder.Add(field);
  return builder;
}

TEST(JournalEntry, MapsPrioritiesToLevels) {
  constexpr int kLevels[] = {1, 1, 1, 2, 3, 4, 4, 5};
  for (int priority = 0; priority < 8; ++priority) {
    EXPECT_EQ(JournalLevel(std::to_string(priority)), kLevels[priority]);
  }
  for (const char* const other : {"", "8", "-1", "77", "err"}) EXPECT_EQ(JournalLevel(other), 4);
}

TEST(JournalEntry, UsesTheFirstValueAndForgetsThePreviousEntry) {
  JournalEntryBuilder builder = Build({"PRIORITY=3", "_PID=12", "_PID=13", "_COMM=cat", "NoValue"});
  EXPECT_EQ(builder.level(), 2);
  EXPECT_EQ(builder.pid(), 12U);
  EXPECT_EQ(builder.command(), "cat");
  builder.Begin();
  EXPECT_EQ(builder.level(), 4);
  EXPECT_EQ(builder.pid(), 0U);
  EXPECT_EQ(builder.command(), "");
}

TEST(JournalEntry, IsAboutTheUnitThatWroteItOrThatRootNames) {
  constexpr std::string_view kUnit = "a.service";
  EXPECT_TRUE(Build({"_SYSTEMD_UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_TRUE(Build({"_SYSTEMD_USER_UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_TRUE(Build({"_PID=1", "UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_TRUE(Build({"_UID=0", "OBJECT_SYSTEMD_UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_TRUE(Build({"_UID=0", "COREDUMP_UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_FALSE(Build({"_PID=2", "UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_FALSE(Build({"_UID=7", "OBJECT_SYSTEMD_UNIT=a.service"}).IsAbout(kUnit));
  EXPECT_FALSE(Build({"_SYSTEMD_UNIT=a.service.d"}).IsAbout(kUnit));
}

TEST(JournalEntry, CountsSuppressedMessagesOnlyFromJournald) {
  EXPECT_EQ(Build({"_TRANSPORT=driver", "N_DROPPED=17"}).suppressed(), 17U);
  EXPECT_EQ(Build({"_TRANSPORT=journal", "N_DROPPED=17"}).suppressed(), 0U);
  EXPECT_EQ(Build({"_TRANSPORT=driver", "N_DROPPED=-1"}).suppressed(), 0U);
}

TEST(JournalEntry, CutsLongTextBetweenCharacters) {
  std::string euros;
  while (euros.size() < 2 * JournalEntryBuilder::kMaxMessage) euros += "\u20ac";
  JournalEntryBuilder builder = Build({"MESSAGE=" + euros, "MESSAGE_ID=" + std::string(2000, 'x')});
  EXPECT_TRUE(builder.is_cut());
  const std::size_t whole = JournalEntryBuilder::kMaxMessage / 3 * 3;
  const std::vector<std::byte> event = builder.MakeEvent();
  const std::string_view bytes(reinterpret_cast<const char*>(event.data()), event.size());
  EXPECT_NE(bytes.find(euros.substr(0, whole) + JournalEntryBuilder::kCut), std::string_view::npos);
  EXPECT_NE(
      bytes.find(std::string(JournalEntryBuilder::kMaxField, 'x') + JournalEntryBuilder::kCut),
      std::string_view::npos);
  EXPECT_LT(event.size(), std::size_t{32} << 10);
  EXPECT_FALSE(Build({"MESSAGE=short"}).is_cut());
}

TEST(JournalEntry, MakesAnEventWithThePlaceOnlyIfTheEntryHasOne) {
  const auto fields = [](const JournalEntryBuilder& builder) {
    const std::vector<std::byte> event = builder.MakeEvent();
    eh::EventView view;
    EXPECT_EQ(eh::ParseEvent(event, &view), eh::ParseError::kNone);
    EXPECT_EQ(view.header.level, builder.level());
    eh::Decoder decoder(view);
    std::string names(decoder.event_name());
    for (eh::Item item; decoder.Next(&item);) {
      names += ' ';
      names += item.field->name;
    }
    EXPECT_EQ(decoder.error(), eh::ParseError::kNone);
    EXPECT_TRUE(decoder.rest().empty());
    return names;
  };
  EXPECT_EQ(fields(Build({"MESSAGE=a", "PRIORITY=0"})),
            "Entry message unit identifier pid priority MESSAGE_ID");
  EXPECT_EQ(fields(Build({"CODE_FUNC=Run"})),
            "Entry message unit identifier pid priority codeFile codeLine codeFunction MESSAGE_ID");
}

TEST(JournalOptions, CompletesNamesOfUnits) {
  EXPECT_EQ(*ParseJournalUnits("nginx,a.socket,user@1000"),
            (std::vector<std::string>{"nginx.service", "a.socket", "user@1000.service"}));
  for (const char* const wrong : {"", "a,", "a b", "a/b", "\xff"}) {
    EXPECT_FALSE(ParseJournalUnits(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(ParseJournalUnits(std::string(256, 'a')).ok());
}

TEST(JournalOptions, RefusesNamesThatNoFieldHas) {
  EXPECT_EQ(*ParseJournalFields("_UID,MESSAGE_ID,_UID"),
            (std::vector<std::string>{"_UID", "MESSAGE_ID"}));
  for (const char* const wrong : {"", "a", "1A", "A=", "A,,B"}) {
    EXPECT_FALSE(ParseJournalFields(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(ParseJournalFields("A,B,C,D,E,F,G,H,I").ok());
}

}  // namespace
}  // namespace collector
