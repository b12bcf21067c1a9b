#include "tools/nettrace/query/inputs.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/source.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/trace/zstd_source.h"

namespace tools::query {

std::optional<std::string_view> NamePool::Add(std::string_view name) {
  constexpr std::size_t kEntrySize = 64;  // estimated size of an entry without its text
  const auto known = names_.find(name);
  if (known != names_.end()) return *known;
  if (bytes_ + name.size() + kEntrySize > kMaxBytes) return std::nullopt;
  bytes_ += name.size() + kEntrySize;
  return *names_.emplace(name).first;
}

// Reads the copy of a pipe.
class Inputs::CopySource : public nettrace::Source {
 public:
  explicit CopySource(const nettrace::internal::SpillFile* copy) : copy_(*copy) {}

  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    const std::uint64_t left = copy_.size() - read_;
    buffer = buffer.first(std::min(left, std::uint64_t{buffer.size()}));
    RETURN_IF_ERROR(copy_.Read(read_, buffer));
    read_ += buffer.size();
    return buffer.size();
  }

 private:
  const nettrace::internal::SpillFile& copy_;
  std::uint64_t read_ = 0;
};

absl::Status Inputs::Check() {
  struct stat facts = {};
  const std::string& path = files_.paths().front();
  const bool is_pipe = path == "-" || (stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode));
  if (files_.is_one() && is_pipe) {
    if (const absl::Status status = CopyPipe(); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(files_.Name(), ": ", status.message()));
    }
  }
  return OpenReader().status();
}

absl::Status Inputs::CopyPipe() {
  ASSIGN_OR_RETURN(const int fd, OpenDescriptor(files_.paths().front()));
  nettrace::FdSource source(fd, "cannot be read");
  std::array<std::byte, std::size_t{64} << 10> buffer;
  for (;;) {
    ASSIGN_OR_RETURN(const std::size_t got, source.Read(buffer));
    if (got == 0) break;
    progress_->AddRead(got);
    RETURN_IF_ERROR(copy_.Append(std::span(buffer).first(got)));
  }
  is_copied_ = true;
  return copy_.Flush();
}

absl::StatusOr<InputFiles::Opened> Inputs::OpenReader() {
  if (!is_copied_) return files_.Open(progress_);
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Source> source,
                   trace::OpenCompressed(std::make_unique<CopySource>(&copy_)));
  absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
      nettrace::Reader::Open(std::move(source));
  if (reader.ok()) return InputFiles::Opened{*std::move(reader), nullptr};
  return absl::Status(reader.status().code(),
                      absl::StrCat(files_.Name(), ": ", reader.status().message()));
}

absl::StatusOr<std::unique_ptr<Inputs::Reading>> Inputs::Open() {
  if (readers_ == kMaxReaders) {
    return absl::ResourceExhaustedError(absl::StrCat("the query reads more than ", kMaxReaders,
                                                     " tables at a time; use fewer tables"));
  }
  ASSIGN_OR_RETURN(InputFiles::Opened opened, OpenReader());
  return std::make_unique<Reading>(this, std::move(opened));
}

void Inputs::AddRemark(const std::string& remark) {
  if (std::find(remarks_.begin(), remarks_.end(), remark) == remarks_.end()) {
    remarks_.push_back(remark);
  }
}

Inputs::Reading::Step Inputs::Reading::Next() {
  const Step step = stream_.Next();
  if (step == Step::kEvent) {
    ++number_;
    if (!inputs_.first_) inputs_.first_ = time();
  } else if (step == Step::kSequencePoint) {
    payloads_.ForgetRows();
  } else if (step == Step::kEnd && inputs_.problems_.empty()) {
    inputs_.problems_ = inputs_.files_.Problems(opened_, reader().status());
  }
  return step;
}

std::int64_t Inputs::Reading::relative() const {
  return inputs_.first_ ? absl::ToInt64Nanoseconds(time() - *inputs_.first_) : 0;
}

}  // namespace tools::query
