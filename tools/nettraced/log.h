// The daemon's log: the journal with fields, or standard error.
#ifndef TOOLS_NETTRACED_LOG_H_
#define TOOLS_NETTRACED_LOG_H_

#include <syslog.h>

#include <initializer_list>
#include <string>

namespace nettraced {

// A field of a journal entry beside the message, such as SESSION. The name consists of capital
// letters.
struct LogField {
  const char* name;
  std::string value;
};

// Writes a message to the log. If standard error is the journal, the message and the fields go
// there. Otherwise, standard error gets one line. The line has the prefix of sd-daemon(3) only if
// standard error is the journal, which did not take the fields. Each line of `message` becomes a
// separate message with the same fields. `priority` is one of syslog(3), such as LOG_WARNING.
// Thread-safe; may block on the journal.
void Log(int priority, const std::string& message, std::initializer_list<LogField> fields = {});

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_LOG_H_
