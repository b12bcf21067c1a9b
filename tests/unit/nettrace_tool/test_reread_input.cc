// Tests input that is read twice: files that grow or are replaced between the two passes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/nettrace/command/reread_input.h"

namespace tools {
namespace {

class RereadInputTest : public ::testing::Test {
 protected:
  RereadInputTest() : folder_(std::filesystem::path(::testing::TempDir()) / "reread_input") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~RereadInputTest() override { std::filesystem::remove_all(folder_); }

  // Returns a stream of `events` events, each in an interval.
  static std::string Stream(std::uint64_t events) {
    auto sink = std::make_unique<nettrace::MemorySink>();
    const nettrace::MemorySink* const memory = sink.get();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'800'000'000);
    auto writer = *nettrace::Writer::Create(std::move(sink), info);
    nettrace::EventRow row;
    nettrace::EventMetadata metadata;
    metadata.provider = "P";
    metadata.name = "N";
    metadata.event_id = 1;
    row.metadata_id = *writer->AddMetadata(metadata);
    row.capture_thread = row.thread = *writer->AddThread({});
    for (std::uint64_t i = 1; i <= events; ++i) {
      row.timestamp = i;
      EXPECT_TRUE(writer->WriteEvent(row, {}).ok());
      EXPECT_TRUE(writer->WriteSequencePoint(i).ok());
    }
    // The stream has no end, so that the file may grow.
    return {reinterpret_cast<const char*>(memory->bytes().data()), memory->bytes().size()};
  }
  std::string Write(const char* name, const std::string& bytes) const {
    std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::uint64_t CountEvents(nettrace::Reader* reader) {
    while (reader->Next() != nettrace::Reader::Step::kEnd) {
    }
    return reader->stats().events;
  }

  const std::filesystem::path folder_;
};

TEST_F(RereadInputTest, SecondPassReadsWhatTheFirstPassHasRead) {
  const std::string four = Stream(4);
  const std::string two = Stream(2);
  ASSERT_EQ(four.substr(0, two.size()), two);
  for (const bool is_one : {true, false}) {
    SCOPED_TRACE(is_one);
    std::vector<std::string> paths = {Write("a.nettrace", two)};
    if (!is_one) paths.push_back(Write("b.nettrace", two));
    Progress progress("test", /*wanted=*/false);
    auto input = RereadInput::Open(paths, &progress);
    ASSERT_TRUE(input.ok()) << input.status();
    {
      auto reader = (*input)->Read();
      ASSERT_TRUE(reader.ok()) << reader.status();
      EXPECT_EQ(CountEvents(reader->get()), is_one ? 2u : 4u);
      const auto unknown = (*input)->UnknownEnds(**reader);
      EXPECT_EQ(unknown.size(), paths.size()) << "no file has an end";
    }
    for (const std::string& path : paths) {
      std::ofstream(path, std::ios::binary | std::ios::app) << four.substr(two.size());
    }
    auto again = (*input)->ReadAgain();
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(CountEvents(again->get()), is_one ? 2u : 4u);
  }
}

TEST_F(RereadInputTest, ReplacedFileIsAnError) {
  const std::vector<std::string> paths = {Write("a.nettrace", Stream(2)),
                                          Write("b.nettrace", Stream(3))};
  Progress progress("test", /*wanted=*/false);
  auto input = RereadInput::Open(paths, &progress);
  ASSERT_TRUE(input.ok()) << input.status();
  {
    auto reader = (*input)->Read();
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(CountEvents(reader->get()), 5u);
  }
  std::filesystem::rename(Write("other", Stream(9)), paths[1]);
  const auto again = (*input)->ReadAgain();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().message(), paths[1] + ": was replaced while it was read; try again");
}

}  // namespace
}  // namespace tools
