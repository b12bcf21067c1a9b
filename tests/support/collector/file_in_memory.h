// The file of a session in memory. It outlives the session, and can be read and verified.
#ifndef TESTS_SUPPORT_COLLECTOR_FILE_IN_MEMORY_H_
#define TESTS_SUPPORT_COLLECTOR_FILE_IN_MEMORY_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/source.h"
#include "nettrace/verifier.h"

namespace tests {

class FileInMemory {
 public:
  // Returns a sink that writes to this file, which must outlive the sink. A file has at
  // most one sink.
  std::unique_ptr<nettrace::Sink> MakeSink() {
    made_ = true;
    return std::make_unique<nettrace::CallbackSink>(
        [this](std::span<const std::byte> bytes, std::size_t* taken) {
          *taken = 0;
          if (fails) return absl::Status(absl::ResourceExhaustedError("the file is full"));
          bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
          *taken = bytes.size();
          return absl::OkStatus();
        });
  }
  bool made() const { return made_; }

  bool fails = false;  // If true, writes to the sink fail.

  // Returns a reader of all bytes written so far.
  std::unique_ptr<nettrace::Reader> Read() const {
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes_));
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *std::move(reader) : nullptr;
  }

  // Returns what the verifier finds, both errors and hazards; "" if it finds nothing.
  std::string Verify() const {
    const auto report = nettrace::Verify(std::make_unique<nettrace::MemorySource>(bytes_));
    EXPECT_TRUE(report.ok()) << report.status();
    std::string found;
    if (!report.ok()) return found;
    for (const nettrace::Finding& finding : report->findings) {
      absl::StrAppend(&found, finding.rule->name, ": ", finding.explanation, "\n");
    }
    return found;
  }

 private:
  std::vector<std::byte> bytes_;
  bool made_ = false;
};

}  // namespace tests

#endif  // TESTS_SUPPORT_COLLECTOR_FILE_IN_MEMORY_H_
