// What the daemon tells its administrator: the journal with fields, or standard error.
#ifndef TOOLS_NETTRACED_LOG_H_
#define TOOLS_NETTRACED_LOG_H_

#include <syslog.h>

#include <initializer_list>
#include <string>

namespace nettraced {

// A field of the journal beside the message, such as SESSION; the name is of capital letters.
struct LogField {
  const char* name;
  std::string value;
};

// A message of several lines is several messages, with the same fields. `priority` is one of
// syslog(3), such as LOG_WARNING. Where standard error is the journal, the message and the fields
// go there. Else it is one line on standard error, with the prefix of sd-daemon(3) if that is no
// terminal. Thread-safe; may wait for the journal.
void Log(int priority, const std::string& message, std::initializer_list<LogField> fields = {});

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_LOG_H_
