// Finds the events of a session that match its triggers (trigger.h), and fires the triggers.
//
// Events with the same metadata row have the same form. The triggers that may match an event are
// determined once for each form, by provider, name, level and fields. An event of a form without
// triggers costs one comparison. The values of other events are compared while their payload is
// read. No read leaves the payload's bounds, even if a process has written invalid data.
#ifndef TOOLS_COLLECTOR_SESSION_TRIGGER_SET_H_
#define TOOLS_COLLECTOR_SESSION_TRIGGER_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "nettrace/schema.h"
#include "tools/collector/convert/converted_event.h"
#include "tools/collector/session/trigger.h"
#include "tools/collector/system/slots.h"

namespace collector {

// The triggers of one session. Not thread-safe.
class TriggerSet {
 public:
  // Called with the index of the trigger that an event matched, and with the event's timestamp in
  // ns of the session clock. Runs on the thread that calls Check, before Check returns.
  using Fire = std::function<void(std::size_t trigger, std::uint64_t timestamp)>;

  // Maximum number of stored forms that triggers may match. When there are more, all forms are
  // dropped, and the triggers of each form are determined again when its next event comes.
  static constexpr std::size_t kMaxPlans = 1024;

  // `pause` is the time after a match in which events are not checked, so that many matching events
  // at once cost nothing.
  TriggerSet(std::vector<Trigger> triggers, Fire fire,
             absl::Duration pause = absl::Milliseconds(10));

  // Checks an event. `metadata` returns the metadata row of the event's form.
  void Check(const ConvertedEvent& event, absl::FunctionRef<nettrace::EventMetadata()> metadata) {
    if (event.timestamp < silent_until_) return;
    std::uint32_t plan = plan_of_.Find(event.kind.form);
    if (plan == kUnknown) [[unlikely]]
      plan = MakePlan(event.kind.form, metadata());
    if (plan != kNever) CheckPlan(plans_[plan - kFirstPlan], event);
  }

 private:
  // Holds the triggers that may match events of a form, and the form's fields.
  struct Plan {
    std::vector<std::size_t> triggers;
    std::vector<nettrace::Field> fields;
  };
  // Values of plan_of_: the form is not known, no trigger matches it, or kFirstPlan plus the index
  // of its plan.
  static constexpr std::uint32_t kUnknown = 0;
  static constexpr std::uint32_t kNever = 1;
  static constexpr std::uint32_t kFirstPlan = 2;

  std::uint32_t MakePlan(Slot form, const nettrace::EventMetadata& metadata);
  void CheckPlan(const Plan& plan, const ConvertedEvent& event);

  std::vector<Trigger> triggers_;
  Fire fire_;
  std::uint64_t pause_;  // ns
  std::uint64_t silent_until_ = 0;
  SlotMap<std::uint32_t> plan_of_;  // by form
  std::vector<Plan> plans_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_TRIGGER_SET_H_
