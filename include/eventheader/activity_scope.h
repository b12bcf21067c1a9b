// Activities as scopes: an event when one starts, an event when it stops.
#ifndef EVENTHEADER_ACTIVITY_SCOPE_H_
#define EVENTHEADER_ACTIVITY_SCOPE_H_

#include <optional>

#include "eventheader/activity.h"
#include "eventheader/provider.h"

namespace eh {

// From construction to destruction this thread works for a new activity, whose parent is what it
// worked for before. `kStart` and `kStop` are static events (with Opcode::kActivityStart and
// kActivityStop in their traits); the start event has the fields given, the stop event has none.
//
//     eh::ActivityScope<request_start, request_stop> scope(path);
//     step.Write(scope.activity(), 17);
//
// To be destroyed by the thread that made it, the last made first.
template <const auto& kStart, const auto& kStop>
class ActivityScope {
 public:
  template <typename... Values>
  explicit ActivityScope(const Values&... values) noexcept
      : id_(NewActivityId()), parent_(SetCurrentActivity(id_)) {
    kStart.Write(Activity{id_, parent_ ? &*parent_ : nullptr}, values...);
  }
  ~ActivityScope() {
    kStop.Write(activity());
    SetCurrentActivity(parent_);
  }
  ActivityScope(const ActivityScope&) = delete;
  ActivityScope& operator=(const ActivityScope&) = delete;

  const ActivityId& id() const noexcept { return id_; }
  Activity activity() const noexcept { return {id_}; }

 private:
  ActivityId id_;
  std::optional<ActivityId> parent_;
};

}  // namespace eh

#endif  // EVENTHEADER_ACTIVITY_SCOPE_H_
