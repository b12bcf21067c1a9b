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

// Writes each line of `message` to the log as a separate message with the same fields. If standard
// error is the journal, sends the message and the fields to the journal. If it is not, or if
// sending fails, writes the message without the fields to standard error. If sending has failed,
// standard error is the journal, so this message has the priority prefix of sd-daemon(3).
// `priority` is one of syslog(3), such as LOG_WARNING. Thread-safe; may block on the journal.
void Log(int priority, const std::string& message, std::initializer_list<LogField> fields = {});

// Like Log without fields, but always writes to standard error. Must be used for the last messages
// of the process: journald finds the unit of a message of Log by the pid of its sender. If the
// sender has already ended, the message gets no unit. For standard error, journald knows the unit.
void LogBeforeExit(int priority, const std::string& message);

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_LOG_H_
