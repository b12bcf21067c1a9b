#include "tools/nettrace/symbolize/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "tools/base/unique_fd.h"

namespace tools::symbolize {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;
constexpr std::size_t kChunk = std::size_t{64} << 10;
// Maximum number of pairs of a function and an address in it. Only functions that overlap many
// times reach it.
constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 26;

// Takes hexadecimal digits and the space after them from `*line`.
bool TakeNumber(std::string_view* line, std::uint64_t* number) {
  const std::size_t space = line->find(' ');
  if (space == std::string_view::npos ||
      !absl::SimpleHexAtoi(absl::string_view(line->data(), space), number)) {
    return false;
  }
  line->remove_prefix(space + 1);
  return true;
}

}  // namespace

void PerfMapLookup::AddText(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    line_.append(text.substr(0, std::min(size, kMaxLine - line_.size())));
    if (size == text.size()) return;
    AddLine();
    line_.clear();
    text.remove_prefix(size + 1);
  }
}

void PerfMapLookup::AddLine() {
  std::string_view line = line_;
  std::uint64_t first = 0;
  std::uint64_t size = 0;
  if (!TakeNumber(&line, &first) || !TakeNumber(&line, &size) || size == 0 || line.empty() ||
      first + (size - 1) < first) {
    return;
  }
  const std::uint64_t last = first + (size - 1);
  auto next = std::lower_bound(addresses_.begin(), addresses_.end(), first);
  if (next == addresses_.end() || *next > last) return;
  line = line.substr(0, elf::kMaxName);
  name_bytes_ += line.size();
  if (name_bytes_ > elf::Functions::kMaxNameBytes) return;
  const auto function =
      std::make_shared<const elf::Function>(elf::Function{first, last, std::string(line)});
  for (; next != addresses_.end() && *next <= last; ++next) {
    if (++steps_ > kMaxSteps) return;
    found_[static_cast<std::size_t>(next - addresses_.begin())] = function;
  }
}

elf::Functions PerfMapLookup::Finish() {
  AddLine();
  elf::Functions result;
  absl::flat_hash_map<const elf::Function*, std::uint32_t> indices;
  for (const std::shared_ptr<const elf::Function>& each : found_) {
    result.of_address.push_back(elf::Functions::kNone);
    if (each == nullptr) continue;
    const auto [index, is_new] =
        indices.try_emplace(each.get(), static_cast<std::uint32_t>(result.functions.size()));
    if (is_new) result.functions.push_back(*each);
    result.of_address.back() = index->second;
  }
  return result;
}

absl::StatusOr<elf::Functions> ReadPerfMap(const std::string& path,
                                           std::span<const std::uint64_t> addresses) {
  const base::UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  struct stat facts = {};
  if (!fd.valid() || fstat(fd.get(), &facts) != 0) {
    return absl::ErrnoToStatus(errno, "cannot be opened");
  }
  if (!S_ISREG(facts.st_mode) || facts.st_nlink != 1) {
    return absl::InvalidArgumentError("not a regular file with one name");
  }
  const uid_t user = geteuid();
  if (user != 0 && facts.st_uid != 0 && facts.st_uid != user) {
    return absl::PermissionDeniedError("belongs to another user");
  }
  PerfMapLookup lookup(addresses);
  std::string buffer(kChunk, '\0');
  for (std::uint64_t left = kMaxBytes; left != 0;) {
    const ssize_t got = read(fd.get(), buffer.data(), std::min<std::uint64_t>(left, kChunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot be read");
    if (got == 0) break;
    lookup.AddText(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    left -= static_cast<std::uint64_t>(got);
  }
  return lookup.Finish();
}

}  // namespace tools::symbolize
