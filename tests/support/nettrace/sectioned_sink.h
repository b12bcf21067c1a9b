// A sink in memory whose sections can be read as separate streams, and that can be full.
#ifndef TESTS_SUPPORT_NETTRACE_SECTIONED_SINK_H_
#define TESTS_SUPPORT_NETTRACE_SECTIONED_SINK_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/format.h"
#include "nettrace/sink.h"

namespace nettrace::testing {

// The bytes that the sink received. They outlive the sink.
struct Sections {
  std::string bytes;
  std::vector<std::size_t> starts;
  bool wants_section = false;
  bool is_full = false;

  // Returns the stream of `count` sections from number `first` on. Adds an end to the stream,
  // unless it includes the last section of all, which has the end that the writer wrote.
  std::string Stream(std::size_t first, std::size_t count = 1) const {
    const std::size_t begin = starts.at(first);
    const bool has_last = first + count == starts.size();
    const std::size_t end = has_last ? bytes.size() : starts.at(first + count);
    std::string stream = bytes.substr(0, starts.at(0)) + bytes.substr(begin, end - begin);
    if (!has_last) stream.append(kEndOfStreamBlock.size(), '\0');
    return stream;
  }
};

class SectionedSink : public Sink {
 public:
  explicit SectionedSink(std::shared_ptr<Sections> sections) : sections_(std::move(sections)) {}

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    sections_->bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    *taken = bytes.size();
    return absl::OkStatus();
  }
  absl::Status BeginSection() override {
    sections_->starts.push_back(sections_->bytes.size());
    sections_->wants_section = false;
    return absl::OkStatus();
  }
  bool WantsSection() const override { return sections_->wants_section; }
  bool IsFull() const override { return sections_->is_full; }

 private:
  std::shared_ptr<Sections> sections_;
};

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_SECTIONED_SINK_H_
