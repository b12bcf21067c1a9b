// Runs `nettrace top`, which shows files, a new recording or a session of nettraced: on a full
// screen, or once as a table or JSON.
#ifndef TOOLS_NETTRACE_TOP_RUN_H_
#define TOOLS_NETTRACE_TOP_RUN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"
#include "tools/trace/event_filter.h"

namespace tools::top {

inline constexpr char kCommand[] = "top";  // for messages

struct RunOptions {
  // The source of the events. Exactly one of these members is set: the paths of files, the
  // selectors of a recording, or the name of a session of nettraced.
  std::vector<std::string> paths;
  std::vector<std::string> selectors;
  std::string session;

  std::string socket;   // control socket of nettraced; "": the default
  bool follow = false;  // wait at the end of the file until the recording in it ends
  bool json = false;
  std::string color;  // value of --color
  View view = View::kEvent;
  Column column = Column::kRate;
  bool reverse = false;
  absl::Duration interval = absl::Seconds(1);
  std::optional<absl::Duration> run_for;  // time to read; none: until the stream ends
  std::size_t max_rows = ModelOptions().max_rows;
  trace::EventFilter filter;

  bool is_live() const { return paths.empty(); }
  // Returns the name of the source for display and messages.
  std::string source() const;
};

// Show the statistics once, as a table or JSON (RunOnce), or on a full screen (RunScreen). Both
// functions print errors, and return the exit code.
int RunOnce(const RunOptions& options);
int RunScreen(const RunOptions& options);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_RUN_H_
