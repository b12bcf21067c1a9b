#include "tools/nettraced/log.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/text.h"

namespace nettraced {
namespace {

// Returns whether `fd` is a stream to the journal. JOURNAL_STREAM has the device and the inode of
// the stream that systemd has opened. A descriptor that was redirected later has another device or
// inode.
bool IsJournal(int fd) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status = {};
  return stream != nullptr && fstat(fd, &status) == 0 &&
         absl::StrCat(status.st_dev, ":", status.st_ino) == stream;
}

bool SendToJournal(int priority, const std::string& message,
                   std::initializer_list<LogField> fields) {
  std::vector<std::string> texts = {absl::StrCat("MESSAGE=", message),
                                    absl::StrCat("PRIORITY=", priority),
                                    "SYSLOG_IDENTIFIER=nettraced"};
  for (const LogField& field : fields) {
    if (!field.value.empty()) texts.push_back(absl::StrCat(field.name, "=", field.value));
  }
  std::vector<iovec> parts;
  parts.reserve(texts.size());
  for (std::string& text : texts) parts.push_back({text.data(), text.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) == 0;
}

bool StderrIsJournal() {
  static const bool is_journal = IsJournal(STDERR_FILENO);
  return is_journal;
}

std::vector<std::string> LinesOf(const std::string& message) {
  return absl::StrSplit(message, '\n', absl::SkipEmpty());
}

void WriteLine(int priority, const std::string& message) {
  const std::string line = absl::StrCat(
      StderrIsJournal() ? absl::StrCat("<", priority, ">") : std::string("nettraced: "),
      base::Printable(message), "\n");
  // Uses one write, so that lines of several threads do not mix. An error cannot be reported
  // anywhere.
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

void Log(int priority, const std::string& message, std::initializer_list<LogField> fields) {
  for (const std::string& line : LinesOf(message)) {
    if (!StderrIsJournal() || !SendToJournal(priority, line, fields)) WriteLine(priority, line);
  }
}

void LogBeforeExit(int priority, const std::string& message) {
  for (const std::string& line : LinesOf(message)) WriteLine(priority, line);
}

}  // namespace nettraced
