// Buffers text and writes it to a sink in large pieces. The caller must call Flush at the end. The
// buffered text is lost if the sink fails.
#ifndef TOOLS_BASE_TEXT_OUTPUT_H_
#define TOOLS_BASE_TEXT_OUTPUT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "nettrace/sink.h"

namespace base {

class TextOutput {
 public:
  // `sink` must outlive this object.
  explicit TextOutput(nettrace::Sink* sink) : sink_(sink) {}

  absl::Status Write(std::string_view text) {
    text_ += text;
    return Appended();
  }
  // Returns the text that is not written yet. A caller that appends to it must then call Appended.
  std::string* text() { return &text_; }
  absl::Status Appended() { return text_.size() < kPieceSize ? absl::OkStatus() : Flush(); }
  absl::Status Flush() {
    std::size_t taken = 0;
    absl::Status status = sink_->Append(std::as_bytes(std::span(text_)), &taken);
    text_.clear();
    return status;
  }

 private:
  static constexpr std::size_t kPieceSize = 256 << 10;

  nettrace::Sink* const sink_;
  std::string text_;
};

}  // namespace base

#endif  // TOOLS_BASE_TEXT_OUTPUT_H_
