#include "tools/trace/account_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/base/text.h"

namespace trace {
namespace {

// Returns the earlier of two times; 0 (unknown) if either is unknown.
AccountSummary::Time Earlier(AccountSummary::Time a, AccountSummary::Time b) {
  return a == 0 || b == 0 ? 0 : std::min(a, b);
}
AccountSummary::Time Later(AccountSummary::Time a, AccountSummary::Time b) {
  return a == 0 || b == 0 ? 0 : std::max(a, b);
}

void PutTracepoint(base::JsonWriter* json, const std::string& tracepoint) {
  json->Key("tracepoint");
  if (tracepoint.empty()) {
    json->Null();
  } else {
    base::PutString(json, tracepoint);
  }
}

}  // namespace

void AccountSummary::Add(const AccountEvent& event) {
  switch (event.kind) {
    case AccountEvent::Kind::kEventsLost:
      AddLoss(event);
      break;
    case AccountEvent::Kind::kCpuOffline:
    case AccountEvent::Kind::kCpuOnline:
      if (cpu_changes_.size() < kMaxCpuChanges) {
        cpu_changes_.push_back(event);
      } else {
        ++cpu_changes_left_out_;
      }
      break;
    case AccountEvent::Kind::kEventsDropped:
      AddLoss(event);
      dropped_ += event.count;
      dropped_reason_ = event.reason;
      break;
    case AccountEvent::Kind::kSectionBegan:
      if (!section_ || event.section < section_->number) section_ = {event.section};
      if (event.section == section_->number) {
        section_->events_before += event.count;
        section_->lost_before += event.lost;
      }
      break;
    case AccountEvent::Kind::kSamplesThrottled:
      throttled_ += event.count;
      break;
    case AccountEvent::Kind::kStacksSkipped:
      stacks_skipped_ += event.count;
      break;
    case AccountEvent::Kind::kServiceUnknown:
      if (unknown_services_.size() < kMaxUnknownServices) {
        unknown_services_.push_back(event);
      } else {
        ++unknown_services_left_out_;
      }
      break;
    case AccountEvent::Kind::kTracepointLeftOut:
    case AccountEvent::Kind::kTracepointMet:
    case AccountEvent::Kind::kTargetCame:
      break;
    case AccountEvent::Kind::kAccountUnknown:
      if (unknown_) {
        unknown_ = {Earlier(unknown_->since, event.since), Later(unknown_->until, event.until)};
      } else {
        unknown_ = {event.since, event.until};
      }
      break;
  }
}

void AccountSummary::AddLoss(const AccountEvent& event) {
  lost_ += event.count;
  Key key(event.cpu, event.tracepoint);
  if (losses_.size() < kMaxLosses || losses_.contains(key)) {
    losses_[std::move(key)] += event.count;
  } else {
    losses_left_out_ += event.count;
  }

  if (lost_ == event.count || event.until != last_interval_) {
    last_interval_ = event.until;
    if (intervals_.size() < kMaxIntervals) {
      intervals_.push_back({event.since, event.until, event.count});
    } else {
      ++intervals_left_out_;
    }
  } else if (intervals_left_out_ == 0) {
    Interval& interval = intervals_.back();
    interval.from = Earlier(interval.from, event.since);
    interval.count += event.count;
  }
}

std::string AccountTimeText(AccountSummary::Time time) {
  return time == 0 ? "?" : base::FormatUtc(absl::FromUnixNanos(static_cast<std::int64_t>(time)));
}

std::string UnknownServiceText(const AccountEvent& service) {
  const std::string since =
      service.since == 0 ? "up to" : absl::StrCat("from ", AccountTimeText(service.since), " to");
  return absl::StrCat(service.tracepoint.empty() ? "several services" : service.tracepoint, " ",
                      since, " ", AccountTimeText(service.until), ": ", service.reason);
}

void PutAccountTime(base::JsonWriter* json, const char* key, AccountSummary::Time time) {
  json->Key(key);
  if (time == 0) {
    json->Null();
  } else {
    base::PutString(json, AccountTimeText(time));
  }
}

void PutAccount(const AccountSummary& account, base::JsonWriter* json) {
  json->Key("losses");
  json->StartArray();
  for (const auto& [key, count] : account.losses()) {
    json->StartObject();
    base::PutNumber(json, "cpu", key.first);
    PutTracepoint(json, key.second);
    base::PutNumber(json, "count", count);
    json->EndObject();
  }
  json->EndArray();
  base::PutNumber(json, "lossesLeftOut", account.losses_left_out());
  json->Key("lossIntervals");
  json->StartArray();
  for (const AccountSummary::Interval& interval : account.intervals()) {
    json->StartObject();
    PutAccountTime(json, "from", interval.from);
    PutAccountTime(json, "until", interval.until);
    base::PutNumber(json, "count", interval.count);
    json->EndObject();
  }
  json->EndArray();
  base::PutNumber(json, "lossIntervalsLeftOut", account.intervals_left_out());
  json->Key("cpuChanges");
  json->StartArray();
  for (const AccountEvent& change : account.cpu_changes()) {
    json->StartObject();
    base::PutNumber(json, "cpu", change.cpu);
    json->Key("online");
    json->Bool(change.kind == AccountEvent::Kind::kCpuOnline);
    PutAccountTime(json, "since", change.since);
    PutAccountTime(json, "until", change.until);
    if (!change.reason.empty()) base::PutText(json, "reason", change.reason);
    json->EndObject();
  }
  json->EndArray();
  base::PutNumber(json, "cpuChangesLeftOut", account.cpu_changes_left_out());
  json->Key("unknownServices");
  json->StartArray();
  for (const AccountEvent& service : account.unknown_services()) {
    json->StartObject();
    PutTracepoint(json, service.tracepoint);
    PutAccountTime(json, "since", service.since);
    PutAccountTime(json, "until", service.until);
    base::PutText(json, "reason", service.reason);
    json->EndObject();
  }
  json->EndArray();
  base::PutNumber(json, "unknownServicesLeftOut", account.unknown_services_left_out());
  base::PutNumber(json, "throttled", account.throttled());
  base::PutNumber(json, "stacksSkipped", account.stacks_skipped());
}

}  // namespace trace
