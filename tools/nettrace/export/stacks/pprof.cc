// Writes messages of pprof's profile.proto. The field numbers are those of profile.proto.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/base/json_text.h"
#include "tools/base/protobuf_writer.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/nettrace/export/stacks/profile.h"

namespace tools::stacks {
namespace {

using trace::StackTree;

// Compresses bytes with gzip and writes them to a sink.
class GzipOutput {
 public:
  explicit GzipOutput(nettrace::Sink* sink) : sink_(sink) {
    constexpr int kWindowBits = 15 + 16;  // 16 adds the header of gzip
    constexpr int kMemoryLevel = 8;
    is_ready_ = deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits, kMemoryLevel,
                             Z_DEFAULT_STRATEGY) == Z_OK;
  }
  GzipOutput(const GzipOutput&) = delete;
  GzipOutput& operator=(const GzipOutput&) = delete;
  ~GzipOutput() {
    if (is_ready_) deflateEnd(&stream_);
  }

  absl::Status Write(std::string_view bytes) { return Deflate(bytes, Z_NO_FLUSH); }
  absl::Status Finish() { return Deflate({}, Z_FINISH); }

 private:
  absl::Status Deflate(std::string_view bytes, int flush) {
    if (!is_ready_) return absl::ResourceExhaustedError("not enough memory to compress the output");
    std::array<unsigned char, 16384> piece;
    stream_.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<unsigned>(bytes.size());
    do {
      stream_.next_out = piece.data();
      stream_.avail_out = static_cast<unsigned>(piece.size());
      deflate(&stream_, flush);
      const std::size_t size = piece.size() - stream_.avail_out;
      std::size_t taken = 0;
      if (size == 0) continue;
      RETURN_IF_ERROR(sink_->Append(std::as_bytes(std::span(piece).first(size)), &taken));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  nettrace::Sink* const sink_;
  z_stream stream_ = {};
  bool is_ready_ = false;
};

// A message of protobuf. Numbers that are 0 are left out, because 0 is the default of a field.
class Message {
 public:
  Message& Number(unsigned field, std::uint64_t value) {
    if (value != 0) base::ProtobufWriter(&bytes_).Number(field, value);
    return *this;
  }
  Message& Bytes(unsigned field, std::string_view bytes) {
    base::ProtobufWriter(&bytes_).Bytes(field, bytes);
    return *this;
  }
  Message& Add(unsigned field, const Message& message) { return Bytes(field, message.bytes_); }
  Message& Numbers(unsigned field, const std::vector<std::uint64_t>& values) {
    Message packed;
    for (const std::uint64_t value : values) base::ProtobufWriter(&packed.bytes_).Varint(value);
    return Add(field, packed);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// The range of the addresses (see AddressOf) of the frames of a file.
struct Range {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  bool has_functions = false;
};

// Returns the address of a frame for the profile. Processes map a file at different addresses, so
// the address is an offset in the file. Code of the kernel, and code without a file, keeps its
// address.
std::uint64_t AddressOf(const StackTree::Frame& frame) {
  if (frame.file == 0 || frame.address >> 63 != 0) return frame.address;
  return frame.is_return ? frame.offset - 1 : frame.offset;
}

std::uint64_t Signed(std::uint64_t value) {
  return std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max());
}

class PprofFile {
 public:
  PprofFile(const Profile& profile, nettrace::Sink* sink)
      : profile_(profile), tree_(profile.tree), output_(sink) {
    NumberOf("");
  }

  absl::Status Write() {
    RETURN_IF_ERROR(PutHead());
    RETURN_IF_ERROR(PutSamples());
    RETURN_IF_ERROR(PutFrames());
    for (const std::string& text : texts_) {
      RETURN_IF_ERROR(output_.Write(Message().Bytes(kTexts, text).bytes()));
    }
    return output_.Finish();
  }

 private:
  // Numbers of the fields of Profile.
  enum : unsigned {
    kSampleType = 1,
    kSample,
    kMapping,
    kLocation,
    kFunction,
    kTexts,
    kTime = 9,
    kDuration = 10,
    kComment = 13,
    kDefaultType = 14,
  };

  // Returns the number of a text in the string table of the profile. Adds the text if it is new.
  std::uint64_t NumberOf(std::string_view text) {
    const auto [known, is_new] = numbers_.try_emplace(base::ValidUtf8(text), texts_.size());
    if (is_new) texts_.push_back(known->first);
    return known->second;
  }
  absl::Status Put(unsigned field, const Message& message) {
    return output_.Write(Message().Add(field, message).bytes());
  }

  absl::Status PutHead() {
    const auto& samples = tree_.samples();
    const auto is_time = [this](const auto& each) { return profile_.IsTime(each); };
    const bool has_field = profile_.weight == Weight::kField;
    has_time_ = std::any_of(samples.begin(), samples.end(), is_time);
    std::vector<std::pair<std::string, const char*>> types = {{"samples", "count"}};
    if (has_time_) types.emplace_back("off-cpu", "nanoseconds");
    if (has_field) types.emplace_back(profile_.field, "count");
    has_weight_ = types.size() > 1;
    for (const auto& [type, unit] : types) {
      RETURN_IF_ERROR(
          Put(kSampleType, Message().Number(1, NumberOf(type)).Number(2, NumberOf(unit))));
    }
    const bool is_weight = has_field || std::all_of(samples.begin(), samples.end(), is_time);
    Message head;
    head.Number(kDefaultType, NumberOf(is_weight ? types.back().first : types.front().first));
    head.Number(kTime, static_cast<std::uint64_t>(absl::ToUnixNanos(profile_.first)));
    head.Number(kDuration, Signed(static_cast<std::uint64_t>(
                               absl::ToInt64Nanoseconds(profile_.last - profile_.first))));
    head.Numbers(kComment, {NumberOf(base::Counted(profile_.lost, "event") + " lost")});
    return output_.Write(head.bytes());
  }

  void PutLabel(const char* key, std::string_view text, Message* sample) {
    if (text.empty()) return;
    sample->Add(3, Message().Number(1, NumberOf(key)).Number(2, NumberOf(text)));
  }
  void PutLabel(const char* key, const std::optional<std::uint64_t>& number, Message* sample) {
    if (number) sample->Add(3, Message().Number(1, NumberOf(key)).Number(3, *number));
  }

  absl::Status PutSamples() {
    for (const StackTree::Sample& each : tree_.samples()) {
      std::vector<std::uint64_t> locations;
      for (std::uint32_t node = each.node; node != StackTree::kRoot;
           node = tree_.nodes()[node].parent) {
        locations.push_back(tree_.nodes()[node].frame);
      }
      std::vector<std::uint64_t> values = {Signed(each.count)};
      if (has_weight_) {
        const bool counts = has_time_ && !profile_.IsTime(each);
        values.push_back(counts ? 0 : Signed(each.weight));
      }
      const Group& group = profile_.groups[each.group];
      Message sample;
      sample.Numbers(1, locations).Numbers(2, values);
      PutLabel("process", group.process, &sample);
      PutLabel("pid", group.pid, &sample);
      PutLabel("thread", group.thread, &sample);
      PutLabel("tid", group.tid, &sample);
      PutLabel("event", profile_.kinds[group.kind].name, &sample);
      RETURN_IF_ERROR(Put(kSample, sample));
    }
    return absl::OkStatus();
  }

  // Writes the locations, functions and mappings of the stacks. In the profile, the number of a
  // location is the index of its frame, that of a function the index of its name in the tree, and
  // that of a mapping the index of its file.
  absl::Status PutFrames() {
    std::vector<bool> is_used(tree_.frames().size());
    for (const StackTree::Node& node : tree_.nodes()) is_used[node.frame] = true;
    std::vector<Range> ranges(tree_.files().size());
    std::vector<bool> is_function(tree_.names().size());
    for (std::uint32_t i = 1; i < tree_.frames().size(); ++i) {
      if (!is_used[i]) continue;
      const StackTree::Frame& frame = tree_.frames()[i];
      Message location;
      location.Number(1, i).Number(2, frame.file).Number(3, AddressOf(frame));
      if (frame.function != 0) location.Add(4, Message().Number(1, frame.function));
      RETURN_IF_ERROR(Put(kLocation, location));
      Range& range = ranges[frame.file];
      range.first = std::min(range.first, AddressOf(frame));
      range.last = std::max(range.last, AddressOf(frame));
      range.has_functions = range.has_functions || frame.function != 0;
      is_function[frame.function] = true;
    }
    for (std::uint32_t i = 1; i < is_function.size(); ++i) {
      if (!is_function[i]) continue;
      const std::uint64_t name = NumberOf(tree_.names()[i]);
      RETURN_IF_ERROR(Put(kFunction, Message().Number(1, i).Number(2, name).Number(3, name)));
    }
    return PutMappings(ranges);
  }

  absl::Status PutMappings(const std::vector<Range>& ranges) {
    constexpr std::uint64_t kPage = 4096;
    for (std::uint32_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].first > ranges[i].last) continue;
      const StackTree::File& file = tree_.files()[i];
      const std::uint64_t first = ranges[i].first & ~(kPage - 1);
      const std::uint64_t last = ranges[i].last | (kPage - 1);
      const bool is_kernel = first >> 63 != 0;
      Message mapping;
      mapping.Number(1, i).Number(2, first).Number(3, last == ~std::uint64_t{0} ? last : last + 1);
      mapping.Number(4, is_kernel ? 0 : first);
      mapping.Number(5, NumberOf(tree_.names()[file.path]));
      mapping.Number(6, NumberOf(tree_.names()[file.build_id]));
      mapping.Number(7, ranges[i].has_functions ? 1 : 0);
      RETURN_IF_ERROR(Put(kMapping, mapping));
    }
    return absl::OkStatus();
  }

  const Profile& profile_;
  const StackTree& tree_;
  GzipOutput output_;
  bool has_time_ = false;
  bool has_weight_ = false;
  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, std::uint64_t> numbers_;
};

}  // namespace

absl::Status WritePprof(const Profile& profile, nettrace::Sink* sink) {
  return PprofFile(profile, sink).Write();
}

}  // namespace tools::stacks
