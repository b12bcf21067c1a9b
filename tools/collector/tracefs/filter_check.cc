#include "tools/collector/tracefs/filter_check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace collector {
namespace {

// Maximum number of names that are tried for the instance of tracefs. The first names may be taken
// by instances that a killed process with the same pid has left.
constexpr int kMaxNames = 10;

}  // namespace

std::string FilterMessage(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.size() < 3) return "";
  const std::string& filter = lines[lines.size() - 3];
  const std::size_t place = lines[lines.size() - 2].find('^');
  absl::string_view what = lines.back();
  absl::ConsumePrefix(&what, "parse_error: ");
  if (place == std::string::npos || what.empty()) return "";
  const std::string rest = place < filter.size() ? filter.substr(place) : "";
  return absl::StrCat(
      what, rest.empty() ? ", at the end of the filter" : absl::StrCat(", at '", rest, "'"));
}

FilterCheck::~FilterCheck() {
  if (!instance_.empty()) rmdir(instance_.c_str());
}

std::optional<FilterCheck::Answer> FilterCheck::Ask(const Tracefs::Name& name,
                                                    const std::string& filter) {
  if (is_refused_) return std::nullopt;
  for (int i = 0; instance_.empty() && i < kMaxNames; ++i) {
    const std::string path =
        absl::StrCat(tracefs_.directory(), "/instances/nettrace-filter-", getpid(), "-", i);
    if (mkdir(path.c_str(), 0700) == 0)
      instance_ = path;
    else if (errno != EEXIST)
      break;
  }
  is_refused_ = instance_.empty();
  if (is_refused_) return std::nullopt;

  const std::string path =
      absl::StrCat(instance_, "/events/", name.system, "/", name.event, "/filter");
  const base::UniqueFd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  const ssize_t written = write(fd.get(), filter.data(), filter.size());
  const int error = errno;
  Answer answer;
  answer.accepts = written == static_cast<ssize_t>(filter.size());
  if (answer.accepts) return answer;
  constexpr std::size_t kMaxMessage = 1 << 20;
  answer.message = FilterMessage(base::ReadFile(path, kMaxMessage).value_or(""));
  if (answer.message.empty()) answer.message = std::strerror(error);
  return answer;
}

}  // namespace collector
