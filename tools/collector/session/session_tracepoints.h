// The tracepoints of one session: what it selects, which selectors have matched, and which
// tracepoints cannot be recorded.
//
// The Attachments (attachments.h) and the RingFeed (ring_feed.h) read the selectors, and record
// here what they have done for each tracepoint: when the session is added, and whenever tracepoints
// appear while it runs. The session (session_writer.h) reads the results for its summary.
#ifndef TOOLS_COLLECTOR_SESSION_SESSION_TRACEPOINTS_H_
#define TOOLS_COLLECTOR_SESSION_SESSION_TRACEPOINTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/collector/convert/collector_events.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/skipped_tracepoints.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {

// Holds the selectors of a session and what they have matched. Not thread-safe.
class SessionTracepoints {
 public:
  // `account` receives an event for each tracepoint that is skipped, or that Meet records. It must
  // outlive this object.
  SessionTracepoints(std::vector<Selector> selectors, CollectorEvents* account)
      : selectors_(std::move(selectors)), matched_(selectors_.size()), account_(account) {}

  const std::vector<Selector>& selectors() const { return selectors_; }
  bool HasFilter() const;
  // HasStacks returns whether a selector requests stacks. HasKernelStacks returns whether a
  // selector requests stacks of the kernel.
  bool HasStacks() const;
  bool HasKernelStacks() const;
  // Returns whether a selector that may match more than one tracepoint matches the tracepoint
  // `name`.
  bool HasPatternFor(const Tracefs::Name& name) const;
  // Returns whether recording `name` ("system:event") should be tried at `now` (session clock, ns):
  // it is not skipped, or its next try is due.
  bool IsDue(std::string_view name, std::uint64_t now) const { return skipped_.IsDue(name, now); }

  // Records that the selector has matched a tracepoint that is recorded.
  void SetMatched(std::size_t selector) { matched_[selector] = true; }
  // Records that the tracepoint `name` is skipped for the reason `why`, even if an earlier call has
  // recorded another reason.
  void SkipAgain(const std::string& name, const std::string& why) {
    skipped_.Forget(name);
    Skip(name, why);
  }
  // Records that the tracepoint `name`, which may have been skipped before, is recorded now.
  void SetRecorded(std::string_view name) { skipped_.Remove(name); }
  // Records that the tracepoint `name`, which a selector matches, cannot be recorded, and `why`.
  // `name` is "user_events_status" if that file, or names in it, cannot be read.
  void Skip(const std::string& name, const std::string& why);
  // Adds a warning about recorded tracepoints or stacks, unless there are already
  // SkippedTracepoints::kMaxReasons warnings.
  void Warn(const std::string& warning);
  // Records that a pattern has matched the tracepoint `name` for the first time, and that it is
  // recorded from now on.
  void Meet(const std::string& name);

  // Returns the texts of the selectors for which no tracepoint has been recorded so far.
  std::vector<std::string> FindUnmatched() const;
  const SkippedTracepoints& skipped() const { return skipped_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<Selector> selectors_;
  std::vector<bool> matched_;  // whether the selector at this index has matched
  CollectorEvents* account_;
  SkippedTracepoints skipped_;
  std::vector<std::string> warnings_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SESSION_TRACEPOINTS_H_
