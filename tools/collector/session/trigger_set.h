// Finds the events of a session at which its triggers (trigger.h) are to fire.
//
// Which triggers may match an event is decided once for each form of events, by provider, name,
// level and fields; an event of another form costs one comparison. The values of an event that may
// match are compared as its payload is walked, within its bounds, whatever a process wrote.
#ifndef TOOLS_COLLECTOR_SESSION_TRIGGER_SET_H_
#define TOOLS_COLLECTOR_SESSION_TRIGGER_SET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "nettrace/schema.h"
#include "tools/collector/base/slots.h"
#include "tools/collector/convert/sample_converter.h"
#include "tools/collector/session/trigger.h"

namespace collector {

// Not thread-safe.
class TriggerSet {
 public:
  // Is told which trigger, by its index, an event matches that came at `timestamp` (ns of the
  // session clock). It runs on the thread that calls Check, before that goes on.
  using Fire = std::function<void(std::size_t trigger, std::uint64_t timestamp)>;

  // Forms that are known at a time; when there are more, they are decided anew.
  static constexpr std::size_t kMaxPlans = 1024;

  // After one event has fired, those of the next `pause` are not looked at: a storm costs nothing.
  TriggerSet(std::vector<Trigger> triggers, Fire fire,
             absl::Duration pause = absl::Milliseconds(10));

  // `metadata` returns the row of the event's form.
  void Check(const ConvertedEvent& event, absl::FunctionRef<nettrace::EventMetadata()> metadata) {
    if (event.timestamp < silent_until_) return;
    std::uint32_t plan = plan_of_.Find(event.kind.form);
    if (plan == kUnknown) [[unlikely]]
      plan = MakePlan(event.kind.form, metadata());
    if (plan != kNever) CheckPlan(plans_[plan - kFirstPlan], event);
  }

 private:
  // What may match of a form.
  struct Plan {
    std::vector<std::size_t> triggers;
    std::vector<nettrace::Field> fields;
  };
  // Of each form: that it is not known, that nothing matches it, or the index of its plan and this.
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
