// Streams of numbered events in sections, and functions that read the files that a sink makes of
// them.
#ifndef TESTS_SUPPORT_COLLECTOR_NUMBERED_STREAM_H_
#define TESTS_SUPPORT_COLLECTOR_NUMBERED_STREAM_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "nettrace/verifier.h"
#include "nettrace/writer.h"
#include "tools/trace/zstd_source.h"

namespace collector::testing {

// Writes events numbered from 0. Begins a section when the sink asks for one, as a session does.
class NumberedStream {
 public:
  explicit NumberedStream(std::unique_ptr<nettrace::Sink> sink) : sink_(sink.get()) {
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'700'000'000);
    nettrace::WriterOptions options;
    options.event_block_size = 4096;
    writer_ = *nettrace::Writer::Create(std::move(sink), info, options);
    StartRows();
  }

  // Writes this many events and ends the interval.
  void Write(int count) {
    for (int i = 0; i < count; ++i) {
      // Payloads that compress badly, so that sizes are predictable.
      const std::array<std::uint64_t, 2> payload = {next_, next_ * 0x9E3779B97F4A7C15};
      ++next_;
      ++time_;
      const nettrace::EventRow row = {.metadata_id = metadata_,
                                      .capture_thread = thread_,
                                      .thread = thread_,
                                      .timestamp = time_};
      ASSERT_TRUE(writer_->WriteEvent(row, std::as_bytes(std::span(payload))).ok());
    }
    ++time_;
    if (section_wanted_ || sink_->WantsSection()) {
      section_wanted_ = false;
      ++sections_;
      ASSERT_TRUE(writer_->StartSection(time_).ok());
      StartRows();
    } else {
      ASSERT_TRUE(writer_->WriteSequencePoint(time_).ok());
    }
    ASSERT_TRUE(writer_->Flush().ok());
  }
  void RequestSection() { section_wanted_ = true; }
  absl::Status Finish() { return writer_->Finish(); }

  std::uint64_t written() const { return next_; }
  int sections() const { return sections_; }  // Sections after the first one.
  nettrace::Writer& writer() { return *writer_; }

 private:
  void StartRows() {
    nettrace::EventMetadata metadata;
    metadata.provider = "P";
    metadata.event_id = 1;
    metadata.name = "E";
    metadata.fields = {{"Number", nettrace::Type::Simple(nettrace::TypeCode::kUInt64)},
                       {"Noise", nettrace::Type::Simple(nettrace::TypeCode::kUInt64)}};
    metadata_ = *writer_->AddMetadata(metadata);
    thread_ = *writer_->AddThread({});
  }

  nettrace::Sink* sink_;
  std::unique_ptr<nettrace::Writer> writer_;
  nettrace::MetadataId metadata_ = nettrace::kNoMetadata;
  nettrace::ThreadIndex thread_ = nettrace::kNoThread;
  std::uint64_t next_ = 0;
  std::uint64_t time_ = 0;
  int sections_ = 0;
  bool section_wanted_ = false;
};

struct FileContents {
  std::vector<std::uint64_t> numbers = {};  // Numbers of the events of a NumberedStream.
  std::uint64_t others = 0;                 // Other events, such as those of the account.
  bool complete = false;                    // True if the file has an end block.
  absl::Status status = absl::OkStatus();
};

inline FileContents ReadContents(std::unique_ptr<nettrace::Source> source) {
  FileContents contents;
  auto plain = trace::OpenCompressed(std::move(source));
  if (!plain.ok()) return {.status = plain.status()};
  auto reader = nettrace::Reader::Open(*std::move(plain));
  if (!reader.ok()) return {.status = reader.status()};
  for (;;) {
    const nettrace::Reader::Step step = (*reader)->Next();
    if (step == nettrace::Reader::Step::kEnd) break;
    if (step != nettrace::Reader::Step::kEvent) continue;
    const nettrace::Event& event = (*reader)->event();
    if (event.metadata->provider != "P" || event.payload.size() != 16) {
      ++contents.others;
      continue;
    }
    std::memcpy(&contents.numbers.emplace_back(), event.payload.data(), sizeof(std::uint64_t));
  }
  contents.complete = (*reader)->stats().complete;
  contents.status = (*reader)->status();
  return contents;
}

inline FileContents ReadContents(const std::string& path) {
  auto source = nettrace::FdSource::Open(path);
  if (!source.ok()) return {.status = source.status()};
  return ReadContents(*std::move(source));
}

// Fails the test unless the file is complete and verifies without a finding.
inline void ExpectVerifies(const std::string& path) {
  auto source = nettrace::FdSource::Open(path);
  ASSERT_TRUE(source.ok()) << source.status();
  auto plain = trace::OpenCompressed(*std::move(source));
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto report = nettrace::Verify(*std::move(plain));
  ASSERT_TRUE(report.ok()) << path << ": " << report.status();
  for (const nettrace::Finding& finding : report->findings) {
    ADD_FAILURE() << path << ": " << finding.rule->name << " at " << finding.offset << ": "
                  << finding.explanation;
  }
}

// Returns the paths of the entries of a directory, in the order of their names.
inline std::vector<std::string> PathsIn(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Returns the numbers of the events in all files of the directory, in the order of the files'
// names. Fails the test unless each file is complete and verifies without a finding.
inline std::vector<std::uint64_t> NumbersIn(const std::string& directory) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& path : PathsIn(directory)) {
    ExpectVerifies(path);
    const FileContents contents = ReadContents(path);
    EXPECT_TRUE(contents.complete) << path << ": " << contents.status;
    numbers.insert(numbers.end(), contents.numbers.begin(), contents.numbers.end());
  }
  return numbers;
}

// Returns whether the numbers are first, first + 1, ... up to end - 1.
inline ::testing::AssertionResult AreNumbers(const std::vector<std::uint64_t>& numbers,
                                             std::uint64_t first, std::uint64_t end) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != first + i) {
      return ::testing::AssertionFailure()
             << "number " << i << " is " << numbers[i] << ", not " << first + i;
    }
  }
  if (numbers.size() == end - first) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << numbers.size() << " numbers from " << first << " on, not " << end - first;
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = ::testing::TempDir() + "/output.XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace collector::testing

#endif  // TESTS_SUPPORT_COLLECTOR_NUMBERED_STREAM_H_
